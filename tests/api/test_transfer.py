"""GET /export and POST /import."""

import json
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from memory.models import Episode, Workspace
from tests import factories
from tests.api.caller import PREFIX, Caller, caller, is_problem
from tests.export.files import exported
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db

JSON_LINES = "application/x-ndjson"


@pytest.fixture
def owner(workspace: Workspace) -> Caller:
    remembered("Mara drinks tea.", workspace=workspace, user="mara")
    believed("Mara prefers tea.", workspace=workspace)
    return caller(workspace=workspace)


def send(workspace: Workspace, file: bytes, content_type: str = JSON_LINES) -> Any:
    """POST a file with a new owner's key."""
    _, key = factories.key(workspace=workspace)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    return client.post(f"{PREFIX}/import", file, content_type=content_type)


def test_a_memory_is_exported(workspace: Workspace, owner: Caller) -> None:
    """R14: as a stream of JSON Lines."""
    response = owner.get("/export")
    assert (response.status_code, response.headers["Content-Type"]) == (200, JSON_LINES)
    assert response.streaming
    assert b"".join(response.streaming_content) == exported(workspace)


def test_a_users_data_are_exported(workspace: Workspace, owner: Caller) -> None:
    lines = b"".join(owner.get("/export", user="mara").streaming_content).splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["engram", "episode", "episode_vector"]


def test_an_open_cycle_keeps_from_exporting(owner: Caller) -> None:
    """R14: told as a problem, before the answer begins."""
    cycle = owner.post("/consolidations").json()["id"]
    response = owner.get("/export")
    assert is_problem(response, 409)
    assert cycle in response.json()["detail"]


def test_nobody_by_name_exports_nothing(owner: Caller) -> None:
    assert is_problem(owner.get("/export", user=""), 422)


def test_a_caller_may_ask_for_json_lines_by_name(workspace: Workspace, owner: Caller) -> None:
    _, key = factories.key(workspace=workspace)
    client = Client(headers={"Authorization": f"Bearer {key}", "Accept": JSON_LINES})
    response: Any = client.get(f"{PREFIX}/export")
    assert (response.status_code, len(b"".join(response.streaming_content).splitlines())) == (200, 6)


def test_a_memory_is_imported(workspace: Workspace, owner: Caller) -> None:
    """R14: and is the same when it is exported again."""
    file = exported(workspace)
    workspace.delete()
    fresh = factories.workspace()
    response = send(fresh, file)
    assert (response.status_code, response.json()["episodes"], response.json()["beliefs"]) == (201, 1, 1)
    assert response.json()["recomputed"] == 1  # nothing bore the belief out
    assert Episode.objects.get().workspace == fresh


def test_a_broken_file_is_told_with_its_line(workspace: Workspace) -> None:
    """R14: nothing is stored."""
    for file, line in ((b"", 1), (b'{"engram":{}}\n', 1)):
        response = send(workspace, file)
        assert is_problem(response, 422)
        assert response.json()["line"] == line
    assert not Episode.objects.exists()


def test_what_is_there_already_is_a_conflict(workspace: Workspace, owner: Caller) -> None:
    """R14: a workspace with memories, or ids of another one of this database."""
    file = exported(workspace)
    for target in (workspace, factories.workspace()):
        assert is_problem(send(target, file), 409)
    assert Episode.objects.count() == 1


def test_other_content_is_no_file(workspace: Workspace) -> None:
    assert is_problem(send(workspace, b"{}", "application/json"), 415)


def test_a_file_beyond_the_limit_is_too_large(workspace: Workspace, owner: Caller, settings: Settings) -> None:
    """R14: the limit is a setting; the command takes files of any size."""
    file = exported(workspace)
    workspace.delete()
    ingest = replace(settings.POLICY.ingest, import_bytes=len(file) - 1)
    settings.POLICY = replace(settings.POLICY, ingest=ingest)
    assert is_problem(send(factories.workspace(), file), 413)
    assert not Episode.objects.exists()


@pytest.mark.parametrize("permission", ["read", "write", "curate"])
def test_only_an_owner_exports_and_imports(workspace: Workspace, permission: str) -> None:
    """R14: nor a key that is limited to projects."""
    project = factories.project(workspace=workspace)
    for who in (caller(permission, workspace=workspace), caller("owner", workspace=workspace, projects=(project,))):
        assert is_problem(who.get("/export"), 403)
        assert is_problem(who.post("/import"), 403)
