"""B22: what a person archived or had forgotten does not come back as another belief that says the same."""

from typing import Any

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.evidence import Verdict
from memory.domain.identity import Actor, ActorKind
from memory.models import Belief, ClusterJob, Episode
from tests import factories
from tests.consolidation.world import World

LENA = Actor(kind=ActorKind.PERSON, name="lena")
CANDIDATE = "The lock of the archive lasts 5 seconds!"
LOCKS = [f"The lock of the archive lasts {seconds} seconds." for seconds in (5, 7, 9)]


SAME = "The lock of the archive lasts 5 seconds"  # as the first, but for its mark: a text of its own


def bury(world: World, statement: str = SAME, *, act: CuratorAction = CuratorAction.FORGET, **given: Any) -> Belief:
    belief = world.hold(statement, about="lock", **given)
    return curate_belief(belief_id=belief.pk, act=act, reason="not ours to know", actor=LENA, now=world.now)


def say_again(world: World, **given: Any) -> None:
    """Store a cluster whose candidate is its first sentence; it has nothing to say about what is archived."""
    world.say_all(LOCKS, about="lock", **given)
    world.directions.place(CANDIDATE, {"lock": 1.0})
    world.statements["lock"] = CANDIDATE
    for text in LOCKS:
        world.verdicts[f"{SAME}|{text}"] = Verdict.IRRELEVANT


@pytest.mark.parametrize("act", [CuratorAction.FORGET, CuratorAction.ARCHIVE])
def test_a_candidate_that_says_the_same_is_suppressed(world: World, act: CuratorAction) -> None:
    """B22: above 0.92 and past the guard; the job names what it was suppressed by, and its episodes are pooled."""
    buried = bury(world, act=act)
    say_again(world, likeness=0.9)

    cycle = world.cycle()

    assert world.only_belief() == buried
    assert world.now_of(buried).status == f"{act}d".replace("forgetd", "forgotten")
    job = ClusterJob.objects.get()
    assert (job.state, job.refusal, job.outcome, job.suppressed_by) == (
        "refused", "suppressed", "suppressed", buried,
    )  # fmt: skip
    assert cycle.counts["created"] == 0
    assert set(Episode.objects.filter(text__in=LOCKS).values_list("state", flat=True)) == {"pooled"}


def test_what_a_person_archived_takes_its_evidence_and_stays(world: World) -> None:
    """B14: episodes that support it are its own; it does not come back by itself."""
    buried = bury(world, act=CuratorAction.ARCHIVE)
    say_again(world)
    for text in LOCKS:
        world.verdicts[f"{SAME}|{text}"] = Verdict.SUPPORTS
    world.cycle()
    belief = world.only_belief()
    assert (belief, belief.status, belief.evidence_count) == (buried, "archived", 6)


@pytest.mark.parametrize(
    "given", [{"likeness": 0.9}, {"user": "ben"}, {"language": "de"}], ids=["less alike", "another user", "language"]
)
def test_what_says_something_else_is_created(world: World, given: dict[str, Any]) -> None:
    """B22: at most 0.92 alike, of another user, or in another language."""
    bury(world, **given)
    say_again(world)

    world.cycle()

    assert Belief.objects.active().count() == 1


def test_what_fails_the_guard_is_created(world: World) -> None:
    """B22: the forgotten statement says the contrary."""
    bury(world, "The lock of the archive does not last 5 seconds.")
    say_again(world)

    world.cycle()

    assert Belief.objects.active().get().statement == CANDIDATE


def test_a_projects_tombstone_stays_in_its_project(world: World) -> None:
    """B21, B22: and one that was global holds everywhere."""
    project = factories.project(workspace=world.workspace)
    bury(world, project=project, scope="project")
    say_again(world)
    world.cycle()
    assert Belief.objects.active().count() == 1


def test_a_global_tombstone_holds_in_every_project(world: World) -> None:
    project = factories.project(workspace=world.workspace)
    buried = bury(world)
    say_again(world, project=project)
    world.cycle()
    assert ClusterJob.objects.get().suppressed_by == buried


def test_what_a_gate_archived_is_no_tombstone(world: World) -> None:
    """B14: it comes back with support, under its own id."""
    belief = world.hold(SAME, about="lock", status="archived", status_reason="low_confidence", supports=0)
    say_again(world)
    for text in LOCKS:
        world.verdicts[f"{SAME}|{text}"] = Verdict.SUPPORTS
    world.cycle()
    assert world.now_of(belief).status == "active"


def test_restoring_lifts_the_stone(world: World) -> None:
    """B22: what a person restored takes the evidence itself."""
    buried = bury(world, act=CuratorAction.ARCHIVE)
    curate_belief(belief_id=buried.pk, act=CuratorAction.RESTORE, reason="after all", actor=LENA, now=world.now)
    say_again(world)
    for text in LOCKS:
        world.verdicts[f"{SAME}|{text}"] = Verdict.SUPPORTS
    world.cycle()
    assert (world.now_of(buried).status, world.now_of(buried).evidence_count) == ("active", 6)
