"""Undo a cycle: what it touched goes back to what it was, and its episodes are quarantined (B22).

`undo_cycle` is the way; `find_cycle_effects` tells from the rows what a cycle touched, `find_dependent_cycles` who
built on it, `quarantine_episodes` keeps its episodes out of cycles until a person releases them. Undone evidence and
lineage are put aside; beliefs stay, as invalidated ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.consolidation.episode_states import resettle_after_split
from memory.consolidation.related_beliefs import find_unjudged_pairs
from memory.consolidation.sources import read_episodes
from memory.domain.errors import EngramError
from memory.domain.identity import REBUILD_NAMES, Actor, ActorKind, cycle_actor
from memory.domain.lifecycle import LIVE, BeliefStatus, ConsolidationState, IllegalTransitionError, JobState, Reason
from memory.history import attribute_changes, states_before, states_left_by
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.transactions import change_status, lock_beliefs, lock_workspace
from memory.llm.embeddings import embedder_of
from memory.models import (
    Belief,
    BeliefEvent,
    Claim,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    LineageKind,
    RevokedEvidence,
    RevokedLineage,
    StructuralJob,
    StructuralKind,
    Transition,
)
from memory.models.cycles import UNDONE
from memory.redaction.service import redact_for

log = structlog.get_logger(__name__)
_NAMED_BELIEFS = 5  # beliefs that a refusal names of each cycle


@transaction.atomic
def undo_cycle(*, cycle_id: str, actor: Actor, now: datetime, reason: str = "") -> UndoResult:
    """Take back all that an ended cycle did; raise CannotBeUndone where that cannot be, Cycle.DoesNotExist for no id.

    Later cycles that built on it go first, the newest before the others. What a person did since stays done, but that
    nothing lives that was born in the cycle.
    """
    cycle = _lock_cycle(cycle_id)
    touched = find_cycle_effects(cycle=cycle)
    beliefs = lock_beliefs(touched.all)
    _check_no_dependent_cycles(cycle, touched)
    said = redact_for(workspace_id=cycle.workspace_id, text=reason)
    undoing = _Undo(cycle=cycle, actor=actor, now=now, reason=f"{undo_reason(cycle.pk)}: {said}".removesuffix(": "))
    standings = read_status_origins(cycle=cycle, beliefs=beliefs)
    before = _read_before(cycle, touched, standings)
    held = quarantine_episodes(cycle=cycle)
    evidence = _move_to_undone(Evidence.objects.filter(cycle=cycle), RevokedEvidence, now)
    lineage = _move_to_undone(Lineage.objects.filter(cycle=cycle), RevokedLineage, now)
    _refuse_open_jobs(cycle)
    for belief in beliefs:
        undoing.set_back(belief, standings[belief.pk], before.get(belief.pk), is_born=belief.pk in touched.born)
    undoing.recompute(beliefs, before)
    cycle.undone_at, cycle.undone_by = now, str(actor)
    cycle.save(update_fields=["undone_at", "undone_by"])
    log.info("cycle_undone", cycle=cycle.pk, workspace=cycle.workspace_id, beliefs=len(beliefs), held=held)
    return UndoResult(
        cycle=cycle,
        restored=len(touched.older),
        invalidated=len(touched.born),
        evidence=evidence,
        lineage=lineage,
        held=held,
    )


def _lock_cycle(cycle_id: str) -> Cycle:
    """Hold a cycle and its workspace, in which none can open meanwhile, and see that it can be undone at all."""
    lock_workspace(Cycle.objects.values_list("workspace_id", flat=True).get(pk=cycle_id))
    cycle: Cycle = Cycle.objects.select_for_update(no_key=True).get(pk=cycle_id)
    if cycle.finished_at is None:
        raise CannotBeUndone(f"Cycle {cycle.pk} is still {cycle.state}: cancel it, or let it end.")
    if cycle.undone_at is not None:
        raise CannotBeUndone(f"Cycle {cycle.pk} was undone already, by {cycle.undone_by}.")
    if other := Cycle.objects.for_workspace(cycle.workspace_id).open().first():
        raise CannotBeUndone(f"Cycle {other.pk} is {other.state}: cancel it, or let it end, and undo {cycle.pk} then.")
    return cycle


def _check_no_dependent_cycles(cycle: Cycle, touched: CycleEffects) -> None:
    if later := find_dependent_cycles(cycle=cycle, touched=touched):
        told = "; ".join(f"{key} changed {_list_ids(beliefs)}" for key, beliefs in later.items())
        raise CannotBeUndone(f"Later cycles built on {cycle.pk}: {told}. Undo those first, in this order.")


def _list_ids(beliefs: Sequence[str]) -> str:
    more = f" and {len(beliefs) - _NAMED_BELIEFS} more" if len(beliefs) > _NAMED_BELIEFS else ""
    return ", ".join(beliefs[:_NAMED_BELIEFS]) + more


def _read_before(cycle: Cycle, touched: CycleEffects, standings: Mapping[str, StatusOrigin]) -> Mapping[str, Any]:
    """Read how the older beliefs stood that the cycle changed.

    Those whose status it set cannot be set back where the cycle is from before there was a history.
    """
    before = states_before(beliefs=touched.older, actor=cycle_actor(cycle.pk))
    changed = {key for key in touched.older if standings[key].found}
    if unknown := sorted(changed - before.keys()):
        raise CannotBeUndone(
            f"What {_list_ids(unknown)} was before {cycle.pk} is not recorded: it is older than the history."
        )
    return before


def _move_to_undone(rows: QuerySet[Any], aside: type[Any], now: datetime) -> int:
    """Move rows to where those of undone cycles are kept; return how many."""
    names = [field.attname for field in aside._meta.concrete_fields if field.name not in ("id", "undone_at")]
    aside.objects.bulk_create(aside(undone_at=now, **row) for row in rows.order_by("pk").values(*names))
    deleted, _ = rows.delete()
    return deleted


def _refuse_open_jobs(cycle: Cycle) -> None:
    """End the structural changes that the cycle decided and that nobody has made yet."""
    decided = StructuralJob.objects.open().filter(decided_in=cycle)
    decided.revoke(state=JobState.REFUSED, refusal=UNDONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Undo:
    """One undoing on its way: whose it is, and what the history says of it."""

    cycle: Cycle
    actor: Actor
    now: datetime
    reason: str

    def set_back(self, belief: Belief, standing: StatusOrigin, before: Any | None, *, is_born: bool) -> None:
        """Set a belief's status back to what the cycle found, unless a person has spoken since."""
        if is_born:
            self._invalidate(belief, standing)
        elif standing.found and not standing.is_by_person and belief.status != standing.found:
            was_archived = belief.status == BeliefStatus.ARCHIVED
            self._change(belief, standing.found, before.status_reason if before else "")
            if was_archived:  # B14: as if a person had restored it, so that no gate archives it in the next breath
                belief.restored_by_person_at = self.now
                belief.save(update_fields=["restored_by_person_at"])

    def _invalidate(self, belief: Belief, standing: StatusOrigin) -> None:
        """Leave nothing alive that was born in the cycle; what a person forgot or put away stays so."""
        stays = standing.is_by_person and belief.status not in LIVE
        if not stays and belief.status != BeliefStatus.INVALIDATED:
            self._change(belief, BeliefStatus.INVALIDATED, self.reason)

    def _change(self, belief: Belief, new: BeliefStatus, status_reason: str) -> None:
        try:
            change_status(
                belief=belief, new=new, reason=self.reason, actor=self.actor, now=self.now, status_reason=status_reason
            )
        except IllegalTransitionError as error:
            raise CannotBeUndone(f"{belief.pk} cannot go back to what {self.cycle.pk} found: {error}.") from error

    def recompute(self, beliefs: Sequence[Belief], before: Mapping[str, Any]) -> None:
        """Let beliefs hold as long as before, and compute all else from the evidence that is left (C4)."""
        attribute_changes(actor=self.actor, reason=self.reason)
        after = states_left_by(beliefs=before.keys(), actor=cycle_actor(self.cycle.pk))
        for belief in beliefs:
            if belief.pk in before and belief.pk in after:
                _set_validity_back(belief, before[belief.pk], after[belief.pk])
        recompute_beliefs(beliefs=beliefs, now=self.now)


