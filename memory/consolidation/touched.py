"""What a cycle laid hands on, whose word each status is, and which later cycles built on it (B22)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from memory.domain.identity import REBUILD_ACTOR, ActorKind, cycle_actor
from memory.domain.lifecycle import BeliefStatus, JobState
from memory.models import (
    Belief,
    BeliefEvent,
    Cycle,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    LineageKind,
    StructuralJob,
    Transition,
)

Undoings = Mapping[str, tuple[str, datetime]]  # by cycle: by whom and when


def undoing_of(cycle_id: str) -> str:
    """Word why something goes back with its cycle; a person's own reason may follow."""
    return f"cycle {cycle_id} undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """The beliefs that a cycle founded, and the older ones that gained evidence, or changed status or structure."""

    born: frozenset[str]
    older: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Return the ids of both."""
        return self.born | self.older


def find_touched(*, cycle: Cycle) -> Touched:
    """Find the beliefs that a cycle touched, by the rows it left."""
    born = frozenset(Belief.objects.filter(born_in=cycle).values_list("pk", flat=True))
    found = set(Evidence.objects.filter(cycle=cycle).values_list("belief_id", flat=True))
    for pair in Lineage.objects.filter(cycle=cycle).values_list("parent_id", "child_id"):
        found.update(pair)
    # What a claim said has ended was challenged, whether or not it was evidence as well (E3).
    ended = JobVerdict.objects.filter(job__cycle=cycle, ends_belief=True).values("belief")
    # Whatever a cycle archives or brings back has its decision, which an index finds.
    decided = GateDecision.objects.filter(cycle=cycle).values("belief")
    # What held until its day was closed without any of these, as was what a later word settled (C1).
    dated = Belief.objects.for_workspace(cycle.workspace_id).exclude(valid_until=None).values("pk")
    superseded = Lineage.objects.filter(child__in=found, kind=LineageKind.SUPERSESSION).values("parent")
    successors = Lineage.objects.filter(parent__in=found, kind=LineageKind.SUPERSESSION).values("child")
    concerned = Q(belief__in=decided) | Q(belief__in=ended) | Q(belief__in=dated)
    concerned |= Q(belief__in=superseded) | Q(belief__in=successors)
    moved = Transition.objects.filter(concerned, actor=str(cycle_actor(cycle.pk)))
    found.update(moved.values_list("belief_id", flat=True))
    # What was to take the place of a closed belief holds since then, though nothing new was said of it (C2).
    begun = Lineage.objects.filter(parent__in=found, kind=LineageKind.SUPERSESSION).values("child")
    events = BeliefEvent.objects.filter(pgh_obj__in=begun, pgh_context__actor=str(cycle_actor(cycle.pk)))
    found.update(events.values_list("pgh_obj", flat=True))
    return Touched(born=born, older=frozenset(found - born))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A belief's status in the light of one cycle."""

    found: BeliefStatus | None  # as the cycle found it; None where it left the status alone
    is_by_person: bool  # whether somebody who is no cycle has set it last


def read_standings(*, cycle: Cycle, beliefs: Sequence[Belief]) -> dict[str, Standing]:
    """Tell of each belief which status the cycle found, and whether today's is a person's word.

    What cycles did that are undone by now, and their undoing, count for nothing; nor does what rebuilding set right.
    """
    rows = Transition.objects.filter(belief__in=[belief.pk for belief in beliefs]).exclude(actor=str(REBUILD_ACTOR))
    undoings = read_undoings(workspace_id=cycle.workspace_id)
    counting: dict[str, list[Transition]] = {belief.pk: [] for belief in beliefs}
    for row in rows.order_by("pk"):
        if not _is_void(row, undoings):
            counting[row.belief_id or ""].append(row)
    return {key: _standing(told, cycle) for key, told in counting.items()}


def read_undoings(*, workspace_id: int) -> Undoings:
    """Read which cycles of a workspace were undone."""
    undone = Cycle.objects.for_workspace(workspace_id).exclude(undone_at=None)
    return {key: (by, at) for key, by, at in undone.values_list("pk", "undone_by", "undone_at")}


def is_undoing(*, change: Transition, undoings: Undoings) -> bool:
    """Tell whether a change of status went back with a cycle that was undone."""
    return any(
        (change.actor, change.at) == act and change.reason.startswith(undoing_of(key)) for key, act in undoings.items()
    )


def _is_void(row: Transition, undoings: Undoings) -> bool:
    return row.actor in {str(cycle_actor(key)) for key in undoings} or is_undoing(change=row, undoings=undoings)


def _standing(rows: Sequence[Transition], cycle: Cycle) -> Standing:
    actor = str(cycle_actor(cycle.pk))
    return Standing(
        found=next((BeliefStatus(row.old) for row in rows if row.actor == actor), None),
        is_by_person=bool(rows) and not rows[-1].actor.startswith(f"{ActorKind.CYCLE} "),
    )


def find_built_on(*, cycle: Cycle, touched: Touched) -> dict[str, list[str]]:
    """Return by later cycle, the newest first, which of a cycle's beliefs it changed further; undone ones left out."""
    later = Cycle.objects.for_workspace(cycle.workspace_id).filter(opened_at__gt=cycle.opened_at, undone_at=None)
    changed: dict[str, set[str]] = defaultdict(set)
    for cycle_id, belief_id in _changes(touched.all):
        changed[cycle_id].add(belief_id)
    for cycle_id, belief_id, twin_id in _decided_then(cycle):
        changed[cycle_id].update(filter(None, (belief_id, twin_id)))
    newest_first: QuerySet[Cycle] = later.filter(pk__in=changed).order_by("-opened_at", "-pk")
    return {key: sorted(changed[key]) for key in newest_first.values_list("pk", flat=True)}


def _changes(beliefs: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield which cycle gave which of some beliefs evidence, another status or structure."""
    evidence = Evidence.objects.filter(belief__in=beliefs, cycle__isnull=False, base_weight__gt=0)
    yield from evidence.values_list("cycle_id", "belief_id").distinct()
    for side in ("parent", "child"):
        rows = Lineage.objects.filter(**{f"{side}__in": beliefs}, cycle__isnull=False)
        yield from rows.values_list("cycle_id", f"{side}_id")
    moved = Transition.objects.filter(belief__in=beliefs, actor__startswith=f"{ActorKind.CYCLE} ")
    for actor, belief_id in moved.values_list("actor", "belief_id"):
        yield actor.split()[1], belief_id


def _decided_then(cycle: Cycle) -> Iterator[tuple[str, str, str | None]]:
    """Yield which cycle made a change that this one had decided, and of which beliefs."""
    jobs = StructuralJob.objects.filter(decided_in=cycle, state=JobState.APPLIED).exclude(cycle=cycle)
    yield from jobs.values_list("cycle_id", "belief_id", "twin_id")
