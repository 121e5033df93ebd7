"""B8.2: which episodes become a cluster, which clusters a cycle takes, and that nothing crowds anything out."""

from datetime import timedelta

import numpy as np
import pytest

from memory.consolidation.sources import hash_members
from memory.domain.lifecycle import JobState
from memory.models import ClusterJob, ClusterMember, Cycle, Episode, JobKind
from memory.search.vectors import Vectors, store_episode_vectors
from tests import factories
from tests.consolidation.conftest import Decree
from tests.consolidation.world import MODEL, World


def bikes(count: int) -> list[str]:
    """Word so many alike things."""
    return [f"Shed {n} holds the bikes of the club." for n in range(count)]


def clusters_of(world: World) -> list[list[str]]:
    """List the members of each cluster that a cycle took up by their texts, most central first."""
    jobs = ClusterJob.objects.filter(workspace=world.workspace, kind=JobKind.CLUSTER).exclude(state=JobState.DEFERRED)
    return [list(job.members.values_list("episode__text", flat=True)) for job in jobs.order_by("cycle__now", "number")]


def test_loading_order_changes_nothing(world: World) -> None:
    """B8.2: the same history in another order of rows gives the same clusters, members and statements."""
    texts = [(text, "shed", 0.9 + n / 200) for n, text in enumerate(bikes(7))]
    texts += [(f"Kiln {n} is hot at night.", "kiln", 0.9) for n in range(5)]
    found = []
    for order in (range(12), reversed(range(12))):
        world.workspace = factories.workspace()
        for place in order:
            text, about, likeness = texts[place]
            when = world.now - timedelta(minutes=place)
            world.say(text, about=about, likeness=likeness, occurred_at=when, origin=f"session:{place}")
        world.cycle()
        found.append((clusters_of(world), sorted(world.workspace.beliefs.values_list("statement", "alpha"))))

    assert found[0] == found[1]
    assert [len(members) for members in found[0][0]] == [7, 5]


def test_users_never_share_a_cluster(world: World) -> None:
    """B8.2: two of one user and two of another are nobody's three."""
    for number, text in enumerate(bikes(4)):
        world.say(text, about="shed", user=("ana", "ben")[number % 2])

    world.cycle()

    assert clusters_of(world) == []
    assert not world.workspace.beliefs.exists()


def test_a_belief_belongs_to_the_user_of_its_episodes(world: World) -> None:
    """B2, B8.2: one user's three found that user's belief."""
    world.say_all(bikes(3), about="shed", user="ana")

    world.cycle()

    assert world.only_belief().user == "ana"


def test_first_persons_of_different_speakers_never_share_a_cluster(world: World) -> None:
    """B8.2: what Ana says of herself and what Ben says of himself are two matters."""
    for speaker in ("Ana", "Ben"):
        for number in range(3):
            world.say(f"I ride bike {number} of the club.", about="riding", speaker=speaker)

    world.cycle()

    assert sorted(len(members) for members in clusters_of(world)) == [3, 3]
    speakers = ClusterMember.objects.order_by().values_list("job", "episode__speaker").distinct()
    assert len(speakers) == 2
    assert sorted(world.workspace.beliefs.values_list("subject", "alpha")) == [("Ana", 4.0), ("Ben", 4.0)]


def test_a_large_cluster_keeps_its_most_central_and_pools_the_rest(world: World, decree: Decree) -> None:
    """B8.2: at most sixty, most central first; here four of six."""
    decree("consolidation", cluster_max=4)
    said = [world.say(text, about="shed", likeness=0.99 - n / 50) for n, text in enumerate(bikes(6))]

    world.cycle()

    assert clusters_of(world) == [[episode.text for episode in said[:4]]]
    assert world.states(*said) == ["settled"] * 4 + ["pooled"] * 2


def test_a_synthesis_sees_the_twelve_most_central(world: World) -> None:
    """B8.3: twelve of fifteen, the most central first; the belief gets evidence from all."""
    said = [world.say(text, about="shed", likeness=0.99 - n / 100) for n, text in enumerate(bikes(15))]

    world.cycle()

    assert world.server.calls("synthesize")[0].texts == [episode.text for episode in said[:12]]
    assert world.only_belief().evidence_count == 15