def _set_validity_back(belief: Belief, before: Any, after: Any) -> None:
    """Let a belief hold for as long as before a cycle, where it is the cycle that said otherwise."""
    for name in ("valid_from", "valid_until"):
        was, became = getattr(before, name), getattr(after, name)
        if was != became and getattr(belief, name) == became:
            setattr(belief, name, was)
    belief.save(update_fields=["valid_from", "valid_until"])


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResult:
    """A cycle that was undone, and how many of what went back."""

    cycle: Cycle
    restored: int  # older beliefs, back where they were
    invalidated: int  # beliefs that were born in it
    evidence: int
    lineage: int
    held: int

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {name: getattr(self, name) for name in ("restored", "invalidated", "evidence", "lineage", "held")}


class CannotBeUndone(EngramError, ValueError):
    """Something stands in the way; the message names it."""


UndoneCycles = Mapping[str, tuple[str, datetime]]  # by cycle: by whom and when


def undo_reason(cycle_id: str) -> str:
    """Word why something goes back with its cycle; a person's own reason may follow."""
    return f"cycle {cycle_id} undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleEffects:
    """The beliefs that a cycle founded, and the older ones that gained evidence, or changed status or structure."""

    born: frozenset[str]
    older: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        """Return the ids of both."""
        return self.born | self.older


