"""Look at all beliefs of a workspace: which may say the same, which have decayed, which lack a subject (R7, R7d, R13).

`reflect` changes nothing; `prune`, `propose_merges` and `backfill_subjects` act on what it tells. `find_alike_pairs`
compares the beliefs of each project, user and language with each other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet
from numpy.typing import NDArray

from memory.domain.identity import Actor
from memory.domain.lifecycle import LIVE, BeliefStatus
from memory.domain.scoring import effective_confidence
from memory.domain.similarity import Profile
from memory.history import attribute_changes
from memory.language.subjects import split_subject
from memory.ledger import beliefs
from memory.ledger.beliefs import BeliefSource, cosine_matrix, hash_statement, read_beliefs_with_vectors
from memory.ledger.confidence import WITHDRAWN_STATUSES, chosen_confidence
from memory.ledger.transactions import change_status, lock_beliefs, lock_workspace, scan_lock
from memory.llm.embeddings import embedder_of
from memory.models import Belief, Evidence, Link, LinkKind, Workspace
from memory.models.conversations import REASON_BACKFILLED
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)
_PRUNED_AT_ONCE = 50  # beliefs that are pruned in one transaction
DECAYED = "faded"  # why a belief is pruned
_MAX_SUBJECT = 200
_FILLED_AT_ONCE = 50  # some 0.1 s under the lock of the workspace


def reflect(*, workspace: Workspace, now: datetime, most: int) -> Reflection:
    """Look through a workspace's active beliefs; tell of so many pairs, and of so many that have faded.

    Raises WorkspaceBusy where somebody does so already.
    """
    active = Belief.objects.for_workspace(workspace.pk).active()
    alike = _find_duplicates(workspace, from_similarity=settings.POLICY.reflection.duplicate_similarity, most=most)
    faded = sorted(find_decayed(workspace=workspace, now=now), key=lambda one: (one.effective_confidence, one.id))
    return Reflection(
        beliefs=active.count(),
        duplicate_count=alike.count,
        duplicates=[_as_duplicate(pair) for pair in alike.pairs],
        faded_count=len(faded),
        faded=faded[:most],
    )


def _find_duplicates(workspace: Workspace, *, from_similarity: float, most: int) -> AlikePairs:
    with scan_lock(workspace.pk):
        return find_alike_pairs(workspace=workspace, band=SimilarityBand(low=from_similarity), most=most)


def _as_duplicate(pair: BeliefPair) -> DuplicatePair:
    return DuplicatePair(
        ids=pair.ids,
        statements=(pair.one.statement, pair.other.statement),
        similarity=pair.similarity,
        passes_guard=passes_guard(pair=pair),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatePair:
    """Two beliefs that may say the same: similarity on the reference scale, and whether the guard passes."""

    ids: tuple[str, str]
    statements: tuple[str, str]
    similarity: float
    passes_guard: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayedBelief:
    """A belief of which nothing was said for so long that little of its confidence is left."""

    id: str
    statement: str
    effective_confidence: float
    is_prunable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """What a look at all beliefs found: counts, and the first of each kind; nothing is changed by it."""

    beliefs: int
    duplicate_count: int
    duplicates: Sequence[DuplicatePair]
    faded_count: int
    faded: Sequence[DecayedBelief]


def find_decayed(
    *, workspace: Workspace, now: datetime, among: Collection[str] | None = None
) -> Iterator[DecayedBelief]:
    """Yield the active beliefs whose effective confidence is low; what is kept by others is never prunable (R7d).

    `among` names those that are looked at, None all.
    """
    policy = settings.POLICY.reflection
    active = Belief.objects.for_workspace(workspace.pk).active().select_related("workspace", "access").defer("search")
    counting = Evidence.objects.for_workspace(workspace.pk).exclude(episode__status__in=WITHDRAWN_STATUSES)
    if among is not None:
        active, counting = active.filter(pk__in=among), counting.filter(belief__in=among)
    said = dict(counting.filter(base_weight__gt=0).values_list("belief").annotate(Max("created_at")))
    for belief in active.iterator(chunk_size=1000):
        left = effective_confidence(
            confidence=chosen_confidence(belief),
            since_evidence=now - said.get(belief.pk, belief.created_at),
            stability=_stability(belief),
            policy=policy,
        )
        if left < policy.stale_confidence:
            is_prunable = left < policy.prune_confidence and not _is_protected(belief, now)
            yield DecayedBelief(
                id=belief.pk, statement=belief.statement, effective_confidence=left, is_prunable=is_prunable
            )


def _stability(belief: Belief) -> float:
    access = getattr(belief, "access", None)
    initial: float = settings.POLICY.strength.initial_stability
    return access.stability if access else initial


def _is_protected(belief: Belief, now: datetime) -> bool:
    """Tell whether a belief is pinned, published, well evidenced, or was restored by a person not long ago (B14)."""
    is_published = belief.promoted_at is not None or belief.published_confidence is not None
    restored_at, rest = belief.restored_by_person_at, timedelta(days=settings.POLICY.gate.archive_restored_days)
    is_restored = restored_at is not None and now - restored_at < rest
    is_evidenced = belief.evidence_count >= settings.POLICY.reflection.prune_evidence
    return belief.is_pinned or is_published or is_restored or is_evidenced


def list_prunable(*, workspace: Workspace, now: datetime, among: Collection[str] | None = None) -> list[DecayedBelief]:
    """List the beliefs that pruning would take."""
    faded = find_decayed(workspace=workspace, now=now, among=among)
    return sorted((one for one in faded if one.is_prunable), key=lambda one: one.id)


def prune(*, workspace: Workspace, actor: Actor, now: datetime) -> list[DecayedBelief]:
    """Take out of recall what has faded, and return it; a curator can restore it.

    A few at a time, so that gates and people need not wait for all of them; what was said meanwhile counts.
    """
    ids = [one.id for one in list_prunable(workspace=workspace, now=now)]
    pruned: list[DecayedBelief] = []
    for start in range(0, len(ids), _PRUNED_AT_ONCE):
        pruned += _prune(workspace, ids[start : start + _PRUNED_AT_ONCE], actor, now)
    log.info("beliefs_pruned", workspace=workspace.pk, beliefs=len(pruned))
    return pruned


@transaction.atomic
def _prune(workspace: Workspace, ids: Sequence[str], actor: Actor, now: datetime) -> list[DecayedBelief]:
    """Prune those of the named beliefs that are still to be."""
    lock_workspace(workspace.pk)
    pruned = list_prunable(workspace=workspace, now=now, among=ids)
    for belief in lock_beliefs([one.id for one in pruned]):
        change_status(belief=belief, new=BeliefStatus.PRUNED, reason=DECAYED, actor=actor, now=now)
    return pruned


def propose_merges(*, workspace: Workspace, now: datetime) -> list[DuplicatePair]:
    """Have the next cycle's merge gate (B13) look at the pairs that may say the same; return those that it may merge.

    The gate asks for more than a reflection does, and a model agrees or not. Of very many the most similar have their
    turn, the others once those are merged. Raises WorkspaceBusy.
    """
    least = settings.POLICY.gate.merge_similarity
    alike = _find_duplicates(workspace, from_similarity=least, most=settings.POLICY.reflection.pairs)
    nearest = [_as_duplicate(pair) for pair in alike.pairs if pair.similarity > least]
    proposed = _store_proposals(workspace, [pair for pair in nearest if pair.passes_guard], now)
    log.info("merges_proposed", workspace=workspace.pk, pairs=len(proposed))
    return proposed


@transaction.atomic
def _store_proposals(workspace: Workspace, pairs: Sequence[DuplicatePair], now: datetime) -> list[DuplicatePair]:
    """Store pairs, but for those of which one was erased since, or is believed no more; return the stored ones."""
    lock_workspace(workspace.pk)
    proposed = keep_active(pairs)
    rows = [
        Link(
            workspace=workspace,
            belief_id=pair.ids[0],
            other_id=pair.ids[1],
            kind=LinkKind.DUPLICATE,
            similarity=pair.similarity,
            created_at=now,
        )
        for pair in proposed
    ]
    Link.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["belief", "other", "kind"], update_fields=["created_at"]
    )
    return proposed


def backfill_subjects(*, workspace: Workspace, actor: Actor, now: datetime) -> dict[str, str]:
    """Give every live belief without a subject one, in lower case; return the subjects by belief.

    Some at a time, so that gates and people need not wait for all of them; what ends halfway is ended by the next run.
    Done again it finds nothing left to do: whose statement names nobody is left as it is.
    """
    named = {belief.pk: subject for belief in _without_subject(workspace) if (subject := _subject_of(belief))}
    ids = sorted(named)
    filled: dict[str, str] = {}
    for start in range(0, len(ids), _FILLED_AT_ONCE):
        filled |= _fill_subjects(workspace, ids[start : start + _FILLED_AT_ONCE], actor, now)
    return filled


def _without_subject(workspace: Workspace) -> QuerySet[Belief]:
    return Belief.objects.for_workspace(workspace.pk).filter(status__in=LIVE, subject="").only("statement")


def _subject_of(belief: Belief) -> str:
    """Return the subject that a statement names; "" where it is no more than marks."""
    subject = split_subject(belief.statement)[0].lower().strip()[:_MAX_SUBJECT]
    return subject if any(character.isalnum() for character in subject) else ""


@transaction.atomic
def _fill_subjects(workspace: Workspace, ids: Collection[str], actor: Actor, now: datetime) -> dict[str, str]:
    """Fill in those of the named beliefs that are still without a subject."""
    lock_workspace(workspace.pk)
    attribute_changes(actor=actor, reason=REASON_BACKFILLED)
    beliefs = lock_beliefs(_without_subject(workspace).filter(pk__in=ids).values("pk"))
    for belief in beliefs:
        belief.subject, belief.updated_at = _subject_of(belief), now
        belief.statement_hash = hash_statement(belief.statement, belief.subject, belief.context)
    Belief.objects.bulk_update(beliefs, ["subject", "statement_hash", "updated_at"])
    return {belief.pk: belief.subject for belief in beliefs}


def find_alike_pairs(
    *, workspace: Workspace, band: SimilarityBand, most: int, besides: Collection[BeliefIds] = ()
) -> AlikePairs:
    """Return so many pairs within a band of the reference scale, the most similar, known ones left out."""
    model = embedder_of(workspace)
    raw = _raw_band(band, model.profile)
    active = Belief.objects.for_workspace(workspace.pk).active()
    beliefs, vectors = read_beliefs_with_vectors(beliefs=active, model=model.name)
    known = set(besides)
    count, found = 0, []
    for places in _scopes_of_pairs(beliefs):
        ids = [beliefs[place].id for place in places]
        for hits, best in _best_of_blocks(vectors[places], raw, most, _known_places(ids, known)):
            count += hits
            found += [(cosine, places[left], places[right]) for cosine, left, right in best]
            if len(found) > 2 * most:
                found = _most_similar(found, most)
    pairs = [
        BeliefPair(one=beliefs[left], other=beliefs[right], similarity=float(model.profile.reference(cosine)))
        for cosine, left, right in _most_similar(found, most)
    ]
    return AlikePairs(count=count, pairs=pairs)


_MAX_CELLS = 2**23  # cosines that are held at once: 32 MB, whatever there is to compare
BeliefIds = tuple[str, str]
_Hit = tuple[float, int, int]  # cosine, and the places of the two


class _Paired(Protocol):
    @property
    def ids(self) -> BeliefIds: ...


Twosome = TypeVar("Twosome", bound=_Paired)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefPair:
    """Two beliefs, the lesser id first, and their similarity on the reference scale."""

    one: BeliefSource
    other: BeliefSource
    similarity: float

    @property
    def ids(self) -> BeliefIds:
        """Name the two."""
        return self.one.id, self.other.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityBand:
    """A stretch of similarities, the lower end in it and the upper end not."""

    low: float
    high: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikePairs:
    """How many pairs are alike, and the most similar of them."""

    count: int
    pairs: Sequence[BeliefPair]


def _most_similar(found: list[_Hit], most: int) -> list[_Hit]:
    return sorted(found, key=lambda each: (-each[0], each[1:]))[:most]


def passes_guard(*, pair: BeliefPair) -> bool:
    """Tell whether no rule tells two beliefs apart."""
    return beliefs.says_the_same(left=pair.one.claim, right=pair.other.claim)


def keep_active(pairs: Iterable[Twosome]) -> list[Twosome]:
    """Keep the pairs of which neither was erased since they were found, or is believed no more."""
    kept = list(pairs)
    named = {key for pair in kept for key in pair.ids}
    active = set(Belief.objects.filter(pk__in=named).active().values_list("pk", flat=True))
    return [pair for pair in kept if active.issuperset(pair.ids)]


def _raw_band(band: SimilarityBand, profile: Profile) -> SimilarityBand:
    """Return a band of raw cosines; one without an upper end stays so."""
    high = band.high if math.isinf(band.high) else float(profile.raw(band.high))
    return SimilarityBand(low=float(profile.raw(band.low)), high=high)


def _scopes_of_pairs(beliefs: list[BeliefSource]) -> Iterator[list[int]]:
    """Yield the places of beliefs of one project, user and language; they come by id, and stay so."""
    scopes: dict[object, list[int]] = defaultdict(list)
    for place, belief in enumerate(beliefs):
        scopes[belief.project_id, belief.user, belief.language].append(place)
    yield from scopes.values()


def _known_places(ids: list[str], known: set[BeliefIds]) -> NDArray[np.intp]:
    """Return where known pairs stand, (n, 2)."""
    place = {key: number for number, key in enumerate(ids)}
    pairs = [(place[one], place[other]) for one, other in known if one in place and other in place]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def _best_of_blocks(
    vectors: Vectors, band: SimilarityBand, most: int, known: NDArray[np.intp]
) -> Iterator[tuple[int, list[_Hit]]]:
    """Yield of each block of rows how many pairs are alike, and the most similar: cosine, left < right."""
    rows = max(_MAX_CELLS // max(len(vectors), 1), 1)
    for start in range(0, len(vectors), rows):
        cosines = cosine_matrix(vectors[start : start + rows], vectors[start:])
        cosines[np.tril_indices(len(cosines))] = -np.inf
        here = known[(known[:, 0] >= start) & (known[:, 0] < start + rows)] - start
        cosines[here[:, 0], here[:, 1]] = -np.inf
        chosen = np.flatnonzero((cosines >= band.low) & (cosines < band.high))
        values = cosines.ravel()[chosen]
        hits = len(chosen)
        if hits > most:  # the few are sorted, not all of them
            enough = values >= np.partition(values, -most)[-most]
            chosen, values = chosen[enough], values[enough]
        best = np.argsort(-values, kind="stable")[:most]
        lefts, rights = np.divmod(chosen[best], cosines.shape[1])
        yield hits, list(zip(values[best].tolist(), (start + lefts).tolist(), (start + rights).tolist(), strict=True))
