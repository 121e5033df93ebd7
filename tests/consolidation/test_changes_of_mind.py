"""C1, C2: what is believed when the world changes, lived through by the rules of this machine, at five times each."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.rebuild import rebuild_beliefs
from memory.domain.identity import Actor, ActorKind
from memory.erasure.erase import erase_memories
from memory.facts.remember import remember, run_remember_job
from memory.forgetting import forget_episode
from memory.ingest.schemas import IngestContext
from memory.ledger.confidence import find_drift
from memory.models import Belief, ClusterJob, Cycle, Episode, Evidence, Lineage, RememberJob
from tests import factories
from tests.consolidation.inline import run_steps
from tests.consolidation.telling import DAY, Teller

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DANA = "My manager is Dana."
DANAS, RAVIS = "Mara's manager is Dana.", "Mara's manager is Ravi"


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


def test_a_change_that_turns_back(mara: Teller) -> None:
    """C2: each time the old one is closed and keeps its time; what turns back founds a belief anew."""
    mara.cycle(DANA)
    assert believed(mara) == [DANAS]

    mara.cycle("My manager is no longer Dana, it is Ravi now.")
    [ravi] = beliefs(mara)
    announced = mara.now
    assert (RAVIS in ravi.statement.replace("no longer Dana, it is ", ""), ravi.valid_from) == (True, announced)
    assert believed(mara, "challenged") == [DANAS]

    mara.cycle("Ravi is my manager.")
    [dana] = beliefs(mara, "invalidated")
    assert (dana.statement, dana.status_reason, dana.valid_until) == (DANAS, "changed", announced)
    assert [belief.pk for belief in beliefs(mara)] == [ravi.pk]
    assert Lineage.objects.get(parent=dana).child == ravi

    mara.cycle("My manager is no longer Ravi, it is Dana now.")
    assert [belief.pk for belief in beliefs(mara, "challenged")] == [ravi.pk]

    mara.cycle("Dana is my manager.")
    [again] = beliefs(mara)
    assert "Dana" in again.statement
    assert again.pk != dana.pk
    assert {belief.pk for belief in beliefs(mara, "invalidated")} == {dana.pk, ravi.pk}
    dana.refresh_from_db()
    assert (dana.alpha, dana.beta) == (2.0, 1.0)


def test_a_flood_of_one_session_closes_nothing(mara: Teller) -> None:
    """C1: twenty times the opposite in one conversation."""
    for said in (DANA, "Dana is my manager.", "My boss is Dana.", "By the way, Dana is my manager."):
        mara.cycle(said)
        assert believed(mara) == [DANAS]
    before = mara.belief("Dana").alpha

    for number in range(20):
        mara.tell(f"My manager is Ravi{'!' * number}", origin="session:flood")
    mara.cycle()

    dana = mara.belief("Dana")
    assert (dana.alpha, dana.status, dana.valid_until) == (before, "active", None)
    assert dana.beta > 3.0
    assert not beliefs(mara, "invalidated")


def test_an_archive_of_last_year_that_comes_late_founds_nothing_current(mara: Teller) -> None:
    """C2: it speaks of its own time, and says nothing against what has been so since."""
    mara.cycle("My manager is Ravi.")
    mara.cycle("Ravi is my manager.")
    [ravi] = beliefs(mara)
    before = ravi.alpha, ravi.beta

    for month in range(1, 6):
        mara.tell(DANA, occurred_at=datetime(2025, month, 3, 9, tzinfo=UTC), session=f"archive {month}")
        mara.cycle()
        [now] = beliefs(mara)
        assert (now.pk, (now.alpha, now.beta)) == (ravi.pk, before)
    assert not beliefs(mara, "invalidated")


def closed_dana(mara: Teller) -> tuple[Belief, Belief]:
    """Let Dana be the manager until Ravi is; return both beliefs."""
    mara.cycle(DANA)
    mara.cycle(DANA)
    mara.cycle("My manager is no longer Dana, it is Ravi now.")
    mara.cycle("Ravi is my manager.")
    [dana], [ravi] = beliefs(mara, "invalidated"), beliefs(mara)
    return dana, ravi


@pytest.mark.django_db(transaction=True)  # rebuilding goes by when rows were written
@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_comes_late_counts_for_what_was_closed(mara: Teller, is_remembered: bool) -> None:
    """C2: it speaks of a time at which the old one held: it counts there, for it and against it, and founds nothing."""
    dana, ravi = closed_dana(mara)
    assert dana.valid_until
    then: datetime = dana.valid_until - timedelta(hours=2)
    counts = []
    for number, said in enumerate(("Dana is my manager.", "My manager is Tom.")):
        if is_remembered:
            remembered(mara, said, session=f"late {number}", at=then)
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
    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences == []


def test_what_is_said_after_the_end_is_not_about_what_was_closed(mara: Teller) -> None:
    """C2: it founds a belief again, and the old one keeps its numbers."""
    dana, _ = closed_dana(mara)
    mara.cycle("My manager is no longer Ravi, it is Dana now.")
    mara.cycle("Dana is my manager.")

    [again] = beliefs(mara)
    assert "Dana" in again.statement
    old = Belief.objects.get(pk=dana.pk)
    assert (old.alpha, old.beta, old.evidence_count) == (dana.alpha, dana.beta, dana.evidence_count)


def test_a_change_that_is_announced_for_next_month(mara: Teller) -> None:
    """C1: the old one is believed until the day, then challenged, then closed by a word from elsewhere."""
    mara.cycle(DANA)
    mara.cycle("From April 1st my manager will be Ravi instead of Dana.")
    first = datetime(2026, 4, 1, tzinfo=UTC)
    [dana] = beliefs(mara)
    assert (dana.statement, dana.valid_until, (dana.alpha, dana.beta)) == (DANAS, first, (2.0, 1.0))

    mara.cycle("The weather is fine.", after=timedelta(days=20))
    assert believed(mara) == [DANAS]

    mara.cycle(after=first - mara.now + timedelta(hours=9))
    [ravi] = beliefs(mara)
    assert ("Ravi" in ravi.statement, ravi.valid_from, ravi.confidence) == (True, first, pytest.approx(2 / 3))
    [dana] = beliefs(mara, "challenged")
    assert (dana.valid_until, dana.beta) == (None, 4.0)

    mara.cycle("Ravi is my manager.")
    [dana] = beliefs(mara, "invalidated")
    assert (dana.status_reason, dana.valid_until, (dana.alpha, dana.beta)) == ("changed", first, (2.0, 1.0))
    assert [belief.pk for belief in beliefs(mara)] == [ravi.pk]


def test_an_announcement_that_nobody_bears_out_is_given_up(mara: Teller) -> None:
    """C1: two origins for the old one with none for the new."""
    mara.cycle(DANA)
    mara.cycle("My manager is no longer Dana, it is Ravi now.")
    mara.cycle("Dana is my manager.")
    assert believed(mara, "challenged") == [DANAS]
    mara.cycle("As ever, Dana is my manager.")

    [dana] = beliefs(mara)
    assert (dana.statement, dana.status_reason) == (DANAS, "upheld")
    [ravi] = beliefs(mara, "archived")
    assert ravi.status_reason == "unconfirmed"


def test_an_announcement_weighs_three(mara: Teller) -> None:
    """C1: beside one of an ordinary word; additive, six tenths."""
    mara.cycle(DANA)
    mara.cycle("My manager is no longer Dana, it is Ravi now.")

    row = Evidence.objects.get(belief__statement=DANAS, verdict="CONTRADICTS")
    assert (row.kind, row.base_weight) == ("announced", 3.0)
    assert mara.belief("manager is Dana").beta == 4.0


def test_a_day_that_comes_while_nothing_is_said_opens_a_cycle(mara: Teller) -> None:
    """C1, B7: nobody has to speak for a change to take place."""
    from memory.consolidation.schedule import open_due_cycles

    mara.cycle(DANA)
    mara.cycle("From April 1st my manager will be Ravi instead of Dana.")
    assert open_due_cycles(now=mara.now + DAY) == []

    assert len(open_due_cycles(now=datetime(2026, 4, 1, 0, 5, tzinfo=UTC))) == 1


@pytest.mark.parametrize("is_remembered", [False, True])
def test_what_begins_on_a_day_waits_for_it(mara: Teller, is_remembered: bool) -> None:
    """C1: also where it takes the place of nothing that was believed, and whatever brought it; it is heard once."""
    from memory.consolidation.schedule import open_due_cycles

    said, day = "From March 20 Jo collects the kids.", datetime(2026, 3, 20, tzinfo=UTC)
    if is_remembered:
        line = {"text": said, "user": "mara", "source": "human", "session": "a"}
        remember(line=line, arrival=IngestContext(workspace=mara.workspace, now=mara.now))
        run_remember_job(remembrance_id=RememberJob.objects.get().pk, now=mara.now)
    else:
        mara.cycle(said)
    mara.cycle()
    assert believed(mara) == []
    assert open_due_cycles(now=mara.now + DAY) == []

    [opened] = open_due_cycles(now=day)
    mara.now = day
    run_steps(cycle=Cycle.objects.get(pk=opened))
    assert believed(mara) == [said]
    assert Evidence.objects.count() == 1
    assert open_due_cycles(now=day + DAY) == []
    again = mara.cycle()
    assert not ClusterJob.objects.filter(cycle=again).exists()


def remembered(mara: Teller, text: str, *, session: str, at: datetime | None = None) -> None:
    """Have a text remembered the next day, which was said then, or at another time."""
    mara.now += DAY
    line = {"text": text, "user": "mara", "source": "human", "session": session}
    if at:
        line["occurred_at"] = at.isoformat()
    remember(line=line, arrival=IngestContext(workspace=mara.workspace, now=mara.now))
    for one in RememberJob.objects.queued():
        run_remember_job(remembrance_id=one.pk, now=mara.now)


NEWS = "My manager is no longer Dana, it is Ravi now."


def test_an_announcement_that_somebody_repeats_closes_the_old(mara: Teller) -> None:
    """C1: the second is a later word from elsewhere, and not the announcement."""
    mara.cycle(DANA)
    mara.cycle(NEWS)
    assert believed(mara, "challenged") == [DANAS]
    mara.cycle(NEWS.replace("My", "As I said, my"))

    assert believed(mara, "invalidated") == [DANAS]


def test_a_dispute_ends_with_the_next_word_for_the_new(mara: Teller) -> None:
    """C1: what is disputed was challenged by two origins; a third settles it."""
    for _ in range(2):
        mara.cycle(DANA)
    for number in range(2):
        mara.cycle("Ravi is my manager." if number else "My manager is Ravi.")
    assert believed(mara, "challenged") == [DANAS]
    mara.cycle("My manager is called Ravi.")

    assert believed(mara, "invalidated") == [DANAS]


def test_words_from_before_an_announcement_uphold_nothing(mara: Teller) -> None:
    """C1: though the announcement says that things have changed before them."""
    for _ in range(2):
        mara.cycle(DANA)
    mara.cycle("Since January my manager is Ravi, no longer Dana.")
    assert believed(mara, "challenged") == [DANAS]
    mara.cycle("Ravi is my manager.")

    assert believed(mara, "invalidated") == [DANAS]


def test_what_a_text_ends_it_does_not_found_again(mara: Teller) -> None:
    """E1: one claim for and one that ends the belief, remembered at once."""
    mara.cycle(DANA)
    remembered(mara, f"{DANA} {NEWS}", session="news")

    assert believed(mara, "challenged") == [DANAS]
    assert believed(mara) != [DANAS]
    assert all(RAVIS in statement or "Ravi" in statement for statement in believed(mara))


def test_what_a_cycle_has_counted_founds_nothing_by_being_remembered(mara: Teller) -> None:
    """E4: the same episode, which waits for another origin."""
    mara.cycle(DANA)
    mara.cycle(DANA)
    mara.tell("My manager is Ravi.", session="one")
    mara.cycle()
    assert believed(mara) == [DANAS]
    episode = Episode.objects.get(text="My manager is Ravi.")
    row = RememberJob.objects.create(
        workspace=mara.workspace, episode=episode, actor="person lena", created_at=mara.now, due_at=mara.now
    )
    run_remember_job(remembrance_id=row.pk, now=mara.now)

    assert believed(mara) == [DANAS]


def test_a_clock_that_is_ahead_announces_nothing(mara: Teller) -> None:
    """C1: what says that things have changed does so now."""
    mara.cycle(DANA)
    remembered(mara, NEWS, session="news", at=mara.now + timedelta(days=1, hours=2))

    assert believed(mara, "challenged") == [DANAS]
    assert len(believed(mara)) == 1


def test_a_forgotten_announcement_ends_nothing(mara: Teller) -> None:
    """C1: what is left says nothing of an end."""
    mara.cycle(DANA)
    mara.cycle("From April 1st my manager will be Ravi instead of Dana.")
    said = Episode.objects.get(text__startswith="From April")
    forget_episode(episode=said, actor=LENA, now=mara.now)
    assert mara.belief("Dana").valid_until is None

    mara.cycle(after=60 * DAY)
    assert believed(mara) == [DANAS]


def test_erasing_what_founded_the_old_leaves_its_successor(mara: Teller) -> None:
    """B19: the new one has its words from episodes of its own."""
    mara.cycle(DANA)
    mara.cycle(NEWS)
    mara.cycle("Ravi is my manager.")
    assert believed(mara, "invalidated") == [DANAS]
    first = Episode.objects.filter(text=DANA)
    erase_memories(workspace=mara.workspace, episodes=first, actor=LENA, now=mara.now)

    assert len(believed(mara)) == 1
    assert not Belief.objects.filter(statement=DANAS).exists()


def test_two_other_values_overturn_nothing(mara: Teller) -> None:
    """E4: another origin must name the same value."""
    tuesdays = "We deploy on Tuesdays."
    for said in (tuesdays, tuesdays, "We deploy on Thursdays.", tuesdays, tuesdays, "We deploy on Fridays."):
        mara.cycle(said)
    assert believed(mara) == ["Mara deploys on Tuesdays."]

    mara.cycle("We always deploy on Fridays.")
    assert believed(mara, "challenged") == ["Mara deploys on Tuesdays."]


def test_what_a_person_archives_as_changed_is_archived_again(mara: Teller) -> None:
    """B22: their reason is no gate's, whatever they write."""
    mara.cycle(DANA)
    mara.now += DAY
    curate_belief(
        belief_id=mara.belief("Dana").pk, act=CuratorAction.ARCHIVE, reason="changed", actor=LENA, now=mara.now
    )

    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences == []


