"""Index or scan: how each search is run, and which approximate indexes are kept.

`SearchPlanner` chooses per search by the number of vectors and texts in reach; `keep_indexes` builds and drops the
indexes in the background.
"""

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import structlog
from django.db import DatabaseError, connection

from memory.domain.policy_recall import RecallPolicy
from memory.models import VectorCount
from memory.models.fields import VectorKind
from memory.search.scope import ScopeSize, SearchScope, VectorMethod, count_user_vectors, measure_scope, recount_vectors
from memory.search.statements import TextMethod
from memory.search.vectors import StoredIndex, VectorIndex, build_index, drop_index, index_builder_lock, stored_indexes

log = structlog.get_logger(__name__)


class SearchPlan(NamedTuple):
    """How a kind of memory is searched by vector, and by words; `is_small` where there are few, whosever they are.

    `effort` is how many vectors an index keeps in view, `searched` about how many are in question.
    """

    arm: VectorMethod
    lookup: TextMethod
    is_small: bool = False
    effort: int | None = None
    searched: int = 0


class SearchPlanner:
    """The ways for each kind of memory in a reach, by sizes that are at most `_MAX_AGE` older than the last count."""

    def __init__(self, *, reach: SearchScope, policy: RecallPolicy) -> None:
        self._reach, self._policy = reach, policy
        self._sizes: Mapping[VectorKind, ScopeSize] = {}

    def __call__(self, *, kind: VectorKind, model: str, documents: int) -> SearchPlan:
        """Choose by what was counted last; a named user's memories are counted on the spot, up to a bound.

        `documents` are the texts of the workspace.
        """
        if not self._sizes:
            self._sizes = read_sizes(model=model, reach=self._reach)
        size, most = self._sizes[kind], self._policy.exact_vectors
        if self._reach.user and size.count > most and kind.is_scoped:
            count = count_user_vectors(kind=kind, model=model, reach=self._reach, most=most)
            size = replace(size, count=count) if count <= most else size
        arm = choose_arm(count=size.count, index=size.index, indexed=size.indexed, policy=self._policy)
        return SearchPlan(
            arm=arm,
            lookup=choose_lookup(
                documents=documents, stored=self._sizes[VectorKind.EPISODE].stored, policy=self._policy
            ),
            # 0 are stored in a table that was never analysed
            is_small=not arm.is_index and 0 < size.stored <= self._policy.exact_vectors,
            effort=choose_effort(count=size.count, indexed=size.indexed, policy=self._policy) if arm.is_index else None,
            searched=size.count,
        )