def test_size_and_waiting_decide_which_clusters_come_first(world: World, decree: Decree) -> None:
    """B8.2: by size × (1 + days waited); the others wait as they were and come next."""
    decree("consolidation", clusters=2)
    matters = {"shed": (5, 0), "kiln": (3, 4), "barn": (4, 0)}  # size, days: 5, 15 and 4
    said = {
        about: world.say_all(
            [f"The {about} number {n} is old." for n in range(size)],
            about=about,
            created_at=world.now - timedelta(days=days),
        )
        for about, (size, days) in matters.items()
    }

    cycle = world.cycle()

    assert [members[0].split()[1] for members in clusters_of(world)] == ["kiln", "shed"]
    assert set(world.states(*said["barn"])) == {"new"}
    assert cycle.counts["created"] == 2
    world.cycle()
    assert world.workspace.beliefs.count() == 3


def test_ten_clusters_a_cycle(world: World) -> None:
    """B9: the eleventh waits for the next."""
    for about in range(11):
        world.say_all([f"The barn {about} has a red door."] * 3, about=f"barn {about}")

    assert world.cycle().counts["created"] == 10
    assert world.cycle().counts["created"] == 1


def store_pool(world: World, vectors: Vectors, *, stem: str) -> list[str]:
    """Store pooled episodes that have waited a month, with their vectors; return their ids."""
    then = world.now - timedelta(days=30)
    rows = [
        Episode(
            workspace=world.workspace,
            text=f"{stem} {n}.",
            origin=f"session:{stem} {n}",
            content_hash=f"{stem} {n}",
            language="en",
            state="pooled",
            pooled_at=then,
            created_at=then,
            occurred_at=then,
        )
        for n in range(len(vectors))
    ]
    Episode.objects.bulk_create(rows)
    ids = [row.pk for row in rows]
    store_episode_vectors(workspace_id=world.workspace.pk, model=MODEL, vectors=dict(zip(ids, vectors, strict=True)))
    return ids


def unit(rows: Vectors) -> Vectors:
    """Scale rows to length 1."""
    scaled: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def test_a_full_pool_and_refused_clusters_keep_no_new_belief_away(world: World) -> None:
    """B8.2: 2,500 pooled singles and 12 refused clusters of 20 do not keep 3 alike new episodes waiting."""
    random = np.random.default_rng(7)
    store_pool(world, unit(random.standard_normal((2500, 768)).astype(np.float32)), stem="Single")
    earlier = Cycle.objects.create(
        workspace=world.workspace, now=world.now, trigger="person", state="finished", finished_at=world.now
    )
    centres = unit(random.standard_normal((12, 768)).astype(np.float32))
    for number, centre in enumerate(centres):
        near = unit(centre + 0.02 * random.standard_normal((20, 768)).astype(np.float32))
        ids = store_pool(world, near, stem=f"Refused {number} and")
        ClusterJob.objects.create(
            workspace=world.workspace,
            cycle=earlier,
            number=number,
            kind=JobKind.CLUSTER,
            state=JobState.REFUSED,
            refusal="question",
            members_hash=hash_members(ids),
        )
    said = world.say_all(bikes(3), about="shed")

    cycle = world.cycle()

    assert world.only_belief().evidence_count == 3
    assert set(world.states(*said)) == {"settled"}
    assert cycle.counts["created"] == 1
    assert world.calls("synthesize") == 1


def test_three_alike_in_three_cycles_meet(world: World) -> None:
    """B7: pooled episodes wait for later ones."""
    said = []
    for text in bikes(3):
        said.append(world.say(text, about="shed"))
        world.cycle(after=timedelta(days=25))

    assert world.only_belief().evidence_count == 3
    assert set(world.states(*said)) == {"settled"}


@pytest.mark.parametrize(("days", "state", "reason"), [(89, "pooled", ""), (91, "settled", "no_belief")])
def test_ninety_days_in_the_pool_settle_without_a_belief(world: World, days: int, state: str, reason: str) -> None:
    """B1, B7: counted from the first day in the pool, whatever cycles came between."""
    said = world.say("The barn has one door.", about="barn")
    world.cycle()
    world.cycle(after=timedelta(days=days // 2))

    world.cycle(after=timedelta(days=days - days // 2))

    said.refresh_from_db()
    assert (said.state, said.state_reason) == (state, reason)
