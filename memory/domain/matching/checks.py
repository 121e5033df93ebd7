"""Compare two analysed claims, one check a way in which cosines are blind; every check is symmetric."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from memory.domain.matching.alignment import align
from memory.domain.matching.analysis import Analysis, Clause, Relation, Word
from memory.domain.matching.claims import POLICY, GuardReason
from memory.domain.matching.lexicon import load_lexicon
from memory.domain.matching.quantities import have_other_numbers

Check = Callable[[Analysis, Analysis], bool]


def have_other_speakers(left: Analysis, right: Analysis) -> bool:
    """Say whether both speak in the first person and for different speakers."""
    return left.has_first_person and right.has_first_person and left.speaker != right.speaker


def are_unlike(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts have too few words in common for the other checks to see anything."""
    shorter = min(len(left.concepts), len(right.concepts))
    return len(left.concepts & right.concepts) < POLICY.least_shared * shorter


def differ_in_question(left: Analysis, right: Analysis) -> bool:
    """Say whether one asks what the other states."""
    return left.is_question != right.is_question


def differ_in_hedge(left: Analysis, right: Analysis) -> bool:
    """Say whether one only considers what the other states."""
    return left.is_hedged != right.is_hedged


def differ_in_limit(left: Analysis, right: Analysis) -> bool:
    """Say whether one has an exception or condition that the other lacks."""
    return left.is_limited != right.is_limited


def differ_in_negation(left: Analysis, right: Analysis) -> bool:
    """Say whether a clause that the texts share is denied in one of them only."""
    if _product(left, right) == _product(right, left) and min(len(left.clauses), len(right.clauses)) <= 1:
        return False
    return _has_unmatched_clause(left, right) or _has_unmatched_clause(right, left)


def _polarity(clause: Clause, *, shared: frozenset[str]) -> int:
    return -clause.polarity if clause.local & shared else clause.polarity


def _product(one: Analysis, other: Analysis) -> int:
    product, shared = 1, one.concepts & other.concepts
    for number, clause in enumerate(one.clauses):
        if number == 0 or clause.concepts & shared:
            product *= _polarity(clause, shared=shared)
    return product


def _has_unmatched_clause(one: Analysis, other: Analysis) -> bool:
    shared = one.concepts & other.concepts
    return any(not _finds_match(clause, other=other, shared=shared) for clause in one.clauses)


def _finds_match(clause: Clause, *, other: Analysis, shared: frozenset[str]) -> bool:
    overlaps = [(len(clause.concepts & candidate.concepts), candidate) for candidate in other.clauses]
    best = max((overlap for overlap, _ in overlaps), default=0)
    if not best:
        return True
    polarity = _polarity(clause, shared=shared)
    return any(overlap == best and _polarity(match, shared=shared) == polarity for overlap, match in overlaps)


def differ_in_numbers(left: Analysis, right: Analysis) -> bool:
    """Say whether one role holds different amounts or units."""
    return have_other_numbers(left.quantities, right.quantities)


def are_antonyms(left: Analysis, right: Analysis) -> bool:
    """Say whether one text holds a word that excludes a word of the other, and no converse undoes it."""
    return bool(_count_antonyms(left, right)) and not are_converse(left, right)


def _count_antonyms(left: Analysis, right: Analysis) -> int:
    lexicon = load_lexicon(left.language)
    mine, theirs = left.markers - right.markers, right.markers - left.markers
    return sum(1 for word in mine for other in lexicon.exclusive.get(word, ()) if other in theirs)


def are_converse(left: Analysis, right: Analysis) -> bool:
    """Say whether the texts compare the same two things from opposite ends ("faster than", "slower than")."""
    if not left.relations or not right.relations:
        return False
    if any(one.kind == other.kind == "order" for one in left.relations for other in right.relations):
        return not _crosses_any(left.relations, right.relations)
    return _crosses_any(left.relations, right.relations) and bool(_count_antonyms(left, right))


def choose_otherwise(left: Analysis, right: Analysis) -> bool:
    """Say whether both choose or compare, and each puts ahead what the other puts behind."""
    chosen = [[relation for relation in one.relations if relation.kind != "order"] for one in (left, right)]
    return _crosses_any(*chosen) and not are_converse(left, right)


def replace_each_other(left: Analysis, right: Analysis) -> bool:
    """Say whether one text rejects or leaves behind what the other plainly states."""
    return _chooses_rejected(left, right) or _chooses_rejected(right, left)


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
        chosen = relation.ahead - other.concepts
        if relation.kind == "choice" and rejected & other.concepts and chosen:
            return True
    return False


def _governors(words: Sequence[Word]) -> dict[str, str]:
    return {word.concept: word.governor for word in words if word.governor}


def _swaps_prepositions(left: Analysis, right: Analysis) -> bool:
    opposed = load_lexicon(left.language).opposed
    mine, theirs = _governors(left.words), _governors(right.words)
    return any((mine[word], theirs[word]) in opposed for word in mine.keys() & theirs.keys())


def _inverts_order(left: Analysis, right: Analysis) -> bool:
    """Say whether two shared nouns stand on opposite sides of a shared word, unless a passive turned them."""
    mine, theirs = _shared_nouns(left, right), _shared_nouns(right, left)
    names = [word.concept for word in left.words if word.concept in mine and word.concept in theirs]
    if len(names) < 2:
        return False
    first, second = _order(left, right), _order(right, left)
    turned = left.is_passive != right.is_passive
    return any(
        _is_turned(one, two, first=first, second=second) != (turned and _is_between(one, two, first, second))
        for one, two in _couples(names)
    )


def _couples(names: Sequence[str]) -> list[tuple[str, str]]:
    unique = list(dict.fromkeys(names))
    return [(one, two) for at, one in enumerate(unique) for two in unique[at + 1 :]]


def _shared_nouns(one: Analysis, other: Analysis) -> frozenset[str]:
    theirs = {word.concept: word for word in other.words}
    return frozenset(
        word.concept
        for word in one.words
        if word.concept in theirs and _moves(word, theirs[word.concept], one.language)
    )


def _moves(word: Word, twin: Word, language: str) -> bool:
    if word.is_verb or word.concept in load_lexicon(language).times:
        return False
    if word.governor and word.governor == twin.governor:
        return False
    return language != "de" or (word.may_be_name and twin.may_be_name)


def _order(one: Analysis, other: Analysis) -> dict[str, int]:
    shared = [word.concept for word in one.words if word.concept in other.concepts]
    return {concept: position for position, concept in enumerate(shared) if shared.count(concept) == 1}


def _anchors(one: str, two: str, order: dict[str, int]) -> set[str]:
    low, high = sorted((order[one], order[two]))
    return {concept for concept, position in order.items() if low < position < high}


def _is_between(one: str, two: str, first: dict[str, int], second: dict[str, int]) -> bool:
    known = all(name in order for name in (one, two) for order in (first, second))
    return known and bool(_anchors(one, two, first) & _anchors(one, two, second))


def _is_turned(one: str, two: str, *, first: dict[str, int], second: dict[str, int]) -> bool:
    if not _is_between(one, two, first, second):
        return False
    return (first[one] < first[two]) != (second[one] < second[two])


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
    if len(matches) < POLICY.framed * min(len(mine), len(theirs)):
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
