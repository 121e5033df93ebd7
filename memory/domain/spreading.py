"""How recall spreads from the memories that a query found to those linked with them (L19).

Walking an edge at hop h contributes weight · confidence · 0.7^h of the strength that it began with. What all memories
are given so is then passed along the edges in rounds, as PageRank does (Page et al. 1999, with restarts where the walk
began): 0.85 of a score goes on, the rest comes from where it was given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.domain.edges import EdgeKind
from memory.domain.policy_graph import GraphPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """An edge as it was walked: from a memory nearer to where the walk began, at hop 1 for those it began with."""

    origin: str
    target: str
    kind: EdgeKind
    weight: float
    confidence: float
    hop: int

    @property
    def strength(self) -> float:
        """Return how strongly the edge links."""
        return self.weight * self.confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What the graph says of the memories that an edge leads to, where 1 is the best of all, and how it came there.

    A path begins with a seed; its edges are in the order in which they were walked.
    """

    scores: Mapping[str, float]
    paths: Mapping[str, tuple[Walked, ...]]


NOWHERE = Spread(scores={}, paths={})


def contribution_of(*, step: Walked, policy: GraphPolicy) -> float:
    """Return what an edge contributes to the memory it leads to."""
    return step.strength * policy.hop_decay**step.hop


def spread_from(*, seeds: Mapping[str, float], steps: Sequence[Walked], policy: GraphPolicy) -> Spread:
    """Spread from seeds, each with its strength in 0..1, along the edges that were walked."""
    steps = sorted(
        (step for step in steps if step.confidence >= policy.cut),
        key=lambda step: (step.hop, -step.strength, step.origin, step.target, step.kind),
    )
    if not steps or not seeds:
        return NOWHERE
    given, ways = _walk(seeds, steps, policy)
    ids = sorted(given)
    scores = _pass_on(ids, given, steps, policy)
    top = float(scores.max())
    return Spread(
        scores={key: float(score) / top for key, score in zip(ids, scores, strict=True) if key in ways},
        paths={key: _path_to(key, ways, seeds) for key in ways},
    )


def _walk(
    seeds: Mapping[str, float], steps: Sequence[Walked], policy: GraphPolicy
) -> tuple[dict[str, float], dict[str, Walked]]:
    """Return what each memory is given, and the edge that gave the most of it; no edge leads back where the walk was.

    From seed to seed an edge is walked all the same.
    """
    carried, given = dict(seeds), dict(seeds)
    ways: dict[str, Walked] = {}
    most: dict[str, float] = {}
    for step in steps:
        way = ways.get(step.target)
        is_back = (step.hop > 1 and step.target in seeds) or (way is not None and way.hop < step.hop)
        if is_back or step.origin not in carried:
            continue
        gain = carried[step.origin] * contribution_of(step=step, policy=policy)
        given[step.target] = given.get(step.target, 0.0) + gain
        if way is None or gain > most[step.target]:
            ways[step.target], most[step.target] = step, gain
            if step.target not in seeds:
                carried[step.target] = carried[step.origin]
    return given, ways


def _pass_on(
    ids: Sequence[str], given: Mapping[str, float], steps: Sequence[Walked], policy: GraphPolicy
) -> NDArray[np.float64]:
    place = {key: number for number, key in enumerate(ids)}
    links = np.zeros((len(ids), len(ids)))
    for step in steps:
        if step.origin in place and step.target in place:
            one, other = place[step.origin], place[step.target]
            links[one, other] = links[other, one] = max(links[one, other], step.strength)
    sums = links.sum(axis=1)
    passed = np.divide(links, sums[:, None], out=np.zeros_like(links), where=sums[:, None] > 0)
    start = np.array([given[key] for key in ids])
    start /= start.sum()
    scores = start
    for _ in range(policy.rounds):
        kept = scores[sums == 0].sum()  # what leads nowhere begins again where the walk began
        scores = (1 - policy.damping) * start + policy.damping * (passed.T @ scores + kept * start)
    return np.asarray(scores, dtype=np.float64)


def _path_to(key: str, ways: Mapping[str, Walked], seeds: Mapping[str, float]) -> tuple[Walked, ...]:
    path = [ways[key]]
    while path[0].origin not in seeds:
        path.insert(0, ways[path[0].origin])
    return tuple(path)
