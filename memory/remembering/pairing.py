"""Pairs of active beliefs of one project, user and language that are alike to some degree (R7, R11)."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.ledger import beliefs
from memory.ledger.beliefs import BeliefSource, cosine_matrix, read_beliefs_with_vectors
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, Workspace
from memory.search.vectors import Vectors

_CELLS = 2**23  # cosines that are held at once: 32 MB, whatever there is to compare

Ids = tuple[str, str]
_Hit = tuple[float, int, int]  # cosine, and the places of the two


class _Paired(Protocol):
    @property
    def ids(self) -> Ids: ...


Twosome = TypeVar("Twosome", bound=_Paired)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """How many pairs are alike, and the most similar of them."""

    count: int
    pairs: Sequence[Pair]


def most_alike(*, workspace: Workspace, band: Band, most: int, besides: Collection[Ids] = ()) -> Alike:
    """Return so many pairs within a band of the reference scale, the most similar, known ones left out."""
    model = embedder_of(workspace)
    raw = _raw(band, model.profile)
    active = Belief.objects.for_workspace(workspace.pk).active()
    beliefs, vectors = read_beliefs_with_vectors(beliefs=active, model=model.name)
    known = set(besides)
    count, found = 0, []
    for places in _scopes(beliefs):
        ids = [beliefs[place].id for place in places]
        for hits, best in _best(vectors[places], raw, most, _known_places(ids, known)):
            count += hits
            found += [(cosine, places[left], places[right]) for cosine, left, right in best]
            if len(found) > 2 * most:
                found = _foremost(found, most)
    pairs = [
        Pair(one=beliefs[left], other=beliefs[right], similarity=float(model.profile.reference(cosine)))
        for cosine, left, right in _foremost(found, most)
    ]
    return Alike(count=count, pairs=pairs)


def _foremost(found: list[_Hit], most: int) -> list[_Hit]:
    return sorted(found, key=lambda each: (-each[0], each[1:]))[:most]


def passes_guard(*, pair: Pair) -> bool:
    """Tell whether no rule tells two beliefs apart."""
    return beliefs.passes_guard(left=pair.one.claim, right=pair.other.claim)


def still_active(pairs: Iterable[Twosome]) -> list[Twosome]:
    """Keep the pairs of which neither was erased since they were found, or is believed no more."""
    kept = list(pairs)
    named = {key for pair in kept for key in pair.ids}
    active = set(Belief.objects.filter(pk__in=named).active().values_list("pk", flat=True))
    return [pair for pair in kept if active.issuperset(pair.ids)]


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


def _best(vectors: Vectors, band: Band, most: int, known: NDArray[np.intp]) -> Iterator[tuple[int, list[_Hit]]]:
    """Yield of each block of rows how many pairs are alike, and the most similar: cosine, left < right."""
    rows = max(_CELLS // max(len(vectors), 1), 1)
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
