"""R10: what was believed at a given time, and on what grounds, in the time of storing."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from memory.access import Viewer
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import EpisodeStatus
from memory.history import attribute_changes, beliefs_as_of
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.transactions import change_episode_status
from memory.models import Belief, Evidence, Workspace
from memory.recall.cards import BeliefCard, read_card_as_of
from tests import factories

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)
BIRTH = factories.NOW


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def belief(workspace: Workspace) -> Belief:
    """Return a belief that was supported on each of three days and contradicted on the fourth."""
    belief = factories.belief(workspace=workspace, statement="The ferry leaves at seven.")
    for day, verdict in enumerate(["SUPPORTS", "SUPPORTS", "SUPPORTS", "CONTRADICTS"]):
        hear(belief, verdict, day=day)
    return belief


def hear(belief: Belief, verdict: str, *, day: int, **given: object) -> Evidence:
    episode = factories.episode(workspace=belief.workspace, occurred_at=BIRTH + day * DAY)
    row = factories.evidence(
        belief=belief, episode=episode, verdict=verdict, created_at=BIRTH + day * DAY, **given
    )  # fmt: skip
    attribute_changes(actor=LENA, reason="heard")
    recompute_beliefs(beliefs=[belief], now=BIRTH + day * DAY)
    return row


def card(belief: Belief, *, day: float) -> BeliefCard | None:
    return read_card_as_of(belief=belief, at=BIRTH + day * DAY, viewer=Viewer(workspace=belief.workspace))


@pytest.mark.parametrize(
    ("day", "alpha", "beta", "rows"), [(0, 2.0, 1.0, 1), (1.5, 3.0, 1.0, 2), (2, 4.0, 1.0, 3), (400, 4.0, 2.0, 4)]
)
def test_a_belief_stands_as_it_stood(belief: Belief, day: float, alpha: float, beta: float, rows: int) -> None:
    """R10: α and β are those of the evidence that existed then, by B4."""
    then = card(belief, day=day)
    assert then is not None
    assert (then.belief.alpha, then.belief.beta, len(then.evidence)) == (alpha, beta, rows)
    assert 1 + sum(line.weight for line in then.evidence if line.verdict == "SUPPORTS") == alpha
    assert then.belief.confidence == pytest.approx(alpha / (alpha + beta))
    assert then.interval[0] < then.belief.confidence < then.interval[1]


def test_before_its_birth_there_is_no_belief(belief: Belief) -> None:
    assert card(belief, day=-1) is None


def test_weights_are_those_of_then(workspace: Workspace) -> None:
    """B4: the second row of an origin weighs half, and did not exist before it was stored."""
    belief = factories.belief(workspace=workspace)
    for day in (0, 1):
        episode = factories.episode(workspace=workspace, origin="session:one", occurred_at=BIRTH + day * DAY)
        factories.evidence(belief=belief, episode=episode, created_at=BIRTH + day * DAY)
    first, both = card(belief, day=0.5), card(belief, day=1)
    assert first is not None
    assert both is not None
    assert [line.weight for line in first.evidence] == [1.0]
    assert [line.weight for line in both.evidence] == [1.0, 0.5]


def test_what_was_forgotten_since_still_counts_then_and_is_not_shown(belief: Belief) -> None:
    """R10: evidence follows its episode's status, then as now."""
    row = Evidence.objects.filter(belief=belief).order_by("pk").first()
    assert row is not None
    change_episode_status(
        ids=[row.episode_id], new=EpisodeStatus.FORGOTTEN, reason="asked to", actor=LENA, now=BIRTH + 5 * DAY
    )
    recompute_beliefs(beliefs=[belief], now=BIRTH + 5 * DAY)

    then, now = card(belief, day=2), card(belief, day=5)

    assert then is not None
    assert (then.belief.alpha, len(then.evidence), then.hidden_evidence) == (4.0, 2, 1)
    assert now is not None
    assert (now.belief.alpha, len(now.evidence), now.hidden_evidence) == (3.0, 3, 0)


def test_what_was_invalidated_for_a_while_is_left_out_for_that_while(belief: Belief) -> None:
    row = Evidence.objects.filter(belief=belief).order_by("pk").first()
    assert row is not None
    for day, status in ((5, EpisodeStatus.INVALIDATED), (7, EpisodeStatus.ACTIVE)):
        change_episode_status(ids=[row.episode_id], new=status, reason="x", actor=LENA, now=BIRTH + day * DAY)
    counted = [card(belief, day=day) for day in (4, 6, 8)]
    assert [len(each.evidence) for each in counted if each] == [4, 3, 4]


def test_the_list_stands_as_it_stood(workspace: Workspace) -> None:
    """R10: each belief once, in its latest state up to then."""
    early = factories.belief(workspace=workspace, statement="early")
    factories.belief(workspace=workspace, statement="late", created_at=BIRTH + 3 * DAY, updated_at=BIRTH + 3 * DAY)
    for day in (1, 2, 4):
        Belief.objects.filter(pk=early.pk).update(alpha=1.0 + day, updated_at=BIRTH + day * DAY)
    at = {
        day: sorted(
            beliefs_as_of(beliefs=Belief.objects.for_workspace(workspace), at=BIRTH + day * DAY).values_list(
                "statement", "alpha"
            )
        )
        for day in (-1, 2, 3, 9)
    }
    assert at == {
        -1: [],
        2: [("early", 3.0)],
        3: [("early", 3.0), ("late", 1.0)],
        9: [("early", 5.0), ("late", 1.0)],
    }


def test_of_changes_up_to_then_the_last_recorded_holds(workspace: Workspace) -> None:
    """A history replayed at old times changes today's belief: as of today is what is believed today."""
    belief = factories.belief(workspace=workspace, updated_at=BIRTH + 9 * DAY, alpha=9.0)
    Belief.objects.filter(pk=belief.pk).update(alpha=5.0, updated_at=BIRTH + DAY)
    then = beliefs_as_of(beliefs=Belief.objects.for_workspace(workspace), at=BIRTH + 10 * DAY)
    assert [event.alpha for event in then] == [5.0]


def test_a_change_by_hand_counts_from_when_it_was_made(belief: Belief) -> None:
    """R10: it leaves the time of the change before it, and must not be told of that time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('pghistory.context_metadata', '{}', true)")
    Belief.objects.filter(pk=belief.pk).update(alpha=50.0)
    [then] = beliefs_as_of(beliefs=Belief.objects.filter(pk=belief.pk), at=belief.updated_at + DAY)
    [now] = beliefs_as_of(beliefs=Belief.objects.filter(pk=belief.pk), at=timezone.now() + DAY)
    assert (then.alpha, now.alpha) == (4.0, 50.0)
