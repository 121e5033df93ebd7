"""How commands fail: status 1 for what failed, 2 for bad usage, never a trace for either."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import CommandError

from memory.access import UnknownWorkspace, find_workspace
from memory.ledger.transactions import WorkspaceBusy
from memory.models import Project, Workspace


def usage_error(message: str) -> CommandError:
    """Make an error that says that the command line names something that is not there."""
    return CommandError(message, returncode=2)


@contextmanager
def failing_on_invalid() -> Iterator[None]:
    """Turn what a model refuses into a failed command."""
    try:
        yield
    except ValidationError as error:
        raise CommandError(_by_field(error)) from None


def _by_field(error: ValidationError) -> str:
    """Put the field's name before what is wrong with it."""
    reasons = error.message_dict.items()
    named = [f"{field}: {text}" if field != NON_FIELD_ERRORS else text for field, texts in reasons for text in texts]
    return " ".join(named)


@contextmanager
def failing_while_occupied() -> Iterator[None]:
    """Fail where somebody else is at what one does alone."""
    try:
        yield
    except WorkspaceBusy as error:
        raise CommandError(str(error), returncode=1) from None


def named_workspace(name: str) -> Workspace:
    """Find the workspace that the command line names."""
    try:
        return find_workspace(name=name)
    except UnknownWorkspace as error:
        raise usage_error(str(error)) from None


def named_project(*, workspace: Workspace, slug: str) -> Project:
    """Find the project that the command line names."""
    project = Project.objects.for_workspace(workspace).filter(slug=slug).first()
    if project is None:
        raise usage_error(f"There is no project {slug!r} in workspace {workspace.name}; make one with create_project.")
    found: Project = project
    return found
