"""What lies beside the best beliefs comes along with them (R5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

from memory.domain.policy import Policy
from memory.recall.ranking import MemoryType, Ranked, best
from memory.recall.xray import Step
from memory.search.hybrid import BeliefCandidate
from memory.search.related import LinkedBelief, find_linked_beliefs
from memory.search.scope import SearchScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """Memories with those that came along, the candidates that nothing else had found, and the way to each."""

    ranked: Sequence[Ranked]
    candidates: Sequence[BeliefCandidate]
    paths: Mapping[str, tuple[Step, ...]]


def bring_neighbours(*, ranked: Sequence[Ranked], reach: SearchScope, policy: Policy) -> Brought:
    """Let neighbours of the best few results follow at a share of their scores; no memory loses by it."""
    top = {item.id: item for item in best(ranked=ranked, limit=policy.associative.neighbours_of)}
    parents = [key for key, item in top.items() if item.type == MemoryType.BELIEF]
    if not parents:
        return Brought(ranked=ranked, candidates=(), paths={})
    linked = find_linked_beliefs(reach=reach, beliefs=parents, min_confidence=policy.recall.min_confidence)
    known = {item.id: item for item in ranked}
    found: dict[str, LinkedBelief] = {}
    for one in linked:
        if _score(one, top, policy) > max(_score(found.get(one.belief.id), top, policy), _own(known, one.belief.id)):
            found[one.belief.id] = one
    raised = [_raised(one, top, known.get(key), policy) for key, one in found.items()]
    return Brought(
        ranked=[*(item for item in ranked if item.id not in found), *raised],
        candidates=[one.belief for key, one in found.items() if key not in known],
        paths={key: (Step(id=one.via, confidence=one.similarity),) for key, one in found.items()},
    )


def _score(one: LinkedBelief | None, top: Mapping[str, Ranked], policy: Policy) -> float:
    return top[one.via].score * policy.associative.neighbour_factor if one else -1.0


def _own(known: Mapping[str, Ranked], key: str) -> float:
    return known[key].score if key in known else -1.0


def _raised(one: LinkedBelief, top: Mapping[str, Ranked], own: Ranked | None, policy: Policy) -> Ranked:
    """Score a neighbour by the result that it came along with; its own numbers stay to be seen."""
    score = _score(one, top, policy)
    numbers = {**(own.components if own else {"similarity": nan}), "by_neighbour": score}
    return Ranked(MemoryType.BELIEF, one.belief.id, score, {name: [value] for name, value in numbers.items()}, 0)
