"""The polarity guard: `check_polarity` sees what a cosine cannot when two texts look alike (B8.4, Guard).

One check for each way in which cosines are blind; every check is symmetric. Below, what texts have in common by their
words (`share_something`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, pairwise
from typing import NamedTuple

from memory.language.analysis import (
    Analysis,
    OrderedPair,
    PolarClause,
    SpokenText,
    Word,
    analyse,
    analyse_as,
    is_content,
)
from memory.language.lexicon import STEMMERS, Lexicon, count_negators, load_lexicon
from memory.language.quantities import have_other_numbers
from memory.language.words import could_be_either


class GuardReason(StrEnum):
    """Why two texts may not be taken for the same claim without a model's word."""

    LANGUAGE = "language"
    UNLIKE = "unlike"
    SPEAKER = "speaker"
    QUESTION = "question"
    HEDGE = "hedge"
    LIMIT = "limit"
    NEGATION = "negation"
    NUMBER = "number"
    SWAPPED = "swapped"
    ANTONYM = "antonym"
    NAME = "name"
    ALTERNATIVE = "alternative"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingPolicy:
    """How much two texts must share before word-by-word checks mean anything."""

    least_shared: float = 0.4  # of the shorter text's content words
    same_words: float = 0.8  # of the longer text's content words: their order alone may tell the texts apart
    shortest: int = 4  # content words up to which any word between two others may be the verb
    framed: float = 0.5  # of the shorter text's content words, in one order: the texts have one frame


MATCHING_POLICY = MatchingPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """Whether the guard passes, and why not."""

    passed: bool
    reason: GuardReason | None


PASSED = GuardResult(passed=True, reason=None)


def analyse_pair(*, left: SpokenText, right: SpokenText) -> tuple[Analysis, Analysis] | None:
    """Analyse two claims in their one language; None where there is none. An unsure one follows the other."""
    first, second = analyse(left), analyse(right)
    if not first.language and could_be_either(left.text):
        first = analyse_as(left, language=second.language)
    elif not second.language and could_be_either(right.text):
        second = analyse_as(right, language=first.language)
    if first.language != second.language or first.language not in STEMMERS:
        return None
    return first, second


def check_polarity(*, left: SpokenText, right: SpokenText) -> GuardResult:
    """Pass two texts of one language in which no check finds a difference, else name the first that does; symmetric."""
    pair = analyse_pair(left=left, right=right)
    if pair is None:
        return GuardResult(passed=False, reason=GuardReason.LANGUAGE)
    return compare(*pair)


def compare(left: Analysis, right: Analysis) -> GuardResult:
    """Run the checks over two analysed claims of one language."""
    for reason, fails in CHECKS:
        if fails(left, right):
            return GuardResult(passed=False, reason=reason)
    return PASSED


_WORD = re.compile(r"\w+")
_STEM_LETTERS = 5  # letters
_OWNERS = frozenset({"", "owner", "the owner", "user", "the user", "i", "me"})  # subjects that are whoever speaks


def share_something(*, episode: SpokenText, belief: SpokenText) -> bool:
    """Tell whether two texts share a content word by its stem, a number or its unit, a name, or the belief's subject.

    The belief's speaker is its subject, as in the polarity guard. Where words cannot be compared, they may: in doubt
    somebody is to be asked.
    """
    if _is_of_subject(episode, belief):
        return True
    pair = analyse_pair(left=episode, right=belief)
    if pair is None:
        return True
    said, believed = pair
    if said.has_first_person and not episode.speaker:
        return True  # nobody knows who speaks: it may be the subject
    return not (
        _short_stems(said).isdisjoint(_short_stems(believed)) and _measures(said).isdisjoint(_measures(believed))
    )


def _is_of_subject(episode: SpokenText, belief: SpokenText) -> bool:
    """Tell whether the subject speaks, or is named in full or in part."""
    subject = belief.speaker.casefold().strip()
    if subject in _OWNERS:
        return True
    names = set(_WORD.findall(subject))
    told = _WORD.findall(f"{episode.speaker} {episode.text}".casefold())
    return not names.isdisjoint({form for word in told for form in (word, word.removesuffix("s"))})


