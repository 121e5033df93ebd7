"""The episodes that every fault test tells, and what must have come of them."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from memory.consolidation.cycle import open_cycle
from memory.consolidation.schedule import wait_for_cycle
from memory.domain.evidence import Verdict
from memory.ledger.confidence import find_drift
from memory.models import Belief, Cycle, Episode, Evidence, Lineage, Trigger, Workspace
from tests.consolidation.world import World
from tests.faults.changes import tell_changes

# What the story costs where nothing goes wrong; of the classifications two judge old evidence anew.
CALLS = Counter(synthesize=2, classify=5, revise=1, split=1, merge=1)
BELIEFS = 11  # three of the story, four on which gates open, four that come of those
CYCLE_SECONDS = 90.0
SHELVES = ("red", "blue", "green", "white", "black", "brown", "yellow", "orange", "purple", "silver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is stored after a cycle, by content, since ids are drawn at random."""

    beliefs: dict[str, tuple[Any, ...]]
    evidence: dict[tuple[str, str], tuple[Any, ...]]
    episodes: dict[str, str]
    changes: list[tuple[str, str, str]]
    seconds: float = field(compare=False, default=0.0)  # what the cycle took


def tell_story(world: World) -> None:
    """Store what happened: a matter of its own, a matter that a belief speaks of, a lone contradiction, and noise.

    Beside these there is one belief to be revised, one to be split, and two to be merged.
    """
    world.now = timezone.now()  # the clock of a cycle that follows by itself after one over budget
    world.statements["lock"] = "The lock of the archive lasts 5 seconds."
    world.say_all([f"The lock of the archive lasts {n} seconds." for n in (5, 7, 9, 11)], about="lock")
    world.say("The lock of the archive lasts 13 seconds.", about="lock", verdict=Verdict.CONTRADICTS)
    world.say("The lock of the archive lasts 15 seconds.", about="lock", verdict=Verdict.PARTIAL)

    world.hold("Ana writes her notes with a pencil.", about="notes")
    world.say("Ana wrote 2 pages of notes with a pencil.", about="notes", likeness=0.88)
    world.say("Ana took 3 pencils along for her notes.", about="notes", likeness=0.88)
    world.say("Ana typed 4 pages of notes.", about="notes", likeness=0.88, verdict=Verdict.CONTRADICTS)

    world.hold("Ana drinks tea in the morning.", about="tea", supports=4)
    world.say("Ana had 2 coffees this morning.", about="tea", verdict=Verdict.CONTRADICTS)

    world.say("A blackbird sang.", about="birds")
    tell_changes(world)


def tell_ten_matters(world: World) -> None:
    """Store what becomes ten clusters, each with a synthesis and a classification to ask for, and noise."""
    for shelf in SHELVES:
        texts = [f"The {shelf} shelf holds {boxes} boxes." for boxes in (5, 7, 9, 11)]
        world.statements[shelf] = texts[0]
        world.say_all(texts, about=shelf)
    world.say("A blackbird sang.", about="birds")


def begin(world: World) -> Cycle:
    """Open a cycle and send its first message."""
    return open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)[0]


def await_end(cycle: Cycle) -> Cycle:
    """Wait for a cycle's end, sweeping meanwhile as a waiting command does; fail if it does not end."""
    deadline = time.monotonic() + CYCLE_SECONDS

    def look(seen: Cycle) -> None:
        assert time.monotonic() < deadline, f"cycle is still {seen.state} in attempt {seen.attempt}"

    return wait_for_cycle(cycle.pk, on_look=look)


def read_outcome(workspace: Workspace, *, seconds: float = 0.0) -> Outcome:
    """Read what a workspace holds."""
    beliefs = Belief.objects.for_workspace(workspace.pk)
    evidence = Evidence.objects.for_workspace(workspace.pk)
    episodes = Episode.objects.for_workspace(workspace.pk)
    changes = Lineage.objects.for_workspace(workspace.pk)
    columns = ("statement", "alpha", "beta", "evidence_count", "storage_strength", "status")
    return Outcome(
        beliefs={row[0]: row[1:] for row in beliefs.values_list(*columns)},
        evidence={
            row[:2]: row[2:]
            for row in evidence.values_list("belief__statement", "episode__text", "verdict", "kind", "base_weight")
        },
        episodes=dict(episodes.values_list("text", "state")),
        changes=sorted(changes.values_list("parent__statement", "kind", "child__statement")),
        seconds=seconds,
    )


def check_whole(cycle: Cycle, *, cycles: int = 1, beliefs: int = BELIEFS) -> None:
    """Assert what holds after every fault: the cycle ended well, beliefs equal their evidence, no episode is lost."""
    workspace = cycle.workspace
    assert cycle.state == "finished"
    assert Cycle.objects.filter(workspace=workspace).count() == cycles
    checked, drift = find_drift(workspace=workspace)
    assert (checked, drift) == (beliefs, [])
    assert set(Episode.objects.for_workspace(workspace.pk).values_list("state", flat=True)) == {"settled", "pooled"}
    assert not Episode.objects.for_workspace(workspace.pk).filter(leased_by__isnull=False).exists()


def count_calls(world: World) -> Counter[str]:
    """Count what the model server was asked, by purpose; to embed again costs little and is not counted."""
    return Counter(call.purpose for call in world.server.log if call.purpose != "embed")
