"""F1, F3: what is told plainly is believed at once; what changes it counts, and what nobody asserted does not."""

import pytest

from memory.ledger.confidence import find_drift
from memory.models import Belief, Claim, Evidence
from tests import factories
from tests.consolidation.telling import Teller

pytestmark = pytest.mark.django_db

DANA, DANAS, RAVIS = "My manager is Dana.", "Mara's manager is Dana.", "Mara's manager is Ravi."


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
    """F3: by its claim, which is its only evidence."""
    mara.cycle(DANA)

    belief = mara.belief("Dana")
    assert (belief.statement, belief.status, belief.is_told) == (DANAS, "active", True)
    assert belief.confidence == pytest.approx(2 / 3)
    [evidence] = Evidence.objects.filter(belief=belief)
    assert evidence.claim == Claim.objects.get()
    assert evidence.is_founding


def test_what_is_said_again_is_evidence_and_no_second_belief(mara: Teller) -> None:
    mara.cycle(DANA)
    mara.cycle("Dana is my manager.")

    assert statements(mara) == [DANAS]
    assert mara.belief("Dana").confidence == pytest.approx(3 / 4)


def test_what_is_said_twice_in_one_cycle_founds_one_belief(mara: Teller) -> None:
    """F1: the second message names what the first one founded."""
    mara.cycle(DANA, "Dana is my manager.")

    assert statements(mara) == [DANAS]
    assert mara.belief("Dana").alpha == 3.0


def test_one_message_that_says_it_twice_counts_once(mara: Teller) -> None:
    mara.cycle(DANA)
    mara.cycle("Dana is my manager. So my boss is Dana.")

    assert statements(mara) == [DANAS]
    assert mara.belief("Dana").alpha == 3.0


def test_a_change_closes_the_old_and_founds_the_new(mara: Teller) -> None:
    """F3: in the cycle that hears of it, by one sentence."""
    mara.cycle(DANA)
    mara.cycle("My manager is no longer Dana, it is Ravi now.")

    assert statements(mara, "invalidated") == [DANAS]
    assert statements(mara) == [RAVIS]


def test_what_others_say_has_ended_closes_nothing(mara: Teller) -> None:
    """F3, B21: a user's word challenges what everybody's belief is, and does not end it."""
    mara.cycle(DANA)
    Belief.objects.update(user="")

    mara.cycle("My manager is no longer Dana, it is Ravi now.")

    assert statements(mara, "invalidated") == []
    assert mara.belief("Dana").beta > 1.0


def test_what_was_said_before_the_newest_support_does_not_count_against_it(mara: Teller) -> None:
    """F2: a message that comes late."""
    mara.cycle(DANA)
    before = mara.belief("Dana").beta
    mara.tell("My manager is Ravi.", occurred_at=factories.NOW)
    mara.cycle()

    assert mara.belief("Dana").beta == before
    assert mara.belief("Dana").status == "active"


def test_what_nobody_asserts_founds_nothing(mara: Teller) -> None:
    mara.cycle("Is my manager Dana?", "Thanks, that helped a lot!")

    assert statements(mara) == []
    assert not Claim.objects.exists()


def test_what_an_assistant_says_of_its_user_is_evidence_of_nothing(mara: Teller) -> None:
    """E2: neither for nor against, however often."""
    mara.cycle(DANA)
    before = mara.stands()
    for _ in range(3):
        mara.tell("My manager is no longer Dana, it is Ravi now.", source="ai")
    mara.cycle()

    assert mara.stands() == before


def test_two_people_s_beliefs_do_not_meet(mara: Teller) -> None:
    """F2: of one user's messages nothing counts for or against another's belief."""
    mara.cycle(DANA)
    before = mara.stands()["evidence"]
    mara.tell("My manager is Ravi.", user="tomas")
    mara.cycle()

    assert [row for row in mara.stands()["evidence"] if row in before] == before
    assert mara.belief("Dana").beta == 1
    assert mara.belief("Ravi").user == "tomas"
