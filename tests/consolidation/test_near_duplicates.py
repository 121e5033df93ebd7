"""B8.5: what two clusters of one cycle say alike is one belief, and each job is applied whole or not at all."""

import pytest

from memory.consolidation import apply
from memory.models import Belief, ClusterJob, Evidence, Lineage
from tests import factories
from tests.consolidation.world import World

FIVE, SIX = "The kiln of the pottery burns 5 hours.", "The kiln of the pottery burns 6 hours."


def say_two_clusters(world: World, statements: tuple[str, str], **given: object) -> None:
    """Store two clusters that have nothing in common but what is made of them."""
    for about, statement in zip(("morning", "evening"), statements, strict=True):
        world.statements[about] = statement
        world.directions.place(statement, {"kiln": 0.99})
        for number in range(3):
            project = given.get(about)
            world.say(f"In the {about} kiln {number} was lit.", about=about, project=project)


def test_near_twins_join(world: World) -> None:
    """B8.5: above .92 and the guard passes: the first is founded, the second brings it its evidence."""
    say_two_clusters(world, (FIVE, FIVE))

    cycle = world.cycle()

    belief = world.only_belief()
    assert (belief.alpha, belief.beta, belief.evidence_count) == (7.0, 1.0, 6)
    assert list(ClusterJob.objects.order_by("number").values_list("outcome", flat=True)) == ["created", "joined"]
    assert cycle.counts["created"] == 1


def test_a_twin_that_fails_the_guard_is_founded_beside_it(world: World) -> None:
    """B8.5: five hours are not six, whatever the cosine says."""
    say_two_clusters(world, (FIVE, SIX))

    world.cycle()

    assert sorted(Belief.objects.values_list("statement", "alpha")) == [(FIVE, 4.0), (SIX, 4.0)]
    assert not Lineage.objects.exists()


def test_twins_of_different_projects_stay_apart(world: World) -> None:
    """B8.5, B21: what holds in one project is not evidence in another."""
    morning, evening = (factories.project(workspace=world.workspace) for _ in range(2))
    say_two_clusters(world, (FIVE, FIVE), morning=morning, evening=evening)

    world.cycle()

    assert set(Belief.objects.values_list("project", "alpha")) == {(morning.pk, 4.0), (evening.pk, 4.0)}


def test_a_job_is_applied_whole_or_not_at_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8.5: evidence, the new belief and the settling of its episodes are one transaction."""
    say_two_clusters(world, (FIVE, SIX))
    really_release, released = apply.release_members, []

    def fail_once(**given: object) -> None:
        released.append(given)
        if len(released) == 1:
            raise RuntimeError
        really_release(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(apply, "release_members", fail_once)

    cycle = world.cycle()

    assert (cycle.counts["created"], cycle.counts["failed"]) == (1, 1)
    assert Evidence.objects.count() == world.only_belief().evidence_count == 3
    assert sorted(world.workspace.episodes.values_list("state", flat=True)) == ["failed"] * 3 + ["settled"] * 3
