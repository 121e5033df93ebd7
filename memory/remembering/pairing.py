"""Pairs of active beliefs of one project, user and language that are alike to some degree (R7, R11)."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.consolidation.sources import BeliefSource, read_beliefs, similarities
from memory.domain.calibration import Profile
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, Workspace
from memory.models.vectors import Vectors

_BLOCK = 1024

Ids = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two beliefs, the lesser id first, and their similarity on the reference scale."""

    one: BeliefSource
    other: BeliefSource
    similarity: float

    @property
    def ids(self) -> Ids:
        """Name the two."""
        return self.one.id, self.other.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A stretch of similarities, the lower end in it and the upper end not."""

    low: float
    high: float = math.inf


def most_alike(
    *, workspace: Workspace, band: Band, most: int | None = None, besides: Collection[Ids] = ()
) -> list[Pair]:
    """Return the most similar pairs within a band of the reference scale, or so many of them, known ones left out."""
    model = embedder_of(workspace)
    raw = _raw(band, model.profile)
    active = Belief.objects.for_workspace(workspace.pk).active()
    beliefs, vectors = read_beliefs(beliefs=active, model=model.name)
    known = set(besides)
    found: list[tuple[float, int, int]] = []
    for places in _scopes(beliefs):
        ids = [beliefs[place].id for place in places]
        for cosine, left, right in _best(vectors[places], raw, most, _known_places(ids, known)):
            found.append((cosine, places[left], places[right]))
    found.sort(key=lambda each: (-each[0], each[1:]))
    return [
        Pair(one=beliefs[left], other=beliefs[right], similarity=float(model.profile.reference(cosine)))
        for cosine, left, right in found[:most]
    ]


def _raw(band: Band, profile: Profile) -> Band:
    """Return a band of raw cosines; one without an upper end stays so."""
    high = band.high if math.isinf(band.high) else float(profile.raw(band.high))
    return Band(low=float(profile.raw(band.low)), high=high)


def _scopes(beliefs: list[BeliefSource]) -> Iterator[list[int]]:
    """Yield the places of beliefs of one project, user and language; they come by id, and stay so."""
    scopes: dict[object, list[int]] = defaultdict(list)
    for place, belief in enumerate(beliefs):
        scopes[belief.project_id, belief.user, belief.language].append(place)
    yield from scopes.values()


def _known_places(ids: list[str], known: set[Ids]) -> NDArray[np.intp]:
    """Return where known pairs stand, (n, 2)."""
    place = {key: number for number, key in enumerate(ids)}
    pairs = [(place[one], place[other]) for one, other in known if one in place and other in place]
    return np.array(pairs, dtype=np.intp).reshape(-1, 2)


def _best(vectors: Vectors, band: Band, most: int | None, known: NDArray[np.intp]) -> Iterator[tuple[float, int, int]]:
    """Yield the most similar pairs of each block of rows: cosine, left, right, where left < right."""
    for start in range(0, len(vectors), _BLOCK):
        cosines = similarities(vectors[start : start + _BLOCK], vectors[start:])
        cosines[np.tril_indices(len(cosines), m=cosines.shape[1])] = -np.inf
        here = known[(known[:, 0] >= start) & (known[:, 0] < start + _BLOCK)] - start
        cosines[here[:, 0], here[:, 1]] = -np.inf
        chosen = np.flatnonzero((cosines >= band.low) & (cosines < band.high))
        values = cosines.ravel()[chosen]
        for each in np.argsort(-values, kind="stable")[:most]:
            left, right = divmod(int(chosen[each]), cosines.shape[1])
            yield float(values[each]), start + left, start + right