def find_cycle_effects(*, cycle: Cycle) -> CycleEffects:
    """Find the beliefs that a cycle touched, by the rows it left."""
    born = frozenset(Belief.objects.filter(created_in=cycle).values_list("pk", flat=True))
    found = set(Evidence.objects.filter(cycle=cycle).values_list("belief_id", flat=True))
    for pair in Lineage.objects.filter(cycle=cycle).values_list("parent_id", "child_id"):
        found.update(pair)
    # What a reading said has ended was closed or challenged, whether or not it was evidence as well (F3).
    ended = JobVerdict.objects.filter(job__cycle=cycle, ends_belief=True).values("belief")
    # Whatever a cycle archives or brings back has its decision, which an index finds.
    decided = GateDecision.objects.filter(cycle=cycle).values("belief")
    # What held until its day was closed without any of these, as was what a later word settled (C1).
    dated = Belief.objects.for_workspace(cycle.workspace_id).exclude(valid_until=None).values("pk")
    superseded = Lineage.objects.filter(child__in=found, kind=LineageKind.SUPERSESSION).values("parent")
    successors = Lineage.objects.filter(parent__in=found, kind=LineageKind.SUPERSESSION).values("child")
    concerned = Q(belief__in=decided) | Q(belief__in=ended) | Q(belief__in=dated)
    concerned |= Q(belief__in=superseded) | Q(belief__in=successors) | Q(reason=Reason.REASON_ENDED)
    moved = Transition.objects.filter(concerned, actor=str(cycle_actor(cycle.pk)))
    found.update(moved.values_list("belief_id", flat=True))
    # What was to take the place of a closed belief holds since then, though nothing new was said of it (C2).
    begun = Lineage.objects.filter(parent__in=found, kind=LineageKind.SUPERSESSION).values("child")
    events = BeliefEvent.objects.filter(pgh_obj__in=begun, pgh_context__actor=str(cycle_actor(cycle.pk)))
    found.update(events.values_list("pgh_obj", flat=True))
    return CycleEffects(born=born, older=frozenset(found - born))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOrigin:
    """A belief's status in the light of one cycle."""

    found: BeliefStatus | None  # as the cycle found it; None where it left the status alone
    is_by_person: bool  # whether somebody who is no cycle has set it last


