"""Which ways memories are searched: that goes by how many there are (B17)."""

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from memory.domain.policy import RecallPolicy
from memory.models.fields import VectorKind
from memory.search.scope import ScopeSize, SearchScope, VectorMethod, count_user_vectors, measure_scope
from memory.search.statements import TextMethod


class Ways(NamedTuple):
    """How a kind of memory is searched by vector, and by words; `is_small` where there are few, whosever they are.

    `effort` is how many vectors an index keeps in view, `searched` about how many are in question.
    """

    arm: VectorMethod
    lookup: TextMethod
    is_small: bool = False
    effort: int | None = None
    searched: int = 0


class Arms:
    """The ways for each kind of memory in a reach, by sizes that are at most `_SECONDS` older than the last count."""

    def __init__(self, *, reach: SearchScope, policy: RecallPolicy) -> None:
        self._reach, self._policy = reach, policy
        self._sizes: Mapping[VectorKind, ScopeSize] = {}

    def __call__(self, *, kind: VectorKind, model: str, documents: int) -> Ways:
        """Choose by what was counted last; a named user's memories are counted on the spot, up to a bound.

        `documents` are the texts of the workspace.
        """
        if not self._sizes:
            self._sizes = sizes_of(model=model, reach=self._reach)
        size, most = self._sizes[kind], self._policy.exact_vectors
        if self._reach.user and size.count > most and kind.is_scoped:
            count = count_user_vectors(kind=kind, model=model, reach=self._reach, most=most)
            size = replace(size, count=count) if count <= most else size
        arm = choose_arm(count=size.count, index=size.index, indexed=size.indexed, policy=self._policy)
        return Ways(
            arm=arm,
            lookup=choose_lookup(
                documents=documents, stored=self._sizes[VectorKind.EPISODE].stored, policy=self._policy
            ),
            # 0 are stored in a table that was never analysed
            is_small=not arm.is_index and 0 < size.stored <= self._policy.exact_vectors,
            effort=choose_effort(count=size.count, indexed=size.indexed, policy=self._policy) if arm.is_index else None,
            searched=size.count,
        )


def sizes_of(*, model: str, reach: SearchScope) -> Mapping[VectorKind, ScopeSize]:
    """Return the sizes of a reach; they are counted now and then, and not asked for again by every recall.

    What is found is right by any way: an index that is gone by now makes a search slower, one that is new comes late.
    """
    spell = int(time.monotonic() // _SECONDS)
    return _sizes_in(spell, model, reach.workspace_id, reach.projects, reach.allowed)


@lru_cache(maxsize=1_024)
def _sizes_in(
    spell: int, model: str, workspace_id: int, projects: tuple[int, ...] | None, allowed: tuple[int, ...] | None
) -> Mapping[VectorKind, ScopeSize]:
    reach = SearchScope(workspace_id=workspace_id, projects=projects, allowed=allowed, user="", now=datetime.now(UTC))
    return measure_scope(model=model, reach=reach)


def forget_sizes() -> None:
    """Have all sizes asked for again."""
    _sizes_in.cache_clear()


_SECONDS = 5.0


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
