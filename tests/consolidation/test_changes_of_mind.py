"""C1, C2, F1, F3: what is believed when the world changes, as the readings of what Mara says have it."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.rebuild import rebuild_beliefs
from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import erase_memories
from memory.facts.remember import run_remember_job
from memory.forgetting import forget_episode
from memory.ledger.confidence import find_drift
from memory.models import Belief, BeliefEmbedding, ClusterJob, Cycle, Episode, Evidence, Lineage, RememberJob
from tests import factories
from tests.consolidation.inline import run_steps
from tests.consolidation.telling import DAY, Teller, reading_as_told

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DANA, NEWS = "My manager is Dana.", "My manager is no longer Dana, it is Ravi now."
TURNED_BACK, IN_APRIL = (
    "My manager is no longer Ravi, it is Dana now.", "From April 1st my manager will be Ravi instead of Dana.",
)  # fmt: skip
DANAS, RAVIS, TOMS = (f"Mara's manager is {name}." for name in ("Dana", "Ravi", "Tom"))
APRIL = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def mara() -> Teller:
    """Return a workspace in which Mara tells things."""
    return Teller(workspace=factories.workspace())


def believed(mara: Teller, status: str = "active") -> list[str]:
    """List what is believed, and check that the numbers are those of the evidence."""
    assert find_drift(workspace=mara.workspace)[1] == []
    return [belief.statement for belief in beliefs(mara, status)]


def beliefs(mara: Teller, status: str = "active") -> list[Belief]:
    found = Belief.objects.filter(workspace=mara.workspace, status=status)
    return list(found.order_by("created_at", "pk"))


def is_rebuilt(mara: Teller) -> bool:
    """Tell whether replaying what was recorded gives what is believed."""
    differences = rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences
    assert differences == []
    return True


def test_a_change_that_turns_back(mara: Teller) -> None:
    """C2, F1: each time the old one is closed and keeps its time; what turns back is a belief of its own."""
    mara.cycle(DANA)
    assert believed(mara) == [DANAS]

    mara.cycle(NEWS)
    announced = mara.now
    [ravi], [dana] = beliefs(mara), beliefs(mara, "invalidated")
    assert (ravi.statement, ravi.valid_from) == (RAVIS, announced)
    assert (dana.statement, dana.status_reason, dana.valid_until) == (DANAS, "changed", announced)
    assert Lineage.objects.get(parent=dana).child == ravi

    mara.cycle(TURNED_BACK)
    [again] = beliefs(mara)
    assert (again.statement, again.valid_from) == (DANAS, mara.now)
    assert again.pk != dana.pk
    assert Lineage.objects.get(parent=dana, kind="return").child == again
    assert BeliefEmbedding.objects.filter(belief=again, is_active=True).exists()
    assert {belief.pk for belief in beliefs(mara, "invalidated")} == {dana.pk, ravi.pk}
    dana.refresh_from_db()
    assert (dana.alpha, dana.beta) == (2.0, 1.0)


def test_a_flood_of_one_session_closes_nothing(mara: Teller) -> None:
    """C1: twenty times the opposite in one conversation."""
    for _ in range(4):
        mara.cycle(DANA)
    before = mara.belief("Dana").alpha
    assert before == 5.0

    for number in range(20):
        mara.tell(f"Dana was never my manager. Number {number}.", origin="session:flood")
    mara.cycle()

    dana = mara.belief("Dana")
    assert (dana.alpha, dana.status, dana.valid_until) == (before, "active", None)
    assert dana.beta > 3.0
    assert not beliefs(mara, "invalidated")


def test_what_is_denied_as_often_as_it_was_told_is_challenged(mara: Teller) -> None:
    """F3: it holds no more by itself; two words for it uphold it."""
    mara.cycle(DANA)
    mara.cycle("Dana was never my manager.")
    [dana] = beliefs(mara, "challenged")
    assert (dana.status_reason, dana.confidence) == ("disputed", pytest.approx(0.5))

    mara.cycle(DANA)
    assert believed(mara, "challenged") == [DANAS]
    mara.cycle(DANA)

    [dana] = beliefs(mara)
    assert (dana.statement, dana.status_reason) == (DANAS, "upheld")


def test_a_dispute_ends_with_the_next_word_against_it(mara: Teller) -> None:
    """C1: what is disputed is closed as of the word that disputed it."""
    mara.cycle(DANA)
    mara.cycle("Dana was never my manager.")
    disputed = mara.now
    mara.cycle("Dana was never my manager.")

    [dana] = beliefs(mara, "invalidated")
    assert (dana.status_reason, dana.valid_until) == ("changed", disputed)


def test_what_is_never_said_again_and_then_ended_closes_what_was_disputed(mara: Teller) -> None:
    """F3: the day is that of the end."""
    mara.cycle(DANA)
    mara.cycle("Dana was never my manager.")
    mara.cycle(NEWS)

    assert believed(mara, "invalidated") == [DANAS]
    assert believed(mara) == [RAVIS]
    assert mara.belief("Ravi").valid_from == mara.belief("Dana").valid_until


def test_an_old_message_that_comes_late_says_nothing_of_what_holds_since(mara: Teller) -> None:
    """C2, F2: it speaks of its own time, and says nothing against what has been so since."""
    mara.cycle("My manager is Ravi.")
    mara.cycle("Ravi is my manager.")
    [ravi] = beliefs(mara)
    before = ravi.alpha, ravi.beta

    for month in range(1, 6):
        said_at = datetime(2025, month, 3, 9, tzinfo=UTC)
        mara.tell(TURNED_BACK, occurred_at=said_at, session=f"archive {month}")
        mara.cycle()

    ravi.refresh_from_db()
    assert (ravi.status, ravi.valid_until, (ravi.alpha, ravi.beta)) == ("active", None, before)
    [dana] = beliefs(mara, "invalidated")  # it held until then
    assert dana.valid_until == datetime(2026, 3, 2, tzinfo=UTC)
    assert believed(mara) == [RAVIS]


def closed_dana(mara: Teller) -> tuple[Belief, Belief]:
    """Let Dana be the manager until Ravi is; return both beliefs."""
    mara.cycle(DANA)
    mara.cycle(DANA)
    mara.cycle(NEWS)
    mara.cycle("Ravi is my manager.")
    [dana], [ravi] = beliefs(mara, "invalidated"), beliefs(mara)
    return dana, ravi


@pytest.mark.django_db(transaction=True)  # rebuilding goes by when rows were written
@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_comes_late_counts_for_what_was_closed(mara: Teller, is_remembered: bool) -> None:
    """C2: it speaks of a time at which the old one held: it counts there, for it and against it, and founds nothing."""
    dana, ravi = closed_dana(mara)
    assert dana.valid_until
    then: datetime = dana.valid_until - timedelta(hours=13)  # the day before: dates alone are shown
    counts = []
    for number, said in enumerate(("Dana is my manager.", "Dana was never my manager.")):
        if is_remembered:
            mara.remember(said, session=f"late {number}", at=then)
        else:
            mara.tell(said, occurred_at=then, session=f"late {number}")
            mara.cycle()
        [now] = beliefs(mara, "invalidated")
        counts.append((now.pk, now.alpha, now.beta, now.valid_until))

    assert counts == [
        (dana.pk, dana.alpha + 1, dana.beta, dana.valid_until),
        (dana.pk, dana.alpha + 1, dana.beta + 1, dana.valid_until),
    ]
    assert [(one.pk, one.alpha) for one in beliefs(mara)] == [(ravi.pk, ravi.alpha)]
    believed(mara)  # the numbers are those of the evidence
    assert is_rebuilt(mara)


def test_what_is_said_after_the_end_is_not_about_what_was_closed(mara: Teller) -> None:
    """C2: it is believed again, and the old one keeps its numbers."""
    dana, _ = closed_dana(mara)
    mara.cycle(TURNED_BACK)
    mara.cycle("Dana is my manager.")

    [again] = beliefs(mara)
    assert (again.statement, again.alpha) == (DANAS, 3.0)
    old = Belief.objects.get(pk=dana.pk)
    assert (old.alpha, old.beta, old.evidence_count) == (dana.alpha, dana.beta, dana.evidence_count)


def test_a_change_that_is_announced_for_next_month(mara: Teller) -> None:
    """C1, F3: the old one is believed until the day, its successor from then on; no further word is needed."""
    mara.cycle(DANA)
    mara.cycle(IN_APRIL)
    dana, ravi = mara.belief("Dana"), mara.belief("Ravi")
    assert (dana.status, dana.valid_until, (dana.alpha, dana.beta)) == ("active", APRIL, (2.0, 1.0))
    assert (ravi.status, ravi.valid_from, ravi.confidence) == ("active", APRIL, pytest.approx(2 / 3))

    mara.cycle("The weather is fine.", after=timedelta(days=20))
    assert mara.belief("Dana").status == "active"

    mara.cycle(after=APRIL - mara.now + timedelta(hours=9))
    assert believed(mara) == [RAVIS]
    [dana] = beliefs(mara, "invalidated")
    assert (dana.status_reason, dana.valid_until, (dana.alpha, dana.beta)) == ("changed", APRIL, (2.0, 1.0))
    assert Lineage.objects.get(parent=dana, kind="supersession").child.statement == RAVIS


def test_an_end_weighs_three(mara: Teller) -> None:
    """C1: beside one of an ordinary word."""
    mara.cycle(DANA)
    mara.cycle(NEWS)

    row = Evidence.objects.get(belief__statement=DANAS, verdict="CONTRADICTS")
    assert (row.kind, row.base_weight) == ("ended", 3.0)


def test_a_day_that_comes_while_nothing_is_said_opens_a_cycle(mara: Teller) -> None:
    """C1, B7: nobody has to speak for a change to take place."""
    from memory.consolidation.schedule import open_due_cycles

    mara.cycle(DANA)
    mara.cycle(IN_APRIL)
    assert open_due_cycles(now=mara.now + DAY) == []

    [opened] = open_due_cycles(now=APRIL + timedelta(minutes=5))
    mara.now = APRIL + timedelta(minutes=5)
    run_steps(cycle=Cycle.objects.get(pk=opened))

    assert believed(mara) == [RAVIS]
    assert open_due_cycles(now=mara.now + DAY) == []
    again = mara.cycle()
    assert not ClusterJob.objects.filter(cycle=again).exists()


@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_begins_on_a_day_ahead_is_known_with_its_day(mara: Teller, is_remembered: bool) -> None:
    """C1: also where it takes the place of nothing that was believed, and whatever brought it; it is heard once."""
    said = "From April 1st I live in Linz."
    if is_remembered:
        mara.remember(said, session="a")
    else:
        mara.cycle(said)
    mara.cycle()
    mara.cycle(after=APRIL - mara.now + DAY)

    [linz] = beliefs(mara)
    assert (linz.statement, linz.valid_from, linz.alpha) == ("Mara lives in Linz.", APRIL, 2.0)
    assert Evidence.objects.count() == 1


def test_an_end_that_somebody_repeats_changes_nothing_more(mara: Teller) -> None:
    """C2: what was closed keeps its day, and its successor is borne out."""
    mara.cycle(DANA)
    mara.cycle(NEWS)
    [closed] = beliefs(mara, "invalidated")
    mara.cycle(NEWS)

    [dana], [ravi] = beliefs(mara, "invalidated"), beliefs(mara)
    assert (dana.pk, dana.valid_until, dana.beta) == (closed.pk, closed.valid_until, 1.0)
    assert (ravi.statement, ravi.alpha) == (RAVIS, 3.0)


def test_what_a_text_ends_it_does_not_found_again(mara: Teller) -> None:
    """F1: the last word of a text counts, remembered at once."""
    mara.cycle(DANA)
    mara.remember(f"{DANA} {NEWS}", session="news")

    assert believed(mara, "invalidated") == [DANAS]
    assert believed(mara) == [RAVIS]


def test_what_a_cycle_has_read_is_not_read_again_by_being_remembered(mara: Teller) -> None:
    """F1: the same episode says what it says once."""
    mara.cycle(DANA)
    mara.cycle("Dana was never my manager.", DANA, DANA)
    before = mara.stands()
    for episode in Episode.objects.filter(created_at=mara.now):
        row = RememberJob.objects.create(
            workspace=mara.workspace, episode=episode, actor="person lena", created_at=mara.now, due_at=mara.now
        )
        with reading_as_told():
            run_remember_job(remembrance_id=row.pk, now=mara.now)
        row.refresh_from_db()
        assert row.state == "done"

    assert mara.stands() == before


def test_a_clock_that_is_ahead_announces_nothing(mara: Teller) -> None:
    """C1: what says that things have changed does so now."""
    mara.cycle(DANA)
    mara.remember(NEWS, session="news", at=mara.now + timedelta(days=1, hours=2))

    [dana] = beliefs(mara, "invalidated")
    assert dana.statement == DANAS
    assert dana.valid_until
    assert dana.valid_until <= mara.now
    assert believed(mara) == [RAVIS]


def test_a_forgotten_announcement_ends_nothing(mara: Teller) -> None:
    """C1: what is left says nothing of an end."""
    mara.cycle(DANA)
    mara.cycle(IN_APRIL)
    said = Episode.objects.get(text=IN_APRIL)
    forget_episode(episode=said, actor=LENA, now=mara.now)
    assert mara.belief("Dana").valid_until is None

    mara.cycle(after=60 * DAY)
    assert believed(mara) == [DANAS]


def test_an_announcement_outlives_another_word_that_is_forgotten(mara: Teller) -> None:
    """C1: what is left still says when it ends; of two days the one that is left."""
    mara.cycle(DANA, "Dana is my manager.")
    mara.cycle(IN_APRIL)
    mara.cycle(IN_APRIL.replace("April", "May"))
    forget_episode(episode=Episode.objects.get(text="Dana is my manager."), actor=LENA, now=mara.now)
    assert mara.belief("Dana").valid_until == datetime(2026, 5, 1, tzinfo=UTC)

    forget_episode(episode=Episode.objects.get(text__startswith="From May"), actor=LENA, now=mara.now)
    assert mara.belief("Dana").valid_until == APRIL


def test_erasing_what_founded_the_old_leaves_its_successor(mara: Teller) -> None:
    """B19: the new one has its words from episodes of its own."""
    mara.cycle(DANA)
    mara.cycle(NEWS)
    mara.cycle("Ravi is my manager.")
    assert believed(mara, "invalidated") == [DANAS]
    first = Episode.objects.filter(text=DANA)
    erase_memories(workspace=mara.workspace, episodes=first, actor=LENA, now=mara.now)

    assert believed(mara) == [RAVIS]
    assert not Belief.objects.filter(statement=DANAS).exists()


def test_what_a_person_archives_as_changed_is_archived_again(mara: Teller) -> None:
    """B22: their reason is no gate's, whatever they write."""
    mara.cycle(DANA)
    mara.now += DAY
    curate_belief(
        belief_id=mara.belief("Dana").pk, act=CuratorAction.ARCHIVE, reason="changed", actor=LENA, now=mara.now
    )

    assert is_rebuilt(mara)


