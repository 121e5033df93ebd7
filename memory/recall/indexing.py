"""Approximate indexes are kept beside recall, not by it: built where there is enough to search, dropped where not."""

import math
import time
from collections import Counter
from collections.abc import Iterable

import structlog
from django.db import DatabaseError, connection

from memory.domain.policy import RecallPolicy
from memory.models import VectorCount
from memory.models.fields import VectorKind
from memory.search.scope import recount_vectors
from memory.search.vectors import StoredIndex, VectorIndex, build_index, drop_index, index_builder_lock, stored_indexes

log = structlog.get_logger(__name__)

_POLL_SECONDS = 0.25  # between two looks whether whoever makes indexes is done

_Owner = tuple[int, str]  # a workspace and a model


class StillBuilding(RuntimeError):
    """Somebody else was making indexes for as long as one would wait."""


def keep_indexes(*, policy: RecallPolicy) -> int:
    """Count all vectors, drop indexes that are worth nothing any more, and build what is missing; return how many.

    Only one at a time does so; whoever comes meanwhile has nothing to do. Cannot be part of a transaction.
    """
    with index_builder_lock() as is_ours:
        return _keep_all(policy) if is_ours else 0


def keep_indexes_after_others(*, policy: RecallPolicy, wait_seconds: float) -> int:
    """Keep all indexes once nobody else does; raise StillBuilding if that takes longer than one would wait.

    The lock is asked for again and again: a statement that waited for it would itself be waited for, by the one that
    makes an index beside all others.
    """
    gives_up_at = time.monotonic() + wait_seconds
    while True:
        with index_builder_lock() as is_ours:
            if is_ours:
                return _keep_all(policy)
        if time.monotonic() > gives_up_at:
            raise StillBuilding(f"Somebody else has been making indexes for {wait_seconds:g} s.")
        time.sleep(_POLL_SECONDS)


def _keep_all(policy: RecallPolicy) -> int:
    return sum(_keep(kind, policy) for kind in VectorKind if _try_to_count(kind))


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


def _keep(kind: VectorKind, policy: RecallPolicy) -> int:
    """Keep the indexes of one kind: what a build that was cut short left first, what another replaces last."""
    counts = _counts(kind)
    stored = stored_indexes(kind=kind)
    _drop(index for index in stored if not index.is_valid)
    valid = {index.name for index in stored if index.is_valid}
    missing = [index for index in wanted_indexes(kind=kind, counts=counts, policy=policy) if index.name not in valid]
    built = sum(_try_to_build(index, policy) for index in missing)
    names = {index.name for index in useful_indexes(kind=kind, counts=counts, policy=policy)}
    if built < len(missing):  # whatever one that could not be built is to replace stays, if a search would use it
        names |= {index.name for index in _usable(kind, counts, policy)}
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
    return _worth(kind, counts, least=policy.exact_vectors, share=policy.own_index_share)


def useful_indexes(*, kind: VectorKind, counts: Counter[_Owner], policy: RecallPolicy) -> list[VectorIndex]:
    """Name the indexes that are not dropped yet: what they are for may have shrunk well below what is worth one."""
    least = _least_kept(policy)
    shared = _worth(kind, counts, least=least, share=policy.drop_index_share * policy.own_index_share)
    own = _worth(kind, counts, least=least, share=policy.own_index_share)
    return [*(index for index in shared if index.workspace_id is None), *own]


def _usable(kind: VectorKind, counts: Counter[_Owner], policy: RecallPolicy) -> list[VectorIndex]:
    """Name the indexes by which somebody with enough vectors could be answered: their own, and those over all."""
    least = _least_kept(policy)
    return [index for share in (0.0, math.inf) for index in _worth(kind, counts, least=least, share=share)]


def _least_kept(policy: RecallPolicy) -> int:
    return int(policy.drop_index_share * policy.exact_vectors)


def _worth(kind: VectorKind, counts: Counter[_Owner], *, least: int, share: float) -> list[VectorIndex]:
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
