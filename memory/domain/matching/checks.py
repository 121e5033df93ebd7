"""Compare two analysed claims, one check a way in which cosines are blind; every check is symmetric."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from memory.domain.matching.alignment import align
from memory.domain.matching.analysis import Analysis, Word
from memory.domain.matching.arguments import are_converse, are_swapped, count_antonyms
from memory.domain.matching.claims import POLICY, GuardReason
from memory.domain.matching.negation import differ_in_negation
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
