"""A workspace without its memories: whose it is, its keys and its projects are left."""

from collections.abc import Iterator

from django.apps import apps
from django.db import connection
from django.db.models import Model

from memory.models import ApiKey, Membership, Project, Workspace

KEPT: tuple[type[Model], ...] = (Membership, ApiKey, Project)


def empty_workspace(*, workspace: Workspace) -> None:
    """Delete every row of a workspace but those of its people, keys and projects.

    The database asks at the end of the transaction whether all references still lead somewhere, so that the order of
    tables does not matter.
    """
    with connection.cursor() as cursor:
        for model in models_of_memories():
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(f"DELETE FROM {table} WHERE workspace_id = %s", [workspace.pk])  # noqa: S608  (a table's name)
    Workspace.objects.filter(pk=workspace.pk).update(erasure_key=None)


def models_of_memories() -> Iterator[type[Model]]:
    """Yield what a workspace's memories are kept in."""
    for model in apps.get_app_config("memory").get_models():
        names = {field.name for field in model._meta.concrete_fields}
        if "workspace" in names and model not in KEPT:
            yield model