def test_a_price_that_goes_up_in_a_month_holds_from_then_on(mara: Teller) -> None:
    """C1: the old one until then, and the new one afterwards."""
    july = datetime(2026, 7, 1, tzinfo=UTC)
    mara.cycle("My rent is 800 euros.")
    mara.cycle("My rent goes up to 900 euros in July.")
    assert (mara.belief("800").status, mara.belief("800").valid_until) == ("active", july)

    mara.cycle(after=july - mara.now + timedelta(hours=1))
    [new] = beliefs(mara)
    assert (new.statement, new.valid_from) == ("Mara's rent is 900 euros.", july)


@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_is_from_before_a_belief_held_weakens_nothing(mara: Teller, is_remembered: bool) -> None:
    """C2, F2: no evidence comes of it, and the answer does not say otherwise."""
    mara.cycle("From April 1st I live in Linz.")
    mara.cycle(after=APRIL - mara.now + DAY)
    said, at = "I do not live in Linz.", datetime(2026, 3, 20, tzinfo=UTC)
    if is_remembered:
        assert mara.remember(said, session="late", at=at).beliefs == ()
        assert RememberJob.objects.get().facts.filter(rival=mara.belief("Linz")).count() == 0
    else:
        mara.tell(said, occurred_at=at)
        mara.cycle()

    linz = mara.belief("Linz")
    assert (linz.status, linz.beta) == ("active", 1.0)


