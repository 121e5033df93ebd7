"""Pairs of active beliefs of one project, user and language of which rules say that both cannot hold (R11)."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import structlog

from memory.domain.breaking import OWN_ERRORS
from memory.domain.user_names import person_of
from memory.language.contradictions import find_contradiction
from memory.language.sides import Side, language_of, read_side
from memory.ledger.beliefs import BeliefSource, read_beliefs_with_vectors
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, Workspace
from memory.remembering.pairing import Ids, Pair

log = structlog.get_logger(__name__)

_MOST_SHARING = 100  # beliefs that tell of one thing; what more tell of says nothing of any two


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradicting:
    """Two beliefs, the lesser id first, and by which rule both cannot hold."""

    pair: Pair
    rule: str

    @property
    def ids(self) -> Ids:
        """Name the two."""
        return self.pair.ids


def find_contradicting(*, workspace: Workspace, besides: Collection[Ids] = ()) -> list[Contradicting]:
    """Return the pairs of which a rule says that both cannot hold, the most similar first, known ones left out."""
    model = embedder_of(workspace)
    beliefs, vectors = read_beliefs_with_vectors(
        beliefs=Belief.objects.for_workspace(workspace.pk).active(), model=model.name
    )
    known, found = set(besides), []
    for language, places in _scopes(beliefs):
        sides = [_side_of(beliefs[place], language) for place in places]
        for one, other in _candidates(sides):
            left, right = places[one], places[other]
            pair = (beliefs[left], beliefs[right])
            if (pair[0].id, pair[1].id) in known or not (rule := _rule_between(sides[one], sides[other])):
                continue
            similarity = float(model.profile.reference(float(vectors[left] @ vectors[right])))
            found.append(Contradicting(pair=Pair(one=pair[0], other=pair[1], similarity=similarity), rule=rule))
    return sorted(found, key=lambda each: (-each.pair.similarity, each.ids))


def _scopes(beliefs: Sequence[BeliefSource]) -> Iterator[tuple[str, list[int]]]:
    """Yield the places of beliefs of one project, user and language; nobody can tell that of every short sentence."""
    told = Counter(belief.language for belief in beliefs if belief.language)
    usual = max(told, key=lambda language: told[language], default="")
    scopes: dict[tuple[int | None, str, str], list[int]] = defaultdict(list)
    for place, belief in enumerate(beliefs):
        language = language_of(belief.statement, known=belief.language, usual=usual)
        scopes[belief.project_id, belief.user, language].append(place)
    yield from ((language, places) for (_, _, language), places in scopes.items())


def _side_of(belief: BeliefSource, language: str) -> Side | None:
    person = person_of(user=belief.user, language=language)
    try:
        return read_side(belief.statement, person=person, subject=belief.subject, language=language)
    except OWN_ERRORS:
        log.exception("contradiction_unread")
        return None


def _rule_between(one: Side | None, other: Side | None) -> str:
    if one is None or other is None:
        return ""
    try:
        return find_contradiction(one=one, other=other)
    except OWN_ERRORS:
        log.exception("contradiction_unread")
        return ""


def _candidates(sides: Sequence[Side | None]) -> Iterator[tuple[int, int]]:
    """Yield the places of those that tell something of one thing, or of which one may end what the other says."""
    telling: dict[str, list[int]] = defaultdict(list)
    naming: dict[str, list[int]] = defaultdict(list)
    ending: dict[str, list[int]] = defaultdict(list)
    for place, side in enumerate(sides):
        for thing in side.things if side else ():
            telling[thing].append(place)
        for stem in side.reading.stems if side else ():
            naming[stem].append(place)
        for stem in side.ended_things if side else ():
            ending[stem].append(place)
    found: set[tuple[int, int]] = set()
    for places in telling.values():
        if len(places) <= _MOST_SHARING:
            found.update((one, other) for at, one in enumerate(places) for other in places[at + 1 :])
    for stem, enders in ending.items():
        found.update((min(one, other), max(one, other)) for one in enders for other in naming[stem] if one != other)
    yield from sorted(found)