def read_status_origins(*, cycle: Cycle, beliefs: Sequence[Belief]) -> dict[str, StatusOrigin]:
    """Tell of each belief which status the cycle found, and whether today's is a person's word.

    What cycles did that are undone by now, and their undoing, count for nothing; nor does what rebuilding set right.
    """
    rows = Transition.objects.filter(belief__in=[belief.pk for belief in beliefs]).exclude(actor__in=REBUILD_NAMES)
    undoings = read_undone_cycles(workspace_id=cycle.workspace_id)
    counting: dict[str, list[Transition]] = {belief.pk: [] for belief in beliefs}
    for row in rows.order_by("pk"):
        if not _is_void(row, undoings):
            counting[row.belief_id or ""].append(row)
    return {key: _status_origin(told, cycle) for key, told in counting.items()}


def read_undone_cycles(*, workspace_id: int) -> UndoneCycles:
    """Read which cycles of a workspace were undone."""
    undone = Cycle.objects.for_workspace(workspace_id).exclude(undone_at=None)
    return {key: (by, at) for key, by, at in undone.values_list("pk", "undone_by", "undone_at")}


def is_undone_change(*, change: Transition, undoings: UndoneCycles) -> bool:
    """Tell whether a change of status went back with a cycle that was undone."""
    return any(
        (change.actor, change.at) == act and change.reason.startswith(undo_reason(key)) for key, act in undoings.items()
    )


def _is_void(row: Transition, undoings: UndoneCycles) -> bool:
    return row.actor in {str(cycle_actor(key)) for key in undoings} or is_undone_change(change=row, undoings=undoings)


def _status_origin(rows: Sequence[Transition], cycle: Cycle) -> StatusOrigin:
    actor = str(cycle_actor(cycle.pk))
    return StatusOrigin(
        found=next((BeliefStatus(row.old) for row in rows if row.actor == actor), None),
        is_by_person=bool(rows) and not rows[-1].actor.startswith(f"{ActorKind.CYCLE} "),
    )


def find_dependent_cycles(*, cycle: Cycle, touched: CycleEffects) -> dict[str, list[str]]:
    """Return by later cycle, the newest first, which of a cycle's beliefs it changed further; undone ones left out."""
    later = Cycle.objects.for_workspace(cycle.workspace_id).filter(opened_at__gt=cycle.opened_at, undone_at=None)
    changed: dict[str, set[str]] = defaultdict(set)
    for cycle_id, belief_id in _read_changes(touched.all):
        changed[cycle_id].add(belief_id)
    for cycle_id, belief_id, twin_id in _carried_out_later(cycle):
        changed[cycle_id].update(filter(None, (belief_id, twin_id)))
    newest_first: QuerySet[Cycle] = later.filter(pk__in=changed).order_by("-opened_at", "-pk")
    return {key: sorted(changed[key]) for key in newest_first.values_list("pk", flat=True)}


