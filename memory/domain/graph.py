"""What links memories: edges that strengthen and decay, how recall spreads along them (L19), and boxes by topic (L7).

Walking an edge at hop h contributes weight · confidence · 0.7^h of the strength that it began with. What all memories
are given so is then passed along the edges in rounds, as PageRank does (Page et al. 1999, with restarts where the walk
began): 0.85 of a score goes on, the rest comes from where it was given.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy_memories import BoxPolicy, GraphPolicy

_DECIMALS = 4  # so that many small steps make the same number as one large one


class EdgeKind(StrEnum):
    """Why two memories are linked: they name the same, stand side by side, or one is the other's cause."""

    ENTITY = "entity"
    TIME = "time"
    CAUSAL = "causal"


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeState:
    """How sure an edge is, None for one that never said, and when it loses some of that next."""

    confidence: float | None
    decays_at: datetime


def begin_edge(*, kind: EdgeKind, seen_at: datetime, policy: GraphPolicy) -> EdgeState:
    """Return how an edge stands that was seen for the first time."""
    confidence = {
        EdgeKind.ENTITY: policy.entity_confidence,
        EdgeKind.TIME: policy.time_confidence,
        EdgeKind.CAUSAL: policy.causal_confidence,
    }[kind]
    return EdgeState(confidence=confidence, decays_at=_first_decay(seen_at, policy))


def reinforce_edge(*, confidence: float | None, seen_at: datetime, policy: GraphPolicy) -> EdgeState:
    """Return how an edge stands that was seen again: it gains, up to the cap, and its grace begins anew."""
    raised = min(known_confidence(confidence) + policy.reinforcement, policy.cap)
    return EdgeState(confidence=round(raised, _DECIMALS), decays_at=_first_decay(seen_at, policy))


def decay_edge(*, standing: EdgeState, now: datetime, policy: GraphPolicy) -> EdgeState:
    """Return how an edge stands after every window that is over by now; asked as often as one likes, the same."""
    if standing.decays_at > now:
        return standing
    window = timedelta(days=policy.window_days)
    windows = (now - standing.decays_at) // window + 1
    confidence = known_confidence(standing.confidence)
    lowered = min(confidence, max(confidence - windows * policy.decay, policy.floor))
    return EdgeState(confidence=round(lowered, _DECIMALS), decays_at=standing.decays_at + windows * window)


def known_confidence(confidence: float | None) -> float:
    """Return the confidence to reckon with: an edge that has none is as sure as can be."""
    return 1.0 if confidence is None else confidence


def weigh_shared_names(*, said: Sequence[int]) -> float:
    """Return the weight of an edge between memories that share names, each said in so many memories (2 or more).

    A name weighs 1/(1 + ln n): one that everybody says links little. Together they weigh 1 − Π(1 − weight).
    """
    return 1.0 - math.prod(1.0 - 1.0 / (1.0 + math.log(max(count, 2))) for count in said)


def _first_decay(seen_at: datetime, policy: GraphPolicy) -> datetime:
    return seen_at + timedelta(days=policy.grace_days + policy.window_days)


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkedEdge:
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
    paths: Mapping[str, tuple[WalkedEdge, ...]]


NO_SPREAD = Spread(scores={}, paths={})


def contribution_of(*, step: WalkedEdge, policy: GraphPolicy) -> float:
    """Return what an edge contributes to the memory it leads to."""
    return step.strength * policy.hop_decay**step.hop


def spread_from(*, seeds: Mapping[str, float], steps: Sequence[WalkedEdge], policy: GraphPolicy) -> Spread:
    """Spread from seeds, each with its strength in 0..1, along the edges that were walked."""
    steps = sorted(
        (step for step in steps if step.confidence >= policy.cut),
        key=lambda step: (step.hop, -step.strength, step.origin, step.target, step.kind),
    )
    if not steps or not seeds:
        return NO_SPREAD
    given, ways = _walk(seeds, steps, policy)
    ids = sorted(given)
    scores = _pass_on(ids, given, steps, policy)
    top = float(scores.max())
    return Spread(
        scores={key: float(score) / top for key, score in zip(ids, scores, strict=True) if key in ways},
        paths={key: _path_to(key, ways, seeds) for key in ways},
    )


