"""Which box a memory belongs in, when a box is sealed, and which boxes tell of one matter (L7)."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.domain.policy_graph import BoxPolicy
from memory.domain.sentences import list_words

_SHORTEST = 3
_STOPS = ENGLISH_STOPS | GERMAN_STOPS


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


def topics_of(*, names: Sequence[str], text: str, policy: BoxPolicy) -> tuple[str, ...]:
    """Return what a memory is about: whom and what it names, or else its longest words."""
    if names:
        return tuple(dict.fromkeys(names))
    words = dict.fromkeys(word.casefold() for word in list_words(text))
    telling = [word for word in words if len(word) >= _SHORTEST and word not in _STOPS]
    return tuple(sorted(telling, key=lambda word: (-len(word), word))[: policy.keywords])


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
