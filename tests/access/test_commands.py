"""create_workspace, create_project, create_api_key."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory.access import find_key
from memory.models import ApiKey, Project, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def failure(*arguments: str) -> tuple[int, str]:
    """Run a command that fails; return its exit status and its message."""
    with pytest.raises(CommandError) as error:
        run(*arguments)
    return error.value.returncode, str(error.value)


def test_workspace_is_created() -> None:
    assert run("create_workspace", "acme") == "Created workspace acme.\n"
    assert Workspace.objects.get().name == "acme"


@pytest.mark.parametrize("name", ["", "acme", "a" * 101])
def test_workspace_with_an_impossible_name_fails(name: str) -> None:
    factories.workspace(name="acme")
    code, message = failure("create_workspace", name)
    assert (code, Workspace.objects.count()) == (1, 1)
    assert message


def test_project_is_created_with_its_folder(tmp_path: Path) -> None:
    workspace = factories.workspace(name="acme")
    run("create_project", "acme", "compiler", "--path", str(tmp_path / "sub" / ".."))
    project = Project.objects.get()
    assert (project.workspace, project.slug, project.path) == (workspace, "compiler", str(tmp_path))


@pytest.mark.parametrize("slug", ["no spaces", "taken"])
def test_project_with_an_impossible_slug_fails(slug: str) -> None:
    factories.project(workspace=factories.workspace(name="acme"), slug="taken")
    assert failure("create_project", "acme", slug)[0] == 1
    assert Project.objects.count() == 1


def test_key_is_alone_on_the_last_line() -> None:
    workspace = factories.workspace(name="acme")
    text = run("create_api_key", "acme").splitlines()[-1]
    key = find_key(text=text)
    assert key is not None
    assert (key.workspace, key.permissions, key.is_limited) == (workspace, ["read", "write"], False)


def test_key_holds_what_was_asked_for() -> None:
    workspace = factories.workspace(name="acme")
    one, two, _ = (factories.project(workspace=workspace, slug=slug) for slug in ("one", "two", "three"))
    run("create_api_key", "acme", "--permissions", "curate, read,read", "--project", "one", "--project", "two")
    key = ApiKey.objects.get()
    assert (key.permissions, key.is_limited, set(key.projects.all())) == (["read", "curate"], True, {one, two})


@pytest.mark.parametrize(
    "arguments",
    [
        ("create_project", "nowhere", "slug"),
        ("create_api_key", "nowhere"),
        ("create_api_key", "acme", "--project", "unknown"),
    ],
)
def test_naming_what_is_not_there_is_bad_usage(arguments: tuple[str, ...]) -> None:
    factories.workspace(name="acme")
    code, message = failure(*arguments)
    assert (code, ApiKey.objects.count()) == (2, 0)
    assert message.startswith("There is no ")


@pytest.mark.parametrize("permissions", ["", "admin", "read,,write"])
def test_unknown_permission_is_bad_usage(permissions: str) -> None:
    factories.workspace(name="acme")
    _, message = failure("create_api_key", "acme", "--permissions", permissions)
    assert "read, write, curate, owner" in message
