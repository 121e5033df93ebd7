"""See the same things in each other's roles: choices, comparisons, directions, subjects and objects."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from memory.domain.matching.analysis import Analysis, Word
from memory.domain.matching.claims import POLICY
from memory.domain.matching.lexicon import Lexicon, load_lexicon
from memory.domain.matching.relations import Relation


def count_antonyms(left: Analysis, right: Analysis) -> int:
    """Return how many words of one text exclude a word of the other."""
    lexicon = load_lexicon(left.language)
    mine, theirs = left.markers - right.markers, right.markers - left.markers
    return sum(1 for word in mine for other in lexicon.exclusive.get(word, ()) if other in theirs)


def name_opposites(left: Analysis, right: Analysis) -> bool:
    """Say whether content words, not only small ones like "before", exclude each other and no converse undoes it."""
    lexicon = load_lexicon(left.language)
    mine, theirs = left.concepts - right.concepts, right.concepts - left.concepts
    opposed = any(lexicon.exclude_each_other(one, other) for one in mine for other in theirs)
    return opposed and not are_converse(left, right)


def are_converse(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts compare the same two things from opposite ends ("faster than", "slower than")."""
    if not left.relations or not right.relations:
        return False
    if any(one.kind == other.kind == "order" for one in left.relations for other in right.relations):
        return not _crosses_any(left.relations, right.relations)
    return _crosses_any(left.relations, right.relations) and bool(count_antonyms(left, right))


def choose_otherwise(left: Analysis, right: Analysis) -> bool:
    """Say whether both choose or compare, and each puts ahead what the other puts behind."""
    chosen = [[relation for relation in one.relations if relation.kind != "order"] for one in (left, right)]
    return _crosses_any(*chosen) and not are_converse(left, right)


def replace_each_other(left: Analysis, right: Analysis) -> bool:
    """Say whether one text rejects or leaves behind what the other plainly states."""
    return _chooses_rejected(left, right) or _chooses_rejected(right, left)


def displace_names(episode: Analysis, belief: Analysis) -> bool:
    """Say whether the episode names something else under the preposition of a name that it has elsewhere."""
    governed = {word.governor for word in episode.words if word.is_name and word.concept not in belief.concepts} - {""}
    known = {(word.concept, word.governor) for word in episode.words}
    return any(
        word.is_name and word.governor in governed and (word.concept, word.governor) not in known
        for word in belief.words
    )


def are_swapped(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts give the same things each other's roles."""
    if _crosses_any(left.relations, right.relations):
        return not are_converse(left, right)
    if {relation.kind for relation in left.relations} & {relation.kind for relation in right.relations}:
        return False
    if replace_each_other(left, right):
        return True
    return _swaps_prepositions(left, right) or _inverts_order(left, right)


def _crosses_any(left: Sequence[Relation], right: Sequence[Relation]) -> bool:
    return any(_crosses(one, other) for one in left for other in right)


def _crosses(one: Relation, other: Relation) -> bool:
    if (one.kind == "order") != (other.kind == "order"):
        return False
    forth, back = (one.ahead - other.ahead) & other.behind, (other.ahead - one.ahead) & one.behind
    if one.kind == other.kind == "order":
        return bool(forth and back)  # either side may carry the common subject
    return bool(forth or back)


def _chooses_rejected(one: Analysis, other: Analysis) -> bool:
    """Say whether one text plainly states what the other rejects in a choice."""
    if other.relations:
        return False
    for relation in one.relations:
        rejected = relation.behind - relation.ahead
        stated = _read_stated(other, about=one.concepts - rejected)
        chosen = relation.ahead - other.concepts
        if relation.kind == "choice" and rejected & stated and chosen:
            return True
    return False


def _governors(words: Sequence[Word]) -> dict[str, str]:
    return {word.concept: word.governor for word in words if word.governor}


def _swaps_prepositions(left: Analysis, right: Analysis) -> bool:
    opposed = load_lexicon(left.language).opposed
    mine, theirs = _governors(left.words), _governors(right.words)
    return any((mine[word], theirs[word]) in opposed for word in mine.keys() & theirs.keys())


class Place(NamedTuple):
    """Where a shared word stands, under which preposition, and whether it is a verb or names a thing."""

    position: int
    governor: str
    is_verb: bool
    is_thing: bool


def _inverts_order(left: Analysis, right: Analysis) -> bool:
    """Say whether two nouns have each other's places around a shared verb, passives turned back."""
    shared = left.concepts & right.concepts
    if len(shared) < POLICY.same_words * max(len(left.concepts), len(right.concepts)):
        return False
    mine, theirs = _read_places(left, shared), _read_places(right, shared)
    is_short = max(len(left.words), len(right.words)) <= POLICY.shortest
    things = sorted(word for word in shared if mine[word].is_thing and theirs[word].is_thing)
    verbs = (word for word in shared if mine[word].is_verb and theirs[word].is_verb)
    anchors = shared if is_short else frozenset(verbs)  # in a short sentence any word may be the verb
    return any(_have_swapped(one, two, mine, theirs, anchors=anchors) for one, two in combinations(things, 2))


def _read_stated(text: Analysis, *, about: frozenset[str]) -> set[str]:
    """Return what a text affirms in clauses that have something of the given concepts."""
    clauses = (clause.concepts for clause in text.clauses if clause.polarity > 0 and clause.concepts & about)
    return {concept for concepts in clauses for concept in concepts}


def _read_places(one: Analysis, shared: frozenset[str]) -> dict[str, Place]:
    """Return the places of the shared words; a passive's agent moves to the front and its subject to the end."""
    lexicon = load_lexicon(one.language)
    agent = lexicon.agent if one.is_passive else None
    places: dict[str, Place] = {}
    for position, word in enumerate(word for word in one.words if word.concept in shared):
        governor = "" if word.governor == agent else word.governor
        turned = position if agent is None else _turn(position, word, agent=agent, size=len(one.words))
        places.setdefault(word.concept, Place(turned, governor, word.is_verb, _is_thing(word, lexicon=lexicon)))
    return places


def _is_thing(word: Word, *, lexicon: Lexicon) -> bool:
    """Say whether a word may have a role: German writes nouns large, and a time has no role."""
    is_noun = word.may_be_name if lexicon.language == "de" else not word.is_verb
    return is_noun and word.concept not in lexicon.times


def _turn(position: int, word: Word, *, agent: str, size: int) -> int:
    if word.governor == agent:
        return position - size
    return position if word.is_verb or word.governor else position + size


def _have_swapped(
    one: str, two: str, mine: dict[str, Place], theirs: dict[str, Place], *, anchors: frozenset[str]
) -> bool:
    """Say whether each noun took over the other's preposition and its side of a verb."""
    if mine[one].governor == theirs[one].governor != "":
        return False
    crossed = mine[one].governor == theirs[two].governor and mine[two].governor == theirs[one].governor
    return crossed and any(_change_sides(one, two, verb, mine, theirs) for verb in anchors - {one, two})


def _change_sides(one: str, two: str, verb: str, mine: dict[str, Place], theirs: dict[str, Place]) -> bool:
    here, there = (
        (places[one].position < places[verb].position, places[two].position < places[verb].position)
        for places in (mine, theirs)
    )
    return here[0] != here[1] and there == (here[1], here[0])