def _short_stems(text: Analysis) -> set[str]:
    """Return the content words, cut short, so that a potter shares one with a pottery."""
    return {concept[:_STEM_LETTERS] for concept in text.concepts}


def _measures(text: Analysis) -> set[object]:
    """Return the numbers and what they measure: five hours and six hours have that in common."""
    return {part for amount in text.quantities for part in (amount.value, amount.role) if part != ""}


Check = Callable[[Analysis, Analysis], bool]


def have_other_speakers(left: Analysis, right: Analysis) -> bool:
    """Say whether both speak in the first person and for different speakers."""
    return left.has_first_person and right.has_first_person and left.speaker != right.speaker


def are_unlike(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts have too few words in common for the other checks to see anything."""
    shorter = min(len(left.concepts), len(right.concepts))
    return len(left.concepts & right.concepts) < MATCHING_POLICY.least_shared * shorter


def differ_in_question(left: Analysis, right: Analysis) -> bool:
    """Say whether one asks what the other states."""
    return left.is_question != right.is_question


def differ_in_hedge(left: Analysis, right: Analysis) -> bool:
    """Say whether one only considers what the other states."""
    return left.is_hedged != right.is_hedged


def differ_in_limit(left: Analysis, right: Analysis) -> bool:
    """Say whether one has an exception or condition that the other lacks."""
    return left.is_limited != right.is_limited


def differ_in_numbers(left: Analysis, right: Analysis) -> bool:
    """Say whether one role holds different amounts or units."""
    return have_other_numbers(left.quantities, right.quantities)


def are_antonyms(left: Analysis, right: Analysis) -> bool:
    """Say whether one text holds a word that excludes a word of the other, and no converse undoes it."""
    return bool(count_antonyms(left, right)) and not are_converse(left, right)


def have_other_names(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts put different names, or different members of one kind, into one role."""
    return _differ_in_kind(left, right) or _differ_in_name(left, right)


def _differ_in_kind(left: Analysis, right: Analysis) -> bool:
    mine, theirs = left.kinds - right.kinds, right.kinds - left.kinds
    return bool({kind for kind, _ in mine} & {kind for kind, _ in theirs})


def _differ_in_name(left: Analysis, right: Analysis) -> bool:
    mine = {word.governor for word in left.words if word.is_name and word.concept not in right.concepts}
    theirs = {word.governor for word in right.words if word.is_name and word.concept not in left.concepts}
    return bool(mine & theirs)


def have_alternatives(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts share a frame in which one place is filled differently."""
    left, right = sorted((left, right), key=lambda one: [word.concept for word in one.words])  # ties must fall alike
    mine = [word.concept for word in left.words]
    theirs = [word.concept for word in right.words]
    matches = align(mine, theirs)
    if len(matches) < MATCHING_POLICY.framed * min(len(mine), len(theirs)):
        return False
    edges = [(-1, -1), *matches, (len(mine), len(theirs))]
    is_same_frame = len(matches) + 1 == len(mine) == len(theirs)
    for (a, b), (c, d) in pairwise(edges):
        ours = _residue(left.words[a + 1 : c], other=right)
        others = _residue(right.words[b + 1 : d], other=left)
        if _fill_differently(ours, others, is_same_frame=is_same_frame):
            return True
    return False


def _fill_differently(ours: Sequence[Word], others: Sequence[Word], *, is_same_frame: bool) -> bool:
    """Say whether two stretches are the one word that differs, or hold a noun each; verbs may be a paraphrase."""
    if not ours or not others:
        return False
    nouns = [[word for word in words if not word.is_verb] for words in (ours, others)]
    return is_same_frame or all(nouns)


def _residue(words: Sequence[Word], *, other: Analysis) -> list[Word]:
    return [word for word in words if word.concept not in other.concepts and not (word.is_light or word.denies)]


def differ_in_negation(left: Analysis, right: Analysis) -> bool:
    """Say whether a clause that the texts share is denied in one of them only."""
    if min(len(left.clauses), len(right.clauses)) <= 1 and _agree_as_wholes(left, right):
        return False
    return _has_unmatched_clause(left, right) or _has_unmatched_clause(right, left)


def are_swapped(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts give the same things each other's roles."""
    if _crosses_any(left.relations, right.relations):
        return not are_converse(left, right)
    if {relation.kind for relation in left.relations} & {relation.kind for relation in right.relations}:
        return False
    if replace_each_other(left, right):
        return True
    return _swaps_prepositions(left, right) or _inverts_order(left, right)


CHECKS: tuple[tuple[GuardReason, Check], ...] = (
    (GuardReason.SPEAKER, have_other_speakers),
    (GuardReason.UNLIKE, are_unlike),
    (GuardReason.QUESTION, differ_in_question),
    (GuardReason.HEDGE, differ_in_hedge),
    (GuardReason.LIMIT, differ_in_limit),
    (GuardReason.NEGATION, differ_in_negation),
    (GuardReason.NUMBER, differ_in_numbers),
    (GuardReason.SWAPPED, are_swapped),
    (GuardReason.ANTONYM, are_antonyms),
    (GuardReason.NAME, have_other_names),
    (GuardReason.ALTERNATIVE, have_alternatives),
)


def _polarity(clause: PolarClause, *, shared: frozenset[str]) -> int:
    return -clause.polarity if clause.local & shared else clause.polarity


def _agree_as_wholes(left: Analysis, right: Analysis) -> bool:
    """Say whether one clause there says in one denial what several here do."""
    denials = max(sum(clause.polarity < 0 for clause in one.clauses) for one in (left, right))
    return denials <= 1 and _product(left, right) == _product(right, left)


def _product(one: Analysis, other: Analysis) -> int:
    product, shared = 1, one.concepts & other.concepts
    for number, clause in enumerate(one.clauses):
        if number == 0 or clause.concepts & shared:
            product *= _polarity(clause, shared=shared)
    return product


def _has_unmatched_clause(one: Analysis, other: Analysis) -> bool:
    shared = one.concepts & other.concepts
    return any(not _finds_match(clause, other=other, shared=shared) for clause in one.clauses)


def _finds_match(clause: PolarClause, *, other: Analysis, shared: frozenset[str]) -> bool:
    overlaps = [(len(clause.concepts & candidate.concepts), candidate) for candidate in other.clauses]
    best = max((overlap for overlap, _ in overlaps), default=0)
    if not best:
        return True
    polarity = _polarity(clause, shared=shared)
    return any(overlap == best and _polarity(match, shared=shared) == polarity for overlap, match in overlaps)


def take_opposite_stands(left: Analysis, right: Analysis) -> bool:
    """Say whether texts of the same words, without a negation, like and hate (or allow and forbid) the same."""
    if left.concepts != right.concepts or count_negators(left.tokens) or count_negators(right.tokens):
        return False
    here, there = (
        {(token.entry.concept, token.entry.sign) for token in one.tokens if is_content(token)} for one in (left, right)
    )
    return here != there


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


def _crosses_any(left: Sequence[OrderedPair], right: Sequence[OrderedPair]) -> bool:
    return any(_crosses(one, other) for one in left for other in right)


def _crosses(one: OrderedPair, other: OrderedPair) -> bool:
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
    if len(shared) < MATCHING_POLICY.same_words * max(len(left.concepts), len(right.concepts)):
        return False
    mine, theirs = _read_places(left, shared), _read_places(right, shared)
    is_short = max(len(left.words), len(right.words)) <= MATCHING_POLICY.shortest
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


def align(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Return the index pairs of a longest common subsequence."""
    rows, columns = len(left), len(right)
    table = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        row, below, word = table[i], table[i + 1], left[i]
        for j in range(columns - 1, -1, -1):
            row[j] = below[j + 1] + 1 if word == right[j] else max(below[j], row[j + 1])
    return _trace(left, right, table)


def _trace(left: Sequence[str], right: Sequence[str], table: list[list[int]]) -> list[tuple[int, int]]:
    i = j = 0
    pairs = []
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
