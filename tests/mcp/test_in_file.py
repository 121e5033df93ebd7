"""P12: what a person wants in MEMORY.md goes there where the client started the server itself, and is saved anyway."""

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from pytest_django import Settings

from memory.models import Episode, MemoryFile, Workspace
from memory.publishing.memory_files import enable_file
from tests import factories
from tests.docs.pages import ROOT
from tests.mcp.clients import over_command
from tests.mcp.test_servers import environment, run
from tests.mcp.test_tools import BY_NAME

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "The bins go out on Monday evening."


@pytest.fixture
def file(tmp_path: Path, settings: Settings) -> MemoryFile:
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    workspace = factories.workspace()
    return enable_file(workspace=workspace, path=tmp_path / "MEMORY.md", project=None, user="", now=factories.NOW)


def save(workspace: Workspace, *permissions: str, is_local: bool = True, **more: Any) -> Any:
    key = factories.key(*permissions, workspace=workspace)[1]
    arguments = {"text": TEXT, "in_file": True, **more}
    return BY_NAME["memory_save"].call(key_text=key, arguments=arguments, is_local=is_local)


def told_by(file: MemoryFile) -> list[str]:
    path = Path(file.path)
    return [line for line in path.read_text().splitlines() if line.startswith("- ")] if path.exists() else []


@pytest.mark.parametrize("at_once", [False, True])
def test_it_stands_in_the_file_at_once(file: MemoryFile, at_once: bool) -> None:
    saved = save(file.workspace, "curate", at_once=at_once, source="human", user=None)
    assert (saved.file, saved.file_problem) == (file.path, None)
    assert [line.startswith(f"- {TEXT}") for line in told_by(file)] == [True]


def test_the_same_words_again_stand_there_once(file: MemoryFile) -> None:
    for _ in range(2):
        save(file.workspace, "curate", session="monday")
    assert len(told_by(file)) == 1


@pytest.mark.parametrize(
    ("permission", "is_local", "more", "why"),
    [
        ("curate", False, {}, "over HTTP"),
        ("write", True, {}, "curate"),
        ("curate", True, {"user": "mia"}, "No MEMORY.md"),
    ],
)
def test_else_it_is_saved_and_the_answer_says_why(
    file: MemoryFile, permission: str, is_local: bool, more: dict[str, str], why: str
) -> None:
    saved = save(file.workspace, permission, is_local=is_local, **more)
    assert saved.file is None
    assert why in saved.file_problem
    assert Episode.objects.get(pk=saved.id).text == TEXT
    assert told_by(file) == []


def test_a_file_that_cannot_be_written_costs_no_memory(file: MemoryFile) -> None:
    Path(file.path).mkdir()
    saved = save(file.workspace, "curate")
    assert "no ordinary file" in saved.file_problem
    assert Episode.objects.filter(pk=saved.id).exists()


def test_an_agents_own_server_does_it(file: MemoryFile) -> None:
    """Over standard input and output, in a process of its own."""
    key = factories.key("curate", workspace=file.workspace)[1]
    given = {**environment(), "ENGRAM_API_KEY": key, "ENGRAM_MEMORY_MD_ROOTS": str(Path(file.path).parent)}

    async def work(client: Client) -> Any:
        return await client.call_tool("memory_save", {"text": TEXT, "in_file": True})

    command = [str(ROOT / ".venv/bin/python"), str(ROOT / "manage.py"), "mcp"]
    saved = run(work, over_command(command, environment=given))
    assert (saved.structured_content or {})["file"] == file.path
    assert [line.startswith(f"- {TEXT}") for line in told_by(file)] == [True]
