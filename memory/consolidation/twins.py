"""One pass over a workspace's beliefs finds every pair near enough to be one (B13)."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from django.conf import settings
from django.db.models import F, Max, Q

from memory.domain.lifecycle import LIVE, CycleState, JobState
from memory.domain.similarity import Profile
from memory.ledger.beliefs import BeliefSource, cosine_matrix, passes_guard, read_beliefs_with_vectors
from memory.llm.embeddings import embedder_of
from memory.models import Belief, Cycle, Link, LinkKind, StructuralJob, StructuralKind
from memory.search.vectors import Vectors

FOUND_DIFFERENT = "found_different"  # why a merge was refused by whoever was asked

_BLOCK = 1024

Pair = tuple[BeliefSource, BeliefSource, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A belief that may be one with another, as far as words and vectors tell; neither ever changes."""

    id: str
    similarity: float  # reference scale
    passes_guard: bool
    was_found_different: bool
    since_undone: timedelta | None = None  # if within the time for which a person's word stands (B22)

    @property
    def rank(self) -> tuple[bool, float, str]:
        """Order twins by their prospects of being one with the other."""
        is_free = not self.was_found_different and self.since_undone is None
        return self.passes_guard and is_free, self.similarity, self.id


def find_twins(*, cycle: Cycle, changed: Collection[str]) -> dict[str, list[Twin]]:
    """Return by belief its twins above the threshold, best first, for all that changed; others were looked at before.

    All of them: what keeps the best from merging, a pin or a change of late, must not keep the next.
    """
    if not changed:
        return {}
    model = embedder_of(cycle.workspace_id)
    live = Belief.objects.for_workspace(cycle.workspace_id).filter(status__in=LIVE)
    beliefs, vectors = read_beliefs_with_vectors(beliefs=live, model=model.name)
    different, undone = _found_different(cycle.workspace_id), _undone_lately(cycle)
    found: dict[str, list[Twin]] = defaultdict(list)
    for one, other, similarity in near_pairs(
        changed=set(changed), beliefs=beliefs, vectors=vectors, profile=model.profile
    ):
        twin = Twin(
            id=other.id,
            similarity=similarity,
            passes_guard=passes_guard(left=one.claim, right=other.claim),
            was_found_different=frozenset((one.id, other.id)) in different,
            since_undone=undone.get(frozenset((one.id, other.id))),
        )
        found[one.id].append(twin)
    return {key: sorted(near, key=lambda twin: twin.rank, reverse=True) for key, near in found.items()}


def settled_lately(*, cycle: Cycle) -> list[str]:
    """List the live beliefs whose rest after a change of structure ended since the last cycle: they may merge now."""
    rest = timedelta(days=settings.POLICY.gate.merge_settled_days)
    ended = (CycleState.FINISHED, CycleState.OVER_BUDGET)
    before = Cycle.objects.for_workspace(cycle.workspace_id).filter(state__in=ended, now__lt=cycle.now)
    last = before.aggregate(now=Max("now"))["now"]
    rested = Belief.objects.for_workspace(cycle.workspace_id).filter(
        Q(lineage_depth__gt=0) | Q(statement_changed_at__gt=F("created_at")),
        status__in=LIVE,
        statement_changed_at__lt=cycle.now - rest,
    )
    if last is not None:
        rested = rested.filter(statement_changed_at__gte=last - rest)
    return list(rested.values_list("pk", flat=True))


def proposed_lately(*, cycle: Cycle) -> list[str]:
    """List the live beliefs that somebody proposed to merge since the last cycle (R7)."""
    links = Link.objects.for_workspace(cycle.workspace_id).filter(kind=LinkKind.DUPLICATE)
    before = Cycle.objects.for_workspace(cycle.workspace_id).filter(finished_at__isnull=False, now__lt=cycle.now)
    last = before.aggregate(now=Max("now"))["now"]
    if last is not None:
        links = links.filter(created_at__gte=last)
    live = links.filter(belief__status__in=LIVE, other__status__in=LIVE)
    return sorted({key for pair in live.values_list("belief_id", "other_id") for key in pair})


def near_pairs(
    *, changed: Collection[str], beliefs: Sequence[BeliefSource], vectors: Vectors, profile: Profile
) -> Iterator[Pair]:
    """Yield every pair above the threshold of which the first changed, with the similarity on the reference scale."""
    threshold = profile.raw(settings.POLICY.gate.merge_similarity)
    here = [place for place, belief in enumerate(beliefs) if belief.id in changed]
    compare = _compare_once if 2 * len(here) > len(beliefs) else _compare_with_all
    for one, other, cosine in compare(vectors, here, threshold):
        if _are_of_one_scope(beliefs[one], beliefs[other]):
            yield beliefs[one], beliefs[other], profile.reference(cosine)


def _compare_with_all(vectors: Vectors, here: list[int], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Yield the places of whatever is near what stands `here`, block by block."""
    for start in range(0, len(here), _BLOCK):
        block = here[start : start + _BLOCK]
        cosines = cosine_matrix(vectors[block], vectors)
        for row, other in np.argwhere(cosines > threshold).tolist():
            if block[row] != other:
                yield block[row], other, float(cosines[row, other])


def _compare_once(vectors: Vectors, here: list[int], threshold: float) -> Iterator[tuple[int, int, float]]:
    """Yield the same, no two compared twice: what stands `here` is put in front, each block met from itself on.

    That is worth a copy of all vectors where most are meant.
    """
    order = [*here, *sorted(set(range(len(vectors))).difference(here))]
    ordered = vectors if len(here) == len(vectors) else vectors[order]
    for start in range(0, len(here), _BLOCK):
        cosines = cosine_matrix(ordered[start : min(start + _BLOCK, len(here))], ordered[start:])
        for row, column in np.argwhere(cosines > threshold).tolist():
            if row < column:
                one, other, cosine = order[start + row], order[start + column], float(cosines[row, column])
                yield one, other, cosine
                if start + column < len(here):
                    yield other, one, cosine


def _are_of_one_scope(one: BeliefSource, other: BeliefSource) -> bool:
    return (one.project_id, one.user, one.language) == (other.project_id, other.user, other.language)


def _found_different(workspace_id: int) -> set[frozenset[str]]:
    """Read the pairs that somebody was asked about, and that are not one."""
    refused = StructuralJob.objects.for_workspace(workspace_id).filter(
        kind=StructuralKind.MERGE, state=JobState.REFUSED, refusal=FOUND_DIFFERENT
    )
    return {frozenset(pair) for pair in refused.values_list("belief_id", "twin_id")}


def _undone_lately(cycle: Cycle) -> dict[frozenset[str], timedelta]:
    """Read the pairs whose merge a person had undone, with the time since, while their word stands (B22)."""
    since = cycle.now - timedelta(days=settings.POLICY.gate.undone_days)
    merges = StructuralJob.objects.for_workspace(cycle.workspace_id).filter(kind=StructuralKind.MERGE)
    undone = merges.undone().filter(undone_at__gte=since).order_by("undone_at")
    pairs = undone.values_list("belief_id", "twin_id", "undone_at")
    return {frozenset((one, other)): cycle.now - at for one, other, at in pairs}
