"""Turns that cannot be stored now wait, and those over which our own code breaks wait to be seen (L2, E6)."""

import json
from collections.abc import Sequence
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from memory.consolidation.cycle import pause_workspace
from memory.domain.taxonomy import ConversationTurn
from memory.ingest import extract, turn_episodes
from memory.ingest.turn_episodes import store_turns
from memory.language.sentences import strip_echo
from memory.models import Conversation, Episode, PauseReason, Turn, Workspace, WorkspacePause
from tests import factories
from tests.ingest.reading import HIGH, MINUTE, Reader, conversation, let_leases_run_out, read, say, states, wake

pytestmark = pytest.mark.django_db


def test_turns_of_a_resting_workspace_are_stored(workspace: Workspace, reader: Reader) -> None:
    """B9: no model is asked for that; they are read when it rests no more."""
    pause_workspace(workspace_id=workspace.pk, reason=PauseReason.FAILURES, detail="cycles")
    say(HIGH, workspace=workspace)
    assert (wake(), read(), reader.asked, states()) == (1, True, [], ["extracted"])
    WorkspacePause.objects.update(until=timezone.now() - timedelta(seconds=1))
    say(HIGH + " Or west.", workspace=workspace)
    assert (wake(), read()) == (1, True)
    assert reader.asked == [[HIGH, HIGH + " Or west."]]


def test_a_resting_workspace_is_not_woken_for_a_summary(workspace: Workspace, reader: Reader) -> None:
    """B9, R8: a model would be asked."""
    say(*(f"Boat {n}." for n in range(5)), workspace=workspace)
    read()
    Conversation.objects.update(sum_due_at=timezone.now() - timedelta(seconds=1))
    pause_workspace(workspace_id=workspace.pk, reason=PauseReason.FAILURES, detail="cycles")
    assert (wake(after=16 * MINUTE), read(after=16 * MINUTE), reader.summed_up) == (0, False, [])
    WorkspacePause.objects.all().delete()
    assert (wake(after=16 * MINUTE), read(after=16 * MINUTE), len(reader.summed_up)) == (1, False, 1)


def test_poison_is_found_and_becomes_a_dead_letter(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B11: fewer and fewer turns are stored together, until the one that kills is alone; all others are stored."""
    say(*(f"Boat {n}." for n in range(8)), workspace=workspace)

    def die_of_five(*, turns: Sequence[ConversationTurn], **given: Any) -> Any:
        if "Boat 5." in [turn.text for turn in turns]:
            raise RuntimeError("out of memory")
        return store_turns(turns=turns, **given)

    monkeypatch.setattr(extract, "store_turns", die_of_five)
    for hour in range(40):
        try:
            read(after=hour * MINUTE)
        except RuntimeError:
            let_leases_run_out()
        wake(after=60 * MINUTE)
    assert states() == ["extracted"] * 5 + ["failed"] + ["extracted"] * 2
    dead = Turn.objects.get(state="failed")
    assert (dead.state_reason, dead.settled_at is not None) == ("cost too many workers", True)
    assert (Episode.objects.count(), conversation().buffered, conversation().leased) == (7, 0, 0)


def test_a_dead_letter_is_stored_when_a_person_asks(workspace: Workspace, reader: Reader) -> None:
    """B11: the command lists turns with their reasons, and has them stored and read."""
    dead = factories.turn(workspace=workspace, session="s", state="failed", state_reason="cost too many workers")
    out = StringIO()
    call_command("dead_letters", "--workspace", workspace.name, "--turns", "--retry", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["retried"], told["dead_letters"][0]["reason"]) == (1, "cost too many workers")
    assert (conversation().due_reason, read(), states()) == ("a person asked for it", True, ["extracted"])
    assert reader.asked == [[dead.content]]


def test_a_turn_that_is_refused_says_why(
    workspace: Workspace, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    """F5: counted in the log by reason; the others are stored."""
    say("The tide is low.", HIGH, workspace=workspace)
    Turn.objects.filter(content=HIGH).update(occurred_at=timezone.now() + timedelta(days=9000))
    assert read() is True
    assert states() == ["extracted", "extracted"]
    first, second = Turn.objects.order_by("number").values_list("state_reason", flat=True)
    assert first == ""
    assert second.startswith("it was not stored: ")
    assert (Episode.objects.count(), "turns_refused" in caplog.text) == (1, True)


def test_a_turn_that_breaks_our_own_code_is_a_dead_letter_alone(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6, L2: after one failure, with its reason; the turns beside it are stored and read."""

    def break_over_one(text: str, speaker: str = "") -> str:
        if "99:99" in text:
            raise ValueError("invalid literal: '99:99'")
        return strip_echo(text, speaker)

    monkeypatch.setattr(turn_episodes, "strip_echo", break_over_one)
    say("I never eat pork.", "The gate is on 99:99.", "My sister is called Rosa.", HIGH, workspace=workspace)

    assert read(after=MINUTE)

    assert states() == ["extracted", "failed", "extracted", "extracted"]
    [letter] = Turn.objects.exclude(state_reason="")
    assert (letter.number, letter.state_reason) == (2, "our own error: ValueError: invalid literal: '99:99'")
    assert (Episode.objects.count(), WorkspacePause.objects.count(), conversation().claims) == (3, 0, 0)
