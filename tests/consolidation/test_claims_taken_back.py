"""B22, F3: what a reading founded, bore out and ended is taken back with its cycle, and replayed without a call."""

from typing import Any

import pytest
from django.db import connection

from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import undo_cycle
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.ledger.confidence import find_drift
from memory.models import Belief, Claim, Cycle, Evidence, ModelCall
from tests import factories
from tests.consolidation.telling import Teller
from tests.consolidation.undoing import LENA

pytestmark = pytest.mark.django_db

OAT = "I always drink oat milk in my coffee."
NO_OAT = "I stopped drinking oat milk."
DANA, RAVI = "My manager is Dana.", "My manager is no longer Dana, it is Ravi now."
IN_APRIL = "From April 1st my manager will be Ravi instead of Dana."


@pytest.fixture
def mara() -> Teller:
    """Return a workspace in which Mara tells things."""
    return Teller(workspace=factories.workspace())


def undo(mara: Teller, cycle: Cycle) -> None:
    """Undo a cycle, and see that what is left is sound."""
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=mara.now)
    assert find_drift(workspace=mara.workspace)[1] == []


def release(mara: Teller, cycle: Cycle) -> None:
    """Release what an undone cycle holds, and run another."""
    release_quarantined(episodes=select_quarantined(cycle=Cycle.objects.get(pk=cycle.pk)))
    mara.cycle()


def rebuilt(mara: Teller) -> list[Any]:
    """Replay all cycles; return what stands otherwise than was recorded."""
    calls = ModelCall.objects.count()
    found = rebuild_beliefs(workspace=mara.workspace, now=mara.now).differences
    assert ModelCall.objects.count() == calls
    assert find_drift(workspace=mara.workspace)[1] == []
    return found


def test_what_a_claim_founded_goes_with_its_cycle(mara: Teller) -> None:
    """B22: the belief is invalidated, and its episode is held."""
    cycle = mara.cycle(DANA)
    assert mara.belief("Dana").status == "active"

    undo(mara, cycle)

    assert mara.belief("Dana").status == "invalidated"
    assert not Evidence.objects.exists()
    assert Claim.objects.get().episode.state == "held"


def test_what_a_reading_ended_is_active_again(mara: Teller) -> None:
    """B22: with the evidence that it had, and for as long as it held."""
    mara.cycle(OAT, DANA)
    before = mara.stands()
    cycle = mara.cycle(NO_OAT, RAVI)
    assert {mara.belief("oat milk").status, mara.belief("is Dana").status} == {"invalidated"}

    undo(mara, cycle)

    after = mara.stands()
    assert [row for row in after["beliefs"] if row["status"] != "invalidated"] == before["beliefs"]
    assert after["evidence"] == before["evidence"]


def test_what_was_announced_is_announced_no_more(mara: Teller) -> None:
    """B22: though nothing has changed yet."""
    mara.cycle(DANA)
    before = mara.stands()
    cycle = mara.cycle(IN_APRIL)

    undo(mara, cycle)

    assert [row for row in mara.stands()["beliefs"] if row["status"] != "invalidated"] == before["beliefs"]


def test_what_a_reading_opened_again_is_closed_with_it(mara: Teller) -> None:
    """B22: what it closed for that holds again."""
    mara.cycle(DANA)
    mara.cycle(RAVI)
    cycle = mara.cycle("My manager is no longer Ravi, it is Dana now.")
    assert Belief.objects.get(status="active").statement == "Mara's manager is Dana."

    undo(mara, cycle)

    assert Belief.objects.get(status="active").statement == "Mara's manager is Ravi."
    assert rebuilt(mara) == []


def test_a_released_message_is_heard_again(mara: Teller) -> None:
    """B22: it is read anew, against what is believed by then; its claims of the undone cycle answer for nothing."""
    mara.cycle(DANA)
    cycle = mara.cycle(RAVI)
    undo(mara, cycle)
    assert mara.belief("is Dana").status == "active"

    release(mara, cycle)

    assert mara.belief("is Dana").status == "invalidated"
    assert Belief.objects.get(status="active").statement == "Mara's manager is Ravi."
    assert Claim.objects.filter(sentence="Mara's manager is Ravi.").count() == 1
    assert rebuilt(mara) == []


def test_a_released_telling_founds_its_belief_again(mara: Teller) -> None:
    """B22."""
    cycle = mara.cycle(DANA)
    undo(mara, cycle)

    release(mara, cycle)

    assert sorted(Belief.objects.values_list("status", flat=True)) == ["active", "invalidated"]


def test_readings_are_replayed_as_they_were_heard(mara: Teller) -> None:
    """F3, B22: founded, borne out, ended, come back, and denied."""
    mara.cycle(OAT, DANA, "I moved to Lisbon in March.")
    mara.cycle(RAVI)
    mara.cycle(NO_OAT, "My manager is Ravi.")
    mara.cycle("My manager is no longer Ravi, it is Dana now.", OAT)
    mara.cycle("Dana was never my manager.")
    mara.cycle("Dana was never my manager.")
    assert not Evidence.objects.filter(is_founding=True, claim=None).exists()

    assert rebuilt(mara) == []


def test_what_was_announced_is_replayed_before_and_after_its_day(mara: Teller) -> None:
    """C1, B22."""
    mara.cycle(DANA)
    mara.cycle(IN_APRIL)
    assert rebuilt(mara) == []
    mara.cycle(after=mara.now.replace(month=4, day=2) - mara.now)
    assert mara.belief("is Dana").status == "invalidated"

    assert rebuilt(mara) == []


def test_what_was_spoilt_is_as_the_readings_have_it_again(mara: Teller) -> None:
    """F3, B22: status, evidence, and of each row the claim that counts."""
    mara.cycle(OAT, DANA)
    mara.cycle(RAVI, NO_OAT)
    before = mara.stands()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memory_evidence")
        cursor.execute("UPDATE memory_belief SET statement = 'Spoilt.', status = 'active', alpha = 9, subject = 'x'")

    assert len(rebuilt(mara)) == 3

    assert mara.stands() == before


def test_a_replay_leaves_an_undone_cycle_out(mara: Teller) -> None:
    """B22."""
    mara.cycle(OAT, DANA)
    undo(mara, mara.cycle(NO_OAT, RAVI))
    mara.cycle(DANA)

    assert rebuilt(mara) == []