def read_sizes(*, model: str, reach: SearchScope) -> Mapping[VectorKind, ScopeSize]:
    """Return the sizes of a reach; they are counted now and then, and not asked for again by every recall.

    What is found is right by any way: an index that is gone by now makes a search slower, one that is new comes late.
    """
    spell = int(time.monotonic() // _MAX_AGE)
    return _cached_sizes(spell, model, reach.workspace_id, reach.projects, reach.allowed)


@lru_cache(maxsize=1_024)
def _cached_sizes(
    spell: int, model: str, workspace_id: int, projects: tuple[int, ...] | None, allowed: tuple[int, ...] | None
) -> Mapping[VectorKind, ScopeSize]:
    reach = SearchScope(workspace_id=workspace_id, projects=projects, allowed=allowed, user="", now=datetime.now(UTC))
    return measure_scope(model=model, reach=reach)


def clear_sizes() -> None:
    """Have all sizes asked for again."""
    _cached_sizes.cache_clear()


_MAX_AGE = 5.0


def choose_arm(*, count: int, index: VectorMethod, indexed: int, policy: RecallPolicy) -> VectorMethod:
    """Choose between an index and a scan: an index that mostly holds what is not asked for is slow, and overlooks much.

    `count` vectors are in question, `indexed` in the index; `index` is NONE where there is no index. To search an index
    costs as much as to compare `exact_vectors`, and that as often as it takes to come upon enough that is asked for.
    """
    share = _share(count, indexed)
    if index == VectorMethod.NONE or share <= policy.least_index_share or count * share <= policy.exact_vectors:
        return VectorMethod.SCAN
    return index


def choose_effort(*, count: int, indexed: int, policy: RecallPolicy) -> int:
    """Choose how many vectors an index keeps in view: so many more, where some are not asked for, that enough are left.

    A second pass, for what the first one lacks, takes longer. A quarter more are spare, for what is not asked for lies
    unevenly; where it is most of an index it may lie far off, and a second pass be needless.
    """
    share = _share(count, indexed)
    spare = min(1 + 3 * (1 - share), 1.25)
    return min(round(policy.search_effort * min(spare / max(share, 0.01), _MOST_EFFORT)), _UTMOST)


_MOST_EFFORT = 2.5  # times that of an index which holds nothing else
_UTMOST = 1_000  # that pgvector takes


def _share(count: int, indexed: int) -> float:
    """Return the share of an index's vectors that is asked for, by counts that may not agree."""
    return min(count / max(indexed, 1), 1.0)


def choose_lookup(*, documents: int, stored: int, policy: RecallPolicy) -> TextMethod:
    """Choose by a workspace's share of all texts that are stored.

    An index over words finds everybody's: for a workspace with few of many, all of its own are looked at instead, and
    for one that has many of far more yet, the planner weighs that for each query.
    """
    if stored and documents >= policy.least_own_share * stored:  # 0 as above
        return TextMethod.BY_WORDS
    return TextMethod.BY_WORKSPACE if documents <= policy.exact_texts else TextMethod.PLANNED


_POLL_SECONDS = 0.25  # between two looks whether whoever makes indexes is done
_Owner = tuple[int, str]  # a workspace and a model


class IndexBuilderBusy(RuntimeError):
    """Somebody else was making indexes for as long as one would wait."""


def keep_indexes(*, policy: RecallPolicy) -> int:
    """Count all vectors, drop indexes that are worth nothing any more, and build what is missing; return how many.

    Only one at a time does so; whoever comes meanwhile has nothing to do. Cannot be part of a transaction.
    """
    with index_builder_lock() as is_ours:
        return _keep_all_kinds(policy) if is_ours else 0


def keep_indexes_after_others(*, policy: RecallPolicy, wait_seconds: float) -> int:
    """Keep all indexes once nobody else does; raise StillBuilding if that takes longer than one would wait.

    The lock is asked for again and again: a statement that waited for it would itself be waited for, by the one that
    makes an index beside all others.
    """
    gives_up_at = time.monotonic() + wait_seconds
    while True:
        with index_builder_lock() as is_ours:
            if is_ours:
                return _keep_all_kinds(policy)
        if time.monotonic() > gives_up_at:
            raise IndexBuilderBusy(f"Somebody else has been making indexes for {wait_seconds:g} s.")
        time.sleep(_POLL_SECONDS)


def _keep_all_kinds(policy: RecallPolicy) -> int:
    return sum(_keep_kind(kind, policy) for kind in VectorKind if _try_to_count(kind))


def _try_to_count(kind: VectorKind) -> bool:
    try:
        recount_vectors(kind=kind)
    except DatabaseError as error:
        _check_connected(error)
        log.warning("vectors_not_counted", kind=kind, error=str(error))
        return False
    return True


def _check_connected(error: DatabaseError) -> None:
    """Raise the error if the connection went with it: nothing that comes after it can be done."""
    if not connection.is_usable():
        raise error


def _keep_kind(kind: VectorKind, policy: RecallPolicy) -> int:
    """Keep the indexes of one kind: what a build that was cut short left first, what another replaces last."""
    counts = _counts(kind)
    stored = stored_indexes(kind=kind)
    _drop(index for index in stored if not index.is_valid)
    valid = {index.name for index in stored if index.is_valid}
    missing = [index for index in wanted_indexes(kind=kind, counts=counts, policy=policy) if index.name not in valid]
    built = sum(_try_to_build(index, policy) for index in missing)
    names = {index.name for index in useful_indexes(kind=kind, counts=counts, policy=policy)}
    if built < len(missing):  # whatever one that could not be built is to replace stays, if a search would use it
        names |= {index.name for index in _usable_indexes(kind, counts, policy)}
    _drop(index for index in stored if index.is_valid and index.name not in names)
    return built


def _try_to_build(index: VectorIndex, policy: RecallPolicy) -> bool:
    """Build, or log why not: those that come after it are built all the same."""
    try:
        build_index(index=index, memory_megabytes=policy.index_megabytes)
    except DatabaseError as error:
        _check_connected(error)
        log.warning("vector_index_not_built", workspace=index.workspace_id, index=index.name, error=str(error))
        return False
    log.info("vector_index_built", index=index.name)
    return True


def _counts(kind: VectorKind) -> Counter[_Owner]:
    """Read how many active vectors of a model each workspace has."""
    counts: Counter[_Owner] = Counter()
    rows = VectorCount.objects.filter(kind=kind).values_list("workspace_id", "model", "active")
    for workspace_id, model, active in rows:
        counts[workspace_id, model] += active
    return counts


def _drop(indexes: Iterable[StoredIndex]) -> None:
    for index in indexes:
        try:
            drop_index(name=index.name)
        except DatabaseError as error:
            _check_connected(error)
            log.warning("vector_index_not_dropped", workspace=index.workspace_id, index=index.name, error=str(error))
        else:
            log.info("vector_index_dropped", index=index.name, was_complete=index.is_valid)


def wanted_indexes(*, kind: VectorKind, counts: Counter[_Owner], policy: RecallPolicy) -> list[VectorIndex]:
    """Name the indexes that so many vectors are worth: one over all for whoever has most of them, else their own."""
    return _indexes_worth_having(kind, counts, least=policy.exact_vectors, share=policy.own_index_share)


def useful_indexes(*, kind: VectorKind, counts: Counter[_Owner], policy: RecallPolicy) -> list[VectorIndex]:
    """Name the indexes that are not dropped yet: what they are for may have shrunk well below what is worth one."""
    least = _least_kept(policy)
    shared = _indexes_worth_having(kind, counts, least=least, share=policy.drop_index_share * policy.own_index_share)
    own = _indexes_worth_having(kind, counts, least=least, share=policy.own_index_share)
    return [*(index for index in shared if index.workspace_id is None), *own]


def _usable_indexes(kind: VectorKind, counts: Counter[_Owner], policy: RecallPolicy) -> list[VectorIndex]:
    """Name the indexes by which somebody with enough vectors could be answered: their own, and those over all."""
    least = _least_kept(policy)
    return [
        index for share in (0.0, math.inf) for index in _indexes_worth_having(kind, counts, least=least, share=share)
    ]


def _least_kept(policy: RecallPolicy) -> int:
    return int(policy.drop_index_share * policy.exact_vectors)


def _indexes_worth_having(kind: VectorKind, counts: Counter[_Owner], *, least: int, share: float) -> list[VectorIndex]:
    """Name an index over all of a model where an owner has this share of all its vectors, and one for each other.

    Only who has enough counts.
    """
    large = {owner: count for owner, count in counts.items() if count > least}
    totals = Counter[str]()
    for (_, model), count in counts.items():
        totals[model] += count
    sharing = {owner for owner, count in large.items() if count >= share * totals[owner[1]]}
    shared = [VectorIndex(kind=kind, model=model) for model in sorted({model for _, model in sharing})]
    own = [VectorIndex(kind=kind, workspace_id=owner[0], model=owner[1]) for owner in sorted(large.keys() - sharing)]
    return [*shared, *own]