def _read_changes(beliefs: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield which cycle gave which of some beliefs evidence, another status or structure."""
    evidence = Evidence.objects.filter(belief__in=beliefs, cycle__isnull=False, base_weight__gt=0)
    yield from evidence.values_list("cycle_id", "belief_id").distinct()
    for side in ("parent", "child"):
        rows = Lineage.objects.filter(**{f"{side}__in": beliefs}, cycle__isnull=False)
        yield from rows.values_list("cycle_id", f"{side}_id")
    moved = Transition.objects.filter(belief__in=beliefs, actor__startswith=f"{ActorKind.CYCLE} ")
    for actor, belief_id in moved.values_list("actor", "belief_id"):
        yield actor.split()[1], belief_id


def _carried_out_later(cycle: Cycle) -> Iterator[tuple[str, str, str | None]]:
    """Yield which cycle made a change that this one had decided, and of which beliefs."""
    jobs = StructuralJob.objects.filter(decided_in=cycle, state=JobState.APPLIED).exclude(cycle=cycle)
    yield from jobs.values_list("cycle_id", "belief_id", "twin_id")


_QUARANTINABLE_STATES = (
    ConsolidationState.NEW, ConsolidationState.POOLED, ConsolidationState.SETTLED, ConsolidationState.FAILED,
    ConsolidationState.HELD,
)  # fmt: skip


class CycleNotUndone(EngramError, ValueError):
    """Only a cycle that was undone holds episodes."""


def quarantine_episodes(*, cycle: Cycle) -> int:
    """Hold what a cycle made evidence of, and what would do the same in its place; return how many.

    Called while the cycle's evidence is still there. Held are of its jobs' episodes those it made evidence of, of its
    applied jobs' those that are evidence of nothing, and those that were pooled because their cluster was full. What is
    evidence by another cycle's word alone stays settled: no cycle takes it up. One that another undone cycle holds is
    held for this one from here on.
    """
    _resettle_splits(cycle)
    mine = ClusterMember.objects.filter(episode=OuterRef("pk"), job__cycle=cycle)
    evidence = Evidence.objects.filter(episode=OuterRef("pk"))
    became_evidence = Exists(mine) & Exists(evidence.filter(cycle=cycle))
    was_looked_at = Exists(mine.filter(job__state=JobState.APPLIED)) & ~Exists(evidence)
    was_left_out = Q(pk__in=_find_pooled_alike(cycle))
    episodes = Episode.objects.for_workspace(cycle.workspace_id).filter(became_evidence | was_looked_at | was_left_out)
    return episodes.filter(state__in=_QUARANTINABLE_STATES).update(
        state=ConsolidationState.HELD, state_reason=undo_reason(cycle.pk)
    )


def _resettle_splits(cycle: Cycle) -> None:
    """Settle what the cycle's splits had pooled, as evidence of the beliefs that stand again."""
    splits = StructuralJob.objects.filter(cycle=cycle, kind=StructuralKind.SPLIT, state=JobState.APPLIED)
    for job in splits.select_related("belief"):
        resettle_after_split(belief=job.belief)


def _find_pooled_alike(cycle: Cycle) -> set[str]:
    """Find what was pooled by then near a belief that the cycle gave evidence, and was not asked about it."""
    model = embedder_of(cycle.workspace_id)
    mine = Episode.objects.for_workspace(cycle.workspace_id).active()
    beliefs = Belief.objects.filter(pk__in=Evidence.objects.filter(cycle=cycle).values("belief"))
    if not beliefs.exists():
        return set()
    pool, vectors = read_episodes(
        episodes=mine.filter(state=ConsolidationState.POOLED, pooled_at__lte=cycle.now), model=model.name
    )
    unheard = find_unjudged_pairs(
        workspace_id=cycle.workspace_id, episodes=pool, vectors=vectors, beliefs=beliefs, model=model
    )
    return {pair.episode.id for pair in unheard}


def select_quarantined(*, cycle: Cycle) -> QuerySet[Episode]:
    """Return the episodes that are held since a cycle was undone; raise CycleNotUndone where it was not."""
    if cycle.undone_at is None:
        raise CycleNotUndone(f"Cycle {cycle.pk} was not undone, so no episodes are held for it.")
    held: QuerySet[Episode] = Episode.objects.for_workspace(cycle.workspace_id).filter(
        state=ConsolidationState.HELD, state_reason=undo_reason(cycle.pk)
    )
    return held


@transaction.atomic
def release_quarantined(*, episodes: QuerySet[Episode]) -> int:
    """Let the held ones among some episodes take part again as if they were new, and be read anew; return how many."""
    ids = episodes.filter(state=ConsolidationState.HELD).order_by().values_list("pk", flat=True)
    held = Episode.objects.filter(pk__in=list(ids), state=ConsolidationState.HELD)
    Claim.objects.filter(episode__in=held.values("pk")).delete()
    return held.update(
        state=ConsolidationState.NEW, state_reason="", pooled_at=None, failures=0, dead_at=None, read_at=None
    )
