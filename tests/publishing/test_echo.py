"""Echo: what was published and comes back in a conversation leaves evidence as it was."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from memory.domain.lifecycle import DueReason
from memory.ingest.extract import extract_conversation
from memory.ingest.scheduling import mark_due
from memory.llm.offline_reading import read_offline
from memory.llm.replies import Reading
from memory.llm.requests import ReadingRequest
from memory.models import Belief, Conversation, Episode, Evidence, Turn, Workspace
from memory.publishing.memory_files import enable_file
from memory.publishing.publish import publish_after_cycle
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.consolidation.telling import Said, read_as_told
from tests.integrations.client import ClaudeCode, said
from tests.publishing.test_lived_through import demo_history, run_and_publish
from tests.test_sample_lived_through import live_through

LETTERS, CHOIR = "I only write letters in the afternoon.", "Choir is on Wednesdays."
TOLD = {
    LETTERS: Said(states="{who} only writes letters in the afternoon."),
    CHOIR: Said(states=CHOIR),
    "Choir has moved to Thursdays.": Said(states="Choir is on Thursdays.", ends=CHOIR),
}

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def section(workspace: Workspace, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Live through what the demo tells, end one more cycle today, and return what was published."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    monkeypatch.setattr("memory.ingest.json_lines.wait_for_cycle", run_and_publish)
    file = enable_file(workspace=workspace, path=tmp_path / "MEMORY.md", project=None, user="Agnes", now=factories.NOW)
    live_through(demo_history(), workspace=workspace)
    monkeypatch.setattr("memory.llm.offline.read_offline", read_what_is_told)
    *trusted, change = more_told()
    live_through(trusted, workspace=workspace)
    live_through([change], workspace=workspace)
    published = Path(file.path).read_text()
    publish_after_cycle(cycle_id=run_cycle(workspace, timezone.now()).pk)
    return published


def read_what_is_told(request: ReadingRequest) -> Reading:
    """Read what is laid down here as it is meant, and all else as the offline reader does."""
    if all(message.text in TOLD for message in request.read):
        return read_as_told(request, sentences=TOLD)
    return read_offline(request)


def more_told() -> Iterator[dict[str, Any]]:
    """Yield what Agnes says on the days after, so that one belief is trusted, and one has ended."""
    said = [*(text for _ in range(4) for text in (LETTERS, CHOIR)), "Choir has moved to Thursdays."]
    for number, text in enumerate(said):
        day = datetime(2026, 12, 1 + number, 9, tzinfo=UTC)
        yield {
            "text": text, "occurred_at": day.isoformat(), "session": f"more {number}", "user": "Agnes",
            "source": "human",
        }  # fmt: skip


@pytest.fixture
def client(live_server: Any, workspace: Workspace, tmp_path: Path) -> ClaudeCode:
    """Return Claude Code with the plugin, as Agnes has it."""
    environment = {
        "ENGRAM_URL": live_server.url, "ENGRAM_API_KEY": factories.key("read", "write", workspace=workspace)[1],
        "ENGRAM_TURNS_TIMEOUT_MS": "10000", "ENGRAM_HOOK_DEBUG": "1", "CLAUDE_PLUGIN_DATA": str(tmp_path / "data"),
        "ENGRAM_PROJECT": "", "ENGRAM_USER": "Agnes",
    }  # fmt: skip
    return ClaudeCode(folder=tmp_path, environment=environment)


def hear(client: ClaudeCode, workspace: Workspace, *lines: dict[str, Any]) -> list[str]:
    """Have the hook send a transcript, read its turns, and consolidate; return the turns' states before reading."""
    path = client.write("abc", *lines)
    done = client.fire("Stop", session_id="abc", transcript_path=str(path))
    assert (done.complained, done.status) == ("", 0)
    came_in = list(Turn.objects.order_by("number").values_list("state", flat=True))
    assert len(came_in) == len(lines)
    mark_due(conversations=Conversation.objects.all(), reason=DueReason.AGE)
    for conversation in Conversation.objects.all():
        extract_conversation(conversation_id=conversation.pk, now=timezone.now())
    assert not Turn.objects.exclude(state__in=("extracted", "echo")).exists()
    run_cycle(workspace, timezone.now())
    return came_in


def what_is_held(workspace: Workspace) -> list[list[dict[str, Any]]]:
    """Return every episode, row of evidence and belief, with what consolidation may change of it."""
    evidence = Evidence.objects.filter(belief__workspace=workspace)
    beliefs = Belief.objects.for_workspace(workspace)
    return [
        list(Episode.objects.for_workspace(workspace).order_by("pk").values("pk", "text", "status")),
        list(evidence.order_by("pk").values("pk", "belief", "episode", "verdict", "kind", "base_weight")),
        list(
            beliefs.order_by("pk").values("pk", "statement", "status", "alpha", "beta", "confidence", "evidence_count")
        ),
    ]


def whole(section: str) -> str:
    return section


def within_words(section: str) -> str:
    return f"Look what stands in my file:\n\n{section}\nIs that right?"


def quoted(section: str) -> str:
    return "\n".join(f"> {line}" for line in section.splitlines())


def lines_alone(section: str) -> str:
    return "\n".join(line for line in section.splitlines() if line.startswith("- "))


def without_markers(section: str) -> str:
    """With the headings, as who copies from a rendered file has them."""
    return "\n".join(line for line in section.splitlines() if "ENGRAM" not in line)


def test_a_section_that_comes_back_leaves_evidence_as_it_was(
    client: ClaudeCode, workspace: Workspace, section: str
) -> None:
    """Echo: in each form as the assistant's turn and as the person's, sent by the hook, read and consolidated."""
    held = what_is_held(workspace)
    assert CHOIR.removesuffix(".") in section.partition("## Former Beliefs")[2]
    forms = [form(section) for form in (whole, lines_alone, quoted, without_markers, within_words)]
    roles = ("assistant", "user")

    came_in = hear(
        client, workspace, *(said(role, text, f"{role} {n}") for n, text in enumerate(forms) for role in roles)
    )

    assert what_is_held(workspace)[1:] == held[1:]  # words around it are an episode, which founds nothing
    assert came_in[:4] == ["echo"] * 4
    assert "buffered" in came_in  # so that some of it was read


def test_the_same_words_from_a_person_count(client: ClaudeCode, workspace: Workspace, section: str) -> None:
    """Echo: it is the form of the lines that tells them; so the test above would see a change."""
    assert "Agnes only writes letters in the afternoon." in section
    episodes, evidence, _ = what_is_held(workspace)

    hear(client, workspace, said("user", LETTERS, "u1"))

    more_episodes, more_evidence, _ = what_is_held(workspace)
    assert len(more_episodes) == len(episodes) + 1
    assert len(more_evidence) > len(evidence)