def _walk(
    seeds: Mapping[str, float], steps: Sequence[WalkedEdge], policy: GraphPolicy
) -> tuple[dict[str, float], dict[str, WalkedEdge]]:
    """Return what each memory is given, and the edge that gave the most of it; no edge leads back where the walk was.

    From seed to seed an edge is walked all the same.
    """
    carried, given = dict(seeds), dict(seeds)
    ways: dict[str, WalkedEdge] = {}
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
    ids: Sequence[str], given: Mapping[str, float], steps: Sequence[WalkedEdge], policy: GraphPolicy
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


def _path_to(key: str, ways: Mapping[str, WalkedEdge], seeds: Mapping[str, float]) -> tuple[WalkedEdge, ...]:
    path = [ways[key]]
    while path[0].origin not in seeds:
        path.insert(0, ways[path[0].origin])
    return tuple(path)


class Seal(StrEnum):
    """Why a box takes no more memories."""

    SHIFTED = "shifted"
    IDLE = "idle"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxState:
    """An open box as far as a further memory is concerned; topics are the latest first."""

    topics: tuple[str, ...]
    memories: int
    opened_at: datetime
    last_at: datetime


def overlap_of_topics(*, one: Collection[str], other: Collection[str]) -> float:
    """Return the share of the smaller set that both have; 0 if either is empty."""
    ours, theirs = set(one), set(other)
    fewest = min(len(ours), len(theirs))
    return len(ours & theirs) / fewest if fewest else 0.0


def choose_box(
    *, topics: Sequence[str], at: datetime, boxes: Sequence[BoxState], current: int | None, policy: BoxPolicy
) -> int | None:
    """Return the place of the open box a memory belongs in, None for a new one.

    `current` is the place of the box of its session: what has no topic of its own stays there.
    """
    fresh = [place for place, box in enumerate(boxes) if not is_idle(box=box, at=at, policy=policy)]
    if not topics:
        return current if current in fresh else None
    overlaps = {place: overlap_of_topics(one=topics, other=boxes[place].topics) for place in fresh}
    if current in fresh and not boxes[current].topics:
        overlaps[current] = policy.shift_overlap  # nothing was said there yet that this could be a change from
    best = max(overlaps, key=lambda place: (overlaps[place], place == current, -place), default=None)
    return best if best is not None and overlaps[best] >= policy.shift_overlap else None


def is_idle(*, box: BoxState, at: datetime, policy: BoxPolicy) -> bool:
    """Tell whether a moment is too far from all that is in a box, before or after."""
    idle = timedelta(minutes=policy.idle_minutes)
    return not box.opened_at - idle <= at <= box.last_at + idle


def is_over(*, box: BoxState, at: datetime, policy: BoxPolicy) -> bool:
    """Tell whether nothing was put into a box for too long."""
    return at > box.last_at + timedelta(minutes=policy.idle_minutes)


def add_to_box(*, box: BoxState, topics: Sequence[str], at: datetime, policy: BoxPolicy) -> BoxState:
    """Return a box with one more memory."""
    return BoxState(
        topics=tuple(dict.fromkeys([*topics, *box.topics]))[: policy.topics],
        memories=box.memories + 1,
        opened_at=min(box.opened_at, at),
        last_at=max(box.last_at, at),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """An earlier box that tells of the same matter, by its place, and how far topics overlap."""

    place: int
    overlap: float


def trace_boxes(*, box: BoxState, others: Sequence[BoxState], policy: BoxPolicy) -> list[Traced]:
    """Choose the boxes that a sealed one continues, best first, the later of two that fit as well."""
    found = sorted(
        _iter_traced(box, others, policy), key=lambda one: (one.overlap, others[one.place].last_at), reverse=True
    )
    return found[: policy.traces]


def _iter_traced(box: BoxState, others: Sequence[BoxState], policy: BoxPolicy) -> Iterator[Traced]:
    for place, other in enumerate(others):
        apart = max(box.opened_at - other.last_at, other.opened_at - box.last_at, timedelta())
        overlap = overlap_of_topics(one=box.topics, other=other.topics)
        if apart <= timedelta(days=policy.trace_days) and overlap >= policy.trace_overlap:
            yield Traced(place=place, overlap=overlap)