@pytest.mark.django_db(transaction=True)  # rebuilding goes by when rows were written
def test_what_is_remembered_after_an_announced_day_is_a_change_of_its_own(mara: Teller) -> None:
    """C1: though no cycle has seen the day yet."""
    mara.cycle(DANA)
    mara.cycle(IN_APRIL)
    mara.now = datetime(2026, 4, 2, 9, tzinfo=UTC)
    mara.remember("My manager is no longer Ravi, it is Dana now.", session="news")
    mara.cycle()

    assert believed(mara) == [DANAS]
    assert believed(mara, "invalidated") == [DANAS, RAVIS]
    assert is_rebuilt(mara)


@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_was_announced_can_be_put_off(mara: Teller, is_remembered: bool) -> None:
    """C1, C3: whatever road the second day comes by."""
    mara.cycle(DANA)
    for number, text in enumerate((IN_APRIL, IN_APRIL.replace("April", "May"))):
        if is_remembered:
            mara.remember(text, session=f"news {number}")
        else:
            mara.cycle(text)

    assert mara.belief("Dana").valid_until == datetime(2026, 5, 1, tzinfo=UTC)


def test_two_people_hear_nothing_of_each_others_changes(mara: Teller) -> None:
    """F2: Tom's manager is not Mara's."""
    mara.cycle(DANA)
    mara.tell(NEWS, user="tomas")
    mara.cycle()

    assert mara.belief("Dana").status == "active"
    assert (mara.belief("Ravi").statement, mara.belief("Ravi").user) == ("Tomas's manager is Ravi.", "tomas")
