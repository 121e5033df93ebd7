"""R1, E1, C1: what somebody says is read into claims by a model, and these meet what is believed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memory.ledger.evidence import CLASH_REASON
from memory.models import Belief, Claim, Evidence, Lineage
from tests.consolidation.world import World
from tests.facts.telling import actions, remembrance_of, tell
from tests.model_server_acts import Act, Asked, claim, garbage

pytestmark = pytest.mark.django_db

SUMUP, SQUARE = "Ana takes cards with SumUp.", "Ana takes cards with Square."


def read_as(world: World, *claims: dict[str, Any], **told: Any) -> None:
    """Have the model read every message as these claims, or as one."""

    def answer(asked: Asked) -> Act | dict[str, Any]:
        if asked.purpose != "read":
            return world.answer(asked)
        return {"claims": [claim(asked.messages[0], **one) for one in claims or (told,)]}

    world.server.script = answer


@pytest.fixture
def sumup(world: World) -> Belief:
    """Hold a belief that three episodes bear out."""
    belief = world.hold(SUMUP, about="cards", supports=3, user="ana")
    world.directions.place(SQUARE, {"cards": 0.5, "square": 0.86})
    return belief


def say(world: World, text: str) -> Any:
    world.directions.place(text, {"noise": 1.0})
    return tell(world, text, user="ana", source="human", session="later")


def test_a_change_challenges_what_it_ends_and_founds_what_comes(world: World, sumup: Belief) -> None:
    """C1: without a question more, since the reader names what has ended."""
    read_as(world, claim=SQUARE, mode="change", told=True, ended=["SumUp"], value="Square")
    told = say(world, "sumup is out, square does the cards now")

    sumup.refresh_from_db()
    assert (sumup.status, sumup.status_reason, sumup.beta) == ("challenged", "announced", 4.0)
    square = Belief.objects.get(statement=SQUARE)
    assert (square.confidence, Lineage.objects.get(child=square).parent) == (pytest.approx(2 / 3), sumup)
    assert (world.calls("read"), world.calls("contradict"), world.calls("remember")) == (1, 0, 0)
    assert actions(told) == [(square.pk, "created"), (sumup.pk, "superseded")]


def test_a_change_that_only_a_model_sees_is_asked_about(world: World, sumup: Belief) -> None:
    """R3: also where it is less alike than what may contradict otherwise."""
    read_as(world, claim=SQUARE, mode="change", told=True)
    world.contradictions[SQUARE] = SUMUP
    say(world, "square does the cards now")

    sumup.refresh_from_db()
    assert (sumup.status, sumup.beta) == ("challenged", 4.0)
    row = Evidence.objects.get(belief=sumup, verdict="CONTRADICTS")
    assert (row.basis, row.kind, row.reason) == ("model", "announced", "as scripted")
    assert row.call_id == remembrance_of(say(world, "square does the cards now")).facts.get().contradiction_call_id


def test_another_value_that_nobody_announces_counts_first(world: World, sumup: Belief) -> None:
    """E4: it founds nothing while the old one stands."""
    read_as(world, claim=SQUARE, told=True)
    world.directions.place(SQUARE, {"cards": 0.8, "square": 0.6})
    world.contradictions[SQUARE] = SUMUP
    say(world, "we take cards with square")

    sumup.refresh_from_db()
    assert (sumup.status, sumup.beta) == ("active", 2.0)
    assert not Belief.objects.filter(statement=SQUARE).exists()


def test_what_was_asked_of_the_assistant_asserts_nothing(world: World, sumup: Belief) -> None:
    """E2: a question is a claim, and no evidence."""
    read_as(world, claim=SQUARE, mode="asked")
    told = say(world, "should we take square instead?")

    assert (actions(told), Evidence.objects.filter(verdict="CONTRADICTS").count()) == ([], 0)
    assert Claim.objects.get().mode == "asked"


def test_speech_that_no_model_can_read_is_taken_as_it_stands(world: World) -> None:
    """R1: what was to be remembered is never lost."""
    world.server.then(garbage(), garbage(), purpose="read")
    text = "Ana takes her tea black."
    told = say(world, text)

    assert [one.action for one in told.beliefs] == ["created"]
    assert Belief.objects.get().statement == text


def test_an_end_that_only_a_model_sees_comes_on_its_day(world: World, sumup: Belief) -> None:
    """C1: rules say nothing of it when the day has come, either."""
    day = datetime(2026, 3, 20, tzinfo=UTC)
    read_as(world, claim=SQUARE, mode="change", told=True, since="2026-03-20")
    world.contradictions[SQUARE] = SUMUP
    say(world, "from 20 March square does the cards")
    sumup.refresh_from_db()
    assert (sumup.status, sumup.valid_until) == ("active", day)
    assert not Belief.objects.filter(statement=SQUARE).exists()

    world.cycle(after=day - world.now)
    sumup.refresh_from_db()
    assert (sumup.status, sumup.status_reason, sumup.beta) == ("challenged", "announced", 4.0)
    assert Belief.objects.get(statement=SQUARE).valid_from == day


def test_a_text_that_says_both_bears_out_nothing(world: World, sumup: Belief) -> None:
    """E1: what one of its claims bears out and another contradicts is true in part, and the answer says no more."""
    read_as(world, {"claim": SUMUP, "told": True}, {"claim": SQUARE, "told": True})
    world.directions.place(SQUARE, {"cards": 0.8, "square": 0.6})
    world.contradictions[SQUARE] = SUMUP
    told = say(world, "we take cards with sumup, and with square")

    row = Evidence.objects.get(belief=sumup, episode=told.episode_id)
    assert (row.verdict, row.reason) == ("PARTIAL", CLASH_REASON)
    assert (sumup.pk, "reinforced") not in actions(told)
    assert "heard" in remembrance_of(told).facts.values_list("outcome", flat=True)
