"""The plugin and the importer name a project by the folder alike, if they are asked to."""

import json
from pathlib import Path

import pytest

from memory.ingest.conversation_formats import project_of_folder
from memory.models import Conversation
from tests.api.caller import Caller
from tests.integrations.client import TALK, ClaudeCode

pytestmark = pytest.mark.django_db(transaction=True)

FOLDERS = ["/home/mara/The Mill.js", "/srv/bäckerei/", "/"]


def project_of(client: ClaudeCode, *, folder: str = "", **environment: str) -> str | None:
    """Return the project that turns were kept under."""
    path = client.write("abc", *TALK)
    at = client.elsewhere(ENGRAM_PROJECT_FROM_FOLDER="1", CLAUDE_PROJECT_DIR="", **environment)
    at.fire("Stop", session_id="abc", transcript_path=str(path), **({"cwd": folder} if folder else {}))
    slug: str | None = Conversation.objects.values_list("project__slug", flat=True).get()
    return slug


@pytest.mark.parametrize("folder", FOLDERS)
def test_turns_are_of_the_project_that_the_importer_would_name(client: ClaudeCode, folder: str) -> None:
    assert (project_of(client, folder=folder) or "") == project_of_folder(folder)


def test_the_folder_that_the_client_was_started_in_comes_first(client: ClaudeCode, tmp_path: Path) -> None:
    """Wherever it went from there."""
    path = client.write("abc", *TALK)
    begun = client.elsewhere(ENGRAM_PROJECT_FROM_FOLDER="1", CLAUDE_PROJECT_DIR="/home/mara/mill")
    begun.fire("Stop", session_id="abc", transcript_path=str(path), cwd="/tmp")
    assert list(Conversation.objects.values_list("project__slug", flat=True)) == ["mill"]


def test_a_project_that_is_named_stands(client: ClaudeCode) -> None:
    assert project_of(client, folder="/home/mara/mill", ENGRAM_PROJECT="shop") == "shop"


def test_it_is_off_unless_asked_for(client: ClaudeCode) -> None:
    path = client.write("abc", *TALK)
    client.fire("Stop", session_id="abc", transcript_path=str(path), cwd="/home/mara/mill")
    assert Conversation.objects.get().project is None


def test_recollections_are_of_the_folder_s_project(client: ClaudeCode, key: str) -> None:
    for project in ("mill", "shop"):
        Caller(key).post("/episodes", {"text": f"Mara prefers tabs at the {project}.", "project": project})
    asking = client.elsewhere(ENGRAM_PROJECT_FROM_FOLDER="1", CLAUDE_PROJECT_DIR="")
    done = asking.fire("UserPromptSubmit", session_id="abc", prompt="Does Mara like tabs?", cwd="/home/mara/mill")
    context = json.loads(done.printed)["hookSpecificOutput"]["additionalContext"]
    assert context == "[Memory flash: Mara prefers tabs at the mill.]"
