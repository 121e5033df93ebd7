"""Split a text into clauses, each with its polarity."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory.domain.matching.lexicon import Lexicon, Mark
from memory.domain.matching.tokens import Token

NEITHER = frozenset({"neither", "weder"})
NOT = frozenset({"not", "never", "nicht", "nie", "niemals", "kein", "keine", "keinen"})
AND = frozenset({"and", "und"})
CONTRAST_WORDS = 2  # content words of a clause that only says what was not meant


class Clause(NamedTuple):
    """A stretch of text with one polarity: +1, or -1 after an odd number of negations."""

    polarity: int
    concepts: frozenset[str]
    local: frozenset[str]  # what a local negation ("without sugar") denies
    denied: frozenset[str]  # the first concept behind each word of negation


def is_content(token: Token) -> bool:
    """Say whether a token names something."""
    return token.entry.mark is Mark.WORD and bool(token.entry.concept)


def concepts_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Return the concepts that tokens name."""
    return frozenset(token.entry.concept for token in tokens if is_content(token))


def split_clauses(tokens: Sequence[Token], *, lexicon: Lexicon) -> list[list[Token]]:
    """Cut at punctuation, at conjunctions, and at an "and" before a second predicate or a denial."""
    clauses: list[list[Token]] = [[]]
    for position, token in enumerate(tokens):
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if _ends_clause(token, following, lexicon=lexicon):
            clauses.append([])
        clauses[-1].append(token)
    return [clause for clause in clauses if any(token.lower[0].isalnum() for token in clause)]


def _ends_clause(token: Token, following: Token | None, *, lexicon: Lexicon) -> bool:
    if token.lower in AND and following is not None:
        return following.lower in NOT or _opens_predicate(following, lexicon=lexicon)
    return token.lower in ",;:.!?—–(" or token.lower in lexicon.splitters


def _opens_predicate(token: Token, *, lexicon: Lexicon) -> bool:
    is_verb = token.entry.concept in lexicon.verbs or token.entry.sign < 0
    return token.lower in lexicon.auxiliaries or (is_verb and token.surface[0].islower())


def read_clauses(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Clause]:
    """Yield the clauses that state something."""
    for clause in split_clauses(tokens, lexicon=lexicon):
        if not _is_interjection(clause) and not is_contrast(clause):
            yield _read_clause(clause)


def _is_interjection(clause: Sequence[Token]) -> bool:
    return len(clause) == 1 and clause[0].entry.mark is Mark.NEGATOR


def is_contrast(clause: Sequence[Token]) -> bool:
    """Say whether a clause is only a ", not X", which a relation tells."""
    words = [token for token in clause if token.lower[0].isalnum() and token.lower not in AND]
    return bool(words) and words[0].lower in NOT and len(words) <= 4 and 0 < len(concepts_of(words)) <= CONTRAST_WORDS


def _read_clause(clause: Sequence[Token]) -> Clause:
    polarity, local, concepts, locally, rejected = 1, set[str](), set[str](), False, False
    denied, pending = set[str](), False
    neither = any(token.lower in NEITHER for token in clause)
    for token in clause:
        mark = token.entry.mark
        if mark is Mark.NEGATOR and not (neither and token.lower in ("nor", "noch")):
            polarity, pending = -polarity, True
        elif mark is Mark.LOCAL_NEGATOR:
            locally = True
        elif mark is Mark.CONTRAST:
            rejected = True
        elif is_content(token):
            concepts.add(token.entry.concept)
            if pending:
                denied.add(token.entry.concept)
                pending = False
            polarity *= 1 if rejected else token.entry.sign
            if locally:
                local.add(token.entry.concept)
                locally = token.entry.sign > 0 and len(local) < 2
    return Clause(polarity, frozenset(concepts), frozenset(local), frozenset(denied))