def test_a_price_that_goes_up_in_a_month_holds_from_then_on(mara: Teller) -> None:
    """C1: the old one until then, and the new one afterwards."""
    mara.cycle("My rent is 800 euros.")
    mara.cycle("My rent goes up to 900 euros in July.")
    july = datetime(2026, 7, 1, tzinfo=UTC)
    [old] = beliefs(mara)
    assert (old.statement, old.valid_until) == ("Mara's rent is 800 euros.", july)

    mara.cycle(after=july - mara.now + timedelta(hours=1))
    [new] = beliefs(mara)
    assert ("900" in new.statement, new.valid_from) == (True, july)


def test_what_is_from_before_a_belief_held_weakens_nothing(mara: Teller) -> None:
    """C2: the row weighs nothing, and the answer does not say otherwise."""
    mara.cycle("From April 1st I live in Linz.")
    mara.cycle(after=datetime(2026, 4, 2, tzinfo=UTC) - mara.now)
    linz = mara.belief("Linz")
    Belief.objects.filter(pk=linz.pk).update(valid_from=datetime(2026, 4, 1, tzinfo=UTC))
    remembered(mara, "I live in Graz.", session="late", at=datetime(2026, 3, 20, tzinfo=UTC))

    linz.refresh_from_db()
    assert (linz.status, linz.beta) == ("active", 1.0)
    assert RememberJob.objects.get().facts.filter(rival=linz).count() == 0
    assert not Belief.objects.filter(statement__contains="Graz").exists()


