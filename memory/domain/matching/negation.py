"""See a claim denied in one text and not in the other."""

from memory.domain.matching.analysis import Analysis
from memory.domain.matching.clauses import Clause, is_content
from memory.domain.matching.tokens import count_negators


def differ_in_negation(left: Analysis, right: Analysis) -> bool:
    """Say whether a clause that the texts share is denied in one of them only."""
    if min(len(left.clauses), len(right.clauses)) <= 1 and _agree_as_wholes(left, right):
        return False
    return _has_unmatched_clause(left, right) or _has_unmatched_clause(right, left)


def _polarity(clause: Clause, *, shared: frozenset[str]) -> int:
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


def _finds_match(clause: Clause, *, other: Analysis, shared: frozenset[str]) -> bool:
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
