"""B22, E3, E4: what claims founded, bore out and ended is taken back with its cycle, and replayed without a call."""

from typing import Any

import pytest
from django.db import connection

from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import release_quarantined, select_quarantined, undo_cycle
from memory.ledger.confidence import find_drift
from memory.models import Belief, Claim, Cycle, Evidence, ModelCall
from tests import factories
from tests.consolidation.telling import Teller
from tests.consolidation.undoing import LENA

pytestmark = pytest.mark.django_db

OAT = "I always drink oat milk in my coffee."
NO_OAT = "I stopped drinking oat milk."
DANA, RAVI = "My manager is Dana.", "My manager is no longer Dana, it is Ravi now."


@pytest.fixture
def mara() -> Teller:
    """Return a workspace in which Mara tells things."""
    return Teller(workspace=factories.workspace())


def undo(mara: Teller, cycle: Cycle) -> None:
    """Undo a cycle, and see that what is left is sound."""
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=mara.now)
    assert find_drift(workspace=mara.workspace)[1] == []


def rebuilt(mara: Teller) -> list[Any]:
    """Replay all cycles; return what stands otherwise than was recorded."""
    calls = ModelCall.objects.count()
    found = rebuild_beliefs(workspace=mara.workspace, now=mara.now).differences
    assert ModelCall.objects.count() == calls
    assert find_drift(workspace=mara.workspace)[1] == []
    return found


def test_what_a_claim_founded_goes_with_its_cycle(mara: Teller) -> None:
    """E4, B22: the belief is invalidated, its episode is held, and its claim stays read."""
    cycle = mara.cycle(DANA)
    assert mara.belief("Dana").status == "active"

    undo(mara, cycle)

    assert mara.belief("Dana").status == "invalidated"
    assert not Evidence.objects.exists()
    assert Claim.objects.get().episode.state == "held"


def test_what_a_claim_challenged_is_active_again(mara: Teller) -> None:
    """E3, B22: with the evidence that it had."""
    mara.cycle(OAT, DANA)
    before = mara.stands()
    cycle = mara.cycle(NO_OAT, RAVI)
    assert {mara.belief("oat milk").status, mara.belief("is Dana").status} == {"challenged"}

    undo(mara, cycle)

    after = mara.stands()
    assert [row for row in after["beliefs"] if row["status"] != "invalidated"] == before["beliefs"]
    assert after["evidence"] == before["evidence"]


def test_what_was_counted_before_and_is_challenged_now_goes_back_as_well(mara: Teller) -> None:
    """E3, B22: the claim ended the belief, and its evidence was there already."""
    mara.cycle(OAT)
    cycle = mara.cycle(NO_OAT, before_gate=lambda: mara.count_against("oat", by=NO_OAT))
    assert (mara.belief("oat").status, Evidence.objects.filter(cycle=cycle).count()) == ("challenged", 0)

    undo(mara, cycle)

    assert mara.belief("oat").status == "active"


def test_a_released_claim_is_heard_again(mara: Teller) -> None:
    """B22: its verdicts of the undone cycle answer for nothing."""
    mara.cycle(OAT)
    cycle = mara.cycle(NO_OAT)
    undo(mara, cycle)
    assert mara.belief("oat").status == "active"

    release_quarantined(episodes=select_quarantined(cycle=Cycle.objects.get(pk=cycle.pk)))
    mara.cycle()

    assert mara.belief("oat").status == "challenged"
    assert Claim.objects.count() == 2


def test_a_released_telling_founds_its_belief_again(mara: Teller) -> None:
    """E4, B22."""
    cycle = mara.cycle(DANA)
    undo(mara, cycle)

    release_quarantined(episodes=select_quarantined(cycle=Cycle.objects.get(pk=cycle.pk)))
    mara.cycle()

    assert sorted(Belief.objects.values_list("status", flat=True)) == ["active", "invalidated"]


def test_claims_are_replayed_as_they_were_heard(mara: Teller) -> None:
    """E3, E4, B22: founded, borne out and ended; each row names its claim."""
    mara.cycle(OAT, DANA, "I moved to Lisbon in March.")
    mara.cycle(RAVI)
    mara.cycle(NO_OAT, "My manager is Ravi.")
    assert not Evidence.objects.filter(claim=None).exists()

    assert rebuilt(mara) == []


def test_what_was_spoilt_is_as_the_claims_have_it_again(mara: Teller) -> None:
    """E3, E4, B22: status, evidence, and of each row the claim that counts."""
    mara.cycle(OAT, DANA)
    mara.cycle(RAVI, NO_OAT)
    before = mara.stands()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memory_evidence")
        cursor.execute("UPDATE memory_belief SET statement = 'Spoilt.', status = 'active', alpha = 9, subject = 'x'")

    assert len(rebuilt(mara)) == 3

    assert mara.stands() == before


def test_a_belief_that_only_was_ended_is_ended_in_a_replay(mara: Teller) -> None:
    """E3, B22: the claim's evidence was there before, and it founded nothing."""
    mara.cycle(OAT)
    mara.cycle(NO_OAT, before_gate=lambda: mara.count_against("oat", by=NO_OAT))
    assert mara.belief("oat").status == "challenged"

    assert not any("status" in difference.columns for difference in rebuilt(mara))
    assert mara.belief("oat").status == "challenged"


def test_a_replay_leaves_an_undone_cycle_out(mara: Teller) -> None:
    """B22."""
    mara.cycle(OAT, DANA)
    undo(mara, mara.cycle(NO_OAT, RAVI))
    mara.cycle("My manager is Dana.")

    assert rebuilt(mara) == []
