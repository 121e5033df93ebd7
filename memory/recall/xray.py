"""X-ray: how a recall came to its answer, and what fell short of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.domain.edges import EdgeKind
from memory.recall.ranking import Ranked


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One channel's word on a memory: its place among the candidates of that kind (1 is best), and its number."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A memory on the way to another, and how sure the link from it is; between episodes also its kind and weight."""

    id: str
    confidence: float
    kind: EdgeKind | None = None
    weight: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a memory stands where it stands: every channel, and every number its score is made of."""

    channels: Mapping[str, Channel]
    components: Mapping[str, float | None]
    path: tuple[Step, ...] = ()  # by which it came along, from the memory that was found


# What each channel goes by; a rank among candidates with the same number is shared.
_CHANNELS = {"vector": ("similarity",), "text": ("text", "context"), "graph": ("graph",)}


def explain(
    *, candidates: Sequence[Ranked], paths: Mapping[str, tuple[Step, ...]] | None = None
) -> dict[str, Explanation]:
    """Return by id how each candidate came to its score, among those of its kind."""
    explained: dict[str, Explanation] = {}
    for kind in {item.type for item in candidates}:
        alike = [item for item in candidates if item.type == kind]
        heard = {name: _rank(alike, parts) for name, parts in _CHANNELS.items()}
        for item in alike:
            channels = {name: ranks[item.id] for name, ranks in heard.items() if item.id in ranks}
            explained[item.id] = Explanation(
                channels=channels, components=_without_nan(item.components), path=(paths or {}).get(item.id, ())
            )
    return explained


def _rank(alike: Sequence[Ranked], parts: Sequence[str]) -> dict[str, Channel]:
    """Rank what a channel has found: text that matches nothing, and a vector that is not there, are not found."""
    found = {item.id: sum(item.components.get(part, 0.0) for part in parts) for item in alike}
    known = {key: value for key, value in found.items() if not math.isnan(value) and value != 0.0}
    ordered = sorted(known.values(), reverse=True)
    return {key: Channel(rank=ordered.index(value) + 1, score=value) for key, value in known.items()}


def _without_nan(components: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in components.items()}
