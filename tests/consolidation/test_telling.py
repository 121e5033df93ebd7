"""E2, E3, E4: what is told plainly is believed at once; what changes it counts, and what nobody asserted does not."""

import pytest

from memory.ledger.confidence import find_drift
from memory.models import Belief, Claim, Evidence
from tests import factories
from tests.consolidation.telling import Teller

pytestmark = pytest.mark.django_db

DANA = "My manager is Dana."


@pytest.fixture
def mara() -> Teller:
    """Return a workspace in which Mara tells things."""
    return Teller(workspace=factories.workspace())


def statements(mara: Teller, status: str = "active") -> list[str]:
    """List what is believed, and check that the numbers are those of the evidence."""
    assert find_drift(workspace=mara.workspace)[1] == []
    found = Belief.objects.filter(workspace=mara.workspace, status=status)
    return sorted(found.values_list("statement", flat=True))


def test_one_plain_sentence_founds_a_belief_at_two_thirds(mara: Teller) -> None:
    """E4: by its claim, which is its only evidence."""
    mara.cycle(DANA)

    belief = mara.belief("Dana")
    assert (belief.statement, belief.status, belief.is_told) == ("Mara's manager is Dana.", "active", True)
    assert belief.confidence == pytest.approx(2 / 3)
    [evidence] = Evidence.objects.filter(belief=belief)
    assert evidence.claim == Claim.objects.get()
    assert evidence.is_founding


def test_what_is_said_again_is_evidence_and_no_second_belief(mara: Teller) -> None:
    """E3, E4."""
    mara.cycle(DANA)
    mara.cycle("By the way, Dana is my manager.")

    assert statements(mara) == ["Mara's manager is Dana."]
    assert mara.belief("Dana").confidence == pytest.approx(3 / 4)


def test_one_message_that_says_it_twice_founds_nothing_anew(mara: Teller) -> None:
    """E1, E4: an episode is evidence but once; its second claim is borne out by the same belief."""
    mara.cycle(DANA)
    mara.cycle("Dana is my manager. So my boss is Dana.")

    assert statements(mara) == ["Mara's manager is Dana."]


def test_an_announced_change_challenges_the_old_and_founds_the_new(mara: Teller) -> None:
    """E3, E4: in the cycle that hears of it, by one sentence."""
    mara.cycle(DANA)
    mara.cycle("My manager is no longer Dana, it is Ravi now.")

    assert statements(mara, "challenged") == ["Mara's manager is Dana."]
    [new] = statements(mara)
    assert "Ravi" in new


def test_another_value_unannounced_counts_against_and_waits_for_a_second(mara: Teller) -> None:
    """E3, E4: one word does not end what was believed; a second one does, and takes its place."""
    mara.cycle(DANA)
    mara.cycle("My manager is Ravi.")
    assert statements(mara) == ["Mara's manager is Dana."]
    assert mara.belief("Dana").beta > 1

    mara.cycle("Ravi is my manager.")
    assert "Mara's manager is Dana." not in statements(mara)
    assert any("Ravi" in one for one in statements(mara))


def test_what_was_said_before_the_newest_support_does_not_count_against_it(mara: Teller) -> None:
    """E3: a message that comes late."""
    mara.cycle(DANA)
    before = mara.belief("Dana").beta
    mara.tell("My manager is Ravi.", occurred_at=factories.NOW)
    mara.cycle()

    assert mara.belief("Dana").beta == before


@pytest.mark.parametrize(
    "said",
    [
        "Is my manager Dana?",
        "If Dana were my manager, I would stay.",
        "I wish my manager were Dana.",
        'My brother said "my manager is Dana".',
        "Thanks, that helped a lot!",
    ],
)
def test_what_nobody_asserts_founds_nothing(mara: Teller, said: str) -> None:
    """E1, E4: asked, supposed, wished, quoted, or no statement at all."""
    mara.cycle(said)

    assert statements(mara) == []


def test_what_an_assistant_says_of_its_user_is_evidence_of_nothing(mara: Teller) -> None:
    """E2: neither for nor against, however often."""
    mara.cycle(DANA)
    before = mara.stands()
    for _ in range(3):
        mara.tell("Your manager is Ravi.", source="ai")
    mara.cycle()

    assert mara.stands() == before


def test_what_was_asked_to_be_remembered_is_believed_though_no_slot_is_named(mara: Teller) -> None:
    """E4: the words decide, not what they are about."""
    mara.cycle("Remember that the spare key hangs behind the boiler.")

    [held] = statements(mara)
    assert "spare key" in held
    assert "boiler" in held


def test_two_people_s_beliefs_do_not_meet(mara: Teller) -> None:
    """E3: of one user's claims nothing counts for or against another's belief."""
    mara.cycle(DANA)
    before = mara.stands()["evidence"]
    mara.tell("My manager is Ravi.", user="tomas")
    mara.cycle()

    assert [row for row in mara.stands()["evidence"] if row in before] == before
    assert mara.belief("Dana").beta == 1
    assert mara.belief("Ravi").user == "tomas"
