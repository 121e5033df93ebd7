"""Turns that cannot be read now wait, and those that never can be wait to be seen (L2, L3)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from memory.consolidation.cycle import database_now, pause_workspace
from memory.domain.taxonomy import ConversationTurn, ExtractedFact, ExtractionResult
from memory.ingest import extract
from memory.language.facts import find_facts
from memory.llm.call_log import DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.models import Conversation, Episode, PauseReason, Turn, Workspace, WorkspacePause
from tests import factories
from tests.ingest.reading import (
    HIGH,
    MINUTE,
    Reader,
    conversation,
    end_waits,
    facts_of,
    let_leases_run_out,
    read,
    say,
    states,
    wake,
)

pytestmark = pytest.mark.django_db


def test_a_server_that_asks_to_wait_is_waited_for(workspace: Workspace, reader: Reader) -> None:
    """L2: by the database's clock, and nobody is blamed."""
    say(HIGH, workspace=workspace)

    def wait(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        raise RetryLater(seconds=90)

    reader.does = wait
    assert read() is False
    reader.does = None
    found = conversation()
    assert (found.claims, found.leased, found.state_reason) == (0, 1, "a model server asked to wait")
    assert Conversation.objects.filter(
        not_before__gt=database_now(plus=80), not_before__lt=database_now(plus=100)
    ).exists()
    assert (wake(), read()) == (0, False)
    end_waits()
    assert (wake(), read()) == (1, True)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (DailyCapReached("the tokens of this day are spent"), "the tokens of this day are spent"),
        (OutOfBudget("no time is left"), "no time is left"),
        (LeaseLost(), ""),
    ],
    ids=["cap", "time", "lease"],
)
def test_what_stops_a_reading_leaves_its_turns_waiting(
    workspace: Workspace, reader: Reader, stop: Exception, reason: str
) -> None:
    """L2, B9: visible, with the reason."""
    say(HIGH, workspace=workspace)

    def refuse(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        raise stop

    reader.does = refuse
    assert read() is False
    assert (states(), conversation().state_reason, Episode.objects.count()) == (["leased"], reason, 0)
    reader.does = None
    end_waits()
    let_leases_run_out()
    assert (wake(), read()) == (1, True)


def test_a_refused_key_lets_the_workspace_rest(workspace: Workspace, reader: Reader) -> None:
    """B9: turns wait meanwhile, and are woken when it rests no more."""
    say(HIGH, workspace=workspace)
    reader.does = lambda turns: ExtractionResult(facts=(), unread=(1,), failure="auth: no such key")
    assert read() is False
    pause = WorkspacePause.objects.get()
    assert (pause.reason, pause.detail, conversation().claims) == ("auth", "auth: no such key", 0)
    reader.does = None
    assert (wake(), read()) == (0, False)
    pause.delete()
    assert (wake(), read()) == (1, True)


def test_turns_of_a_resting_workspace_wait(workspace: Workspace, reader: Reader) -> None:
    """B9: nothing is read, nothing lost."""
    pause_workspace(workspace_id=workspace.pk, reason=PauseReason.FAILURES, detail="cycles")
    say(HIGH, workspace=workspace)
    assert (read(), wake(), reader.asked, states()) == (False, 0, [], ["buffered"])
    WorkspacePause.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert (wake(), read()) == (1, True)


def test_turns_that_got_no_answer_wait_longer_each_time(workspace: Workspace, reader: Reader) -> None:
    """B11: those that did are settled; garbage is never read as nothing found."""
    say("The tide is low.", HIGH, workspace=workspace)
    reader.does = lambda turns: facts_of(turns, unread=[2])
    assert read() is False
    assert (states(), conversation().leased, conversation().claims) == (["extracted", "leased"], 1, 1)
    assert conversation().state_reason == Turn.objects.get(number=2).state_reason == "malformed: no JSON"
    first = Conversation.objects.annotate(wait=F("not_before") - Now()).get().wait
    end_waits()
    assert read() is False
    second = Conversation.objects.annotate(wait=F("not_before") - Now()).get().wait
    assert second > 1.9 * first > timedelta(minutes=3)


def test_poison_is_found_and_becomes_a_dead_letter(workspace: Workspace, reader: Reader) -> None:
    """B11: fewer and fewer turns are read together, until the one that kills is alone; all others are read."""
    say(*(f"Boat {n}." for n in range(8)), workspace=workspace)

    def die_of_five(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        if "Boat 5." in [turn.text for turn in turns]:
            raise RuntimeError("the reader broke")
        return facts_of(turns)

    reader.does = die_of_five
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


def test_a_dead_letter_is_read_again_when_a_person_asks(workspace: Workspace, reader: Reader) -> None:
    """B11: the command lists turns with their reasons, and has them read."""
    dead = factories.turn(workspace=workspace, session="s", state="failed", state_reason="malformed: no JSON")
    out = StringIO()
    call_command("dead_letters", "--workspace", workspace.name, "--turns", "--retry", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert (told["retried"], told["dead_letters"][0]["reason"]) == (1, "malformed: no JSON")
    assert (conversation().due_reason, read(), states()) == ("a person asked for it", True, ["extracted"])
    assert reader.asked == [[dead.content]]


def test_turns_that_take_all_the_time_wait_longer_each_time(workspace: Workspace, reader: Reader) -> None:
    """L2, B11: a server that stalls is not asked every minute for ever; in the end a person is."""
    say(HIGH, workspace=workspace)

    def stall(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        raise OutOfBudget("the deadline is too near for another call")

    reader.does = stall
    waits = []
    for _ in range(5):
        read()
        waits.append(Conversation.objects.annotate(wait=F("not_before") - Now()).get().wait)
        end_waits()
    assert waits[0] > timedelta(seconds=100)
    assert all(later > 1.9 * earlier for earlier, later in pairwise(waits))
    assert (read(), states()) == (False, ["failed"])


def test_a_worker_that_ends_blames_nobody(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L2: the next one reads on at once."""
    say(HIGH, workspace=workspace)

    def end(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        raise OutOfBudget("the deadline is too near for another call")

    reader.does = end
    monkeypatch.setattr(extract, "is_shutting_down", lambda: True)
    assert read() is False
    assert (conversation().claims, conversation().not_before) == (0, None)


def test_a_turn_that_is_refused_says_why(
    workspace: Workspace, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    """L3: counted in the log by reason; the others are stored."""
    say("The tide is low.", HIGH, workspace=workspace)

    def unstorable(turns: Sequence[ConversationTurn]) -> ExtractionResult:
        found = facts_of(turns)
        return replace(found, facts=(found.facts[0], replace(found.facts[1], causes=("\0",))))

    reader.does = unstorable
    assert read() is True
    assert list(Turn.objects.order_by("number").values_list("state", "state_reason")) == [
        ("extracted", ""), ("extracted", Turn.objects.get(number=2).state_reason),
    ]  # fmt: skip
    assert Turn.objects.get(number=2).state_reason.startswith("it was not stored: ")
    assert (Episode.objects.count(), "turns_refused" in caplog.text) == (1, True)


def test_a_turn_that_breaks_the_rules_is_a_dead_letter_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6, L2: after one failure, with its reason; the turns beside it are read."""

    def break_over_one(*, text: str, **given: Any) -> list[ExtractedFact]:
        if "99:99" in text:
            raise ValueError("invalid literal: '99:99'")
        return find_facts(text=text, **given)

    monkeypatch.setattr("memory.llm.offline.find_facts", break_over_one)
    say("I never eat pork.", "The gate of the lab is on 99:99.", "My sister is called Rosa.", HIGH, workspace=workspace)

    assert read(after=MINUTE)

    assert states() == ["extracted", "failed", "extracted", "extracted"]
    [letter] = Turn.objects.exclude(state_reason="")
    assert (letter.number, letter.state_reason) == (2, "our own error: ValueError: invalid literal: '99:99'")
    assert (
        Episode.objects.filter(is_derived=False).count(),
        WorkspacePause.objects.count(),
        conversation().claims,
    ) == (3, 0, 0)


def test_a_turn_out_of_which_rules_cannot_read_a_claim_is_a_dead_letter(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6, E1: where nobody found a fact in it; the turns beside it are episodes."""

    def break_down(**_: Any) -> None:
        raise ValueError("invalid literal: '99:99'")

    monkeypatch.setattr("memory.ingest.turn_facts.read_claims", break_down)
    say("The gate of the lab is on 99:99.", HIGH, workspace=workspace)
    reader.does = lambda turns: facts_of(turns[1:])

    assert read(after=MINUTE)

    assert states() == ["failed", "extracted"]
    assert Turn.objects.get(number=1).state_reason == "our own error: ValueError: invalid literal: '99:99'"
    assert [episode.text for episode in Episode.objects.all()] == [HIGH]