def test_what_is_remembered_after_an_announced_day_is_a_change_of_its_own(mara: Teller) -> None:
    """C1: though no cycle has seen the day yet."""
    mara.cycle(DANA)
    mara.cycle("From April 1st my manager will be Ravi instead of Dana.")
    mara.now = datetime(2026, 4, 2, 9, tzinfo=UTC)
    remembered(mara, "My manager is no longer Dana, it is Tom now.", session="news")

    assert believed(mara, "challenged") == [DANAS]
    assert any("Tom" in statement for statement in believed(mara))


def test_what_was_announced_can_be_put_off(mara: Teller) -> None:
    """C1, C3: whatever road the second day comes by."""
    mara.cycle(DANA)
    remembered(mara, "From April 1st my manager will be Ravi instead of Dana.", session="one")
    remembered(mara, "From May 1st my manager will be Ravi instead of Dana.", session="two")

    [dana] = beliefs(mara)
    assert dana.valid_until == datetime(2026, 5, 1, tzinfo=UTC)


def test_another_name_for_what_is_theirs_replaces_the_old(mara: Teller) -> None:
    """E3, E4: though every word that the two share is a common one."""
    mara.cycle("My phone plan is with Telmo.")
    mara.cycle("My phone plan is with Vonda.")
    assert believed(mara) == ["Mara's phone plan is with Telmo."]
    for _ in range(2):
        mara.cycle("My phone plan is with Vonda.")

    assert believed(mara) == ["Mara's phone plan is with Vonda."]
    assert believed(mara, "invalidated") == ["Mara's phone plan is with Telmo."]
