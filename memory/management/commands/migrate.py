"""Migrate as Django does, in less time: each migration is the same, and what is thought about between them is less."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db.migrations.state import ProjectState


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with lean_reloads():
            super().handle(*args, **options)


@contextmanager
def lean_reloads() -> Iterator[None]:
    """Let a change that no relation sees (an index, a constraint, a plain column) have one model made again.

    Django makes all its neighbours again, too: here nearly every model, as all of them belong to a workspace, for each
    of some three hundred changes. That is most of the time that a new database takes. Models that are out of date
    already count as delayed, so that a migration which runs code has all of them made again before it does.
    """
    usual = ProjectState.reload_model

    def reload_model(self: ProjectState, app_label: str, model_name: str, delay: bool = False) -> None:
        if delay and "apps" in self.__dict__ and _keeps_its_table(self, app_label, model_name):
            self.is_delayed = True
            self._reload({(app_label, model_name)})  # type: ignore[attr-defined]  # Django's own way to do it
        else:
            usual(self, app_label, model_name, delay)

    ProjectState.reload_model = reload_model  # type: ignore[method-assign]
    try:
        yield
    finally:
        ProjectState.reload_model = usual  # type: ignore[method-assign]


def _keeps_its_table(state: ProjectState, app_label: str, model_name: str) -> bool:
    """Tell whether neighbours still know the model's table by its name."""
    try:
        known = state.apps.get_model(app_label, model_name)
    except LookupError:
        return False
    options = state.models[app_label, model_name].options
    return bool(known._meta.db_table == options.get("db_table", f"{app_label}_{model_name}"))
