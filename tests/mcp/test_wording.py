"""The same cause is told in the same sentence, at whichever door."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.access import NO_KEY
from memory.mcp.catalogue import TOOLS
from memory.mcp.interface import ToolRefused
from memory.models import Workspace
from tests import factories
from tests.api.caller import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def by_tool(name: str, key: str, **arguments: Any) -> str:
    """Return what a tool refuses a call with."""
    [tool] = [tool for tool in TOOLS if tool.name == name]
    with pytest.raises(ToolRefused) as refusal:
        tool.call(key_text=key, arguments=arguments)
    return str(refusal.value)


def test_an_unknown_key(workspace: Workspace) -> None:
    with pytest.raises(CommandError) as by_command:
        call_command("mcp", key="engram_wrong")
    told = {by_tool("memory_status", "engram_wrong"), Caller("engram_wrong").get("/status").json()["detail"]}
    assert told == {str(by_command.value)} == {"This key is unknown or revoked."}


def test_no_key() -> None:
    assert Caller(None).get("/status").json()["detail"] == NO_KEY


@pytest.mark.parametrize("command", ["undo_cycle", "cancel_cycle"])
def test_a_cycle_that_is_not_there(command: str) -> None:
    """R15: the command line is wrong, whichever command it is of."""
    with pytest.raises(CommandError, match=r"^There is no cycle cy_000000000000\.$") as refused:
        call_command(command, "cy_000000000000")
    assert refused.value.returncode == 2


def test_a_missing_permission(workspace: Workspace) -> None:
    reads = factories.key("read", workspace=workspace)[1]
    erased = Caller(reads).request("DELETE", "/memories/ep_000000000000?erase=true").json()["detail"]
    told = {by_tool("memory_save", reads, text="x"), Caller(reads).post("/episodes", {"text": "x"}).json()["detail"]}
    assert told == {erased} == {"This key may not do that: it takes a key with the permission write."}


def test_erasing_takes_an_owner_without_limits(workspace: Workspace) -> None:
    """As every other route that takes one says it."""
    project = factories.project(workspace=workspace)
    writes, limited = (
        factories.key("write", workspace=workspace)[1],
        factories.key(workspace=workspace, projects=(project,))[1],
    )
    told = [
        Caller(key).request("DELETE", "/memories/ep_000000000000?erase=true").json()["detail"]
        for key in (writes, limited)
    ]
    assert told == [
        "This key may not do that: it takes a key with the permission owner.",
        "This key is limited to projects: that takes a key without such a limit.",
    ]


def test_a_project_that_is_not_there(workspace: Workspace) -> None:
    key = factories.key(workspace=workspace)[1]
    asked = {"query": "x", "project": "nowhere"}
    assert by_tool("memory_recall", key, **asked) == Caller(key).post("/recall", asked).json()["detail"]


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("occurred_before", {"occurred_after": "2026-03-02T00:00:00Z", "occurred_before": "2026-03-01T00:00:00Z"}),
        ("graph", {"graph": True, "as_of": "2026-03-01T00:00:00Z"}),
    ],
)
def test_a_question_that_contradicts_itself(workspace: Workspace, field: str, asked: dict[str, Any]) -> None:
    key = factories.key(workspace=workspace)[1]
    [told] = Caller(key).post("/recall", {"query": "x", **asked}).json()["errors"][field]
    assert by_tool("memory_recall", key, query="x", **asked) == f"{field}: {told}"
