"""Read what a text puts ahead of what: choices, comparisons, changes and orders of events."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory.domain.matching.clauses import concepts_of, is_content, is_contrast, split_clauses
from memory.domain.matching.lexicon import Lexicon, Mark
from memory.domain.matching.tokens import Token


class Relation(NamedTuple):
    """An ordered pair of word sets: chosen over rejected, ahead of behind, earlier before later."""

    kind: str
    ahead: frozenset[str]
    behind: frozenset[str]


def _until_preposition(tokens: Sequence[Token], *, lexicon: Lexicon) -> list[Token]:
    taken: list[Token] = []
    for token in tokens:
        if concepts_of(taken) and _ends_object(token, lexicon=lexicon):
            break
        taken.append(token)
    return taken


def _ends_object(token: Token, *, lexicon: Lexicon) -> bool:
    is_verb = token.entry.concept in lexicon.verbs and token.surface[0].islower()
    return token.lower in lexicon.prepositions or token.lower in lexicon.auxiliaries or is_verb


def read_relations(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Relation]:
    """Yield the ordered pairs of a text."""
    clauses = split_clauses(tokens, lexicon=lexicon)
    for number, clause in enumerate(clauses):
        previous = clauses[number - 1] if number else []
        following = clauses[number + 1] if number + 1 < len(clauses) else []
        yield from _read_move(clause, lexicon=lexicon)
        yield from _read_swap(clause, lexicon=lexicon)
        if is_contrast(clause) and previous:
            yield Relation("choice", concepts_of(previous), concepts_of(clause))
        for position in range(len(clause)):
            kind = _relation_kind(clause, position, lexicon=lexicon)
            if kind:
                yield from _relate(kind, clause, position, previous=previous, following=following, lexicon=lexicon)


def _read_move(clause: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Relation]:
    """Read "from X to Y" beside a verb of change as Y chosen over X."""
    if not any(token.entry.concept in lexicon.moves for token in clause):
        return
    left, reached = (
        concepts_of(_behind(clause, words, lexicon=lexicon)) for words in (lexicon.move_from, lexicon.move_to)
    )
    if left and reached:
        yield Relation("choice", reached, left)


def _read_swap(clause: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Relation]:
    """Read "replaced X with Y" and "left X for Y" as Y chosen over X."""
    for position, token in enumerate(clause):
        if token.entry.concept not in lexicon.swaps:
            continue
        given_up = concepts_of(_until_preposition(clause[position + 1 :], lexicon=lexicon))
        reached = concepts_of(_behind(clause[position + 1 :], lexicon.swap_for, lexicon=lexicon))
        if given_up and reached:
            yield Relation("choice", reached, given_up)


def _behind(clause: Sequence[Token], words: frozenset[str], *, lexicon: Lexicon) -> list[Token]:
    """Return the tokens between the first of some words and the next preposition."""
    start = next((position for position, token in enumerate(clause) if token.lower in words), None)
    return [] if start is None else _until_preposition(clause[start + 1 :], lexicon=lexicon)


def _relation_kind(clause: Sequence[Token], position: int, *, lexicon: Lexicon) -> str:
    token = clause[position]
    if token.entry.mark is Mark.CONTRAST:
        return "choice"
    if token.lower == lexicon.than and lexicon.language == "en":
        return "than"
    if token.lower == lexicon.than and _follows_comparative(clause, position):
        return "than"
    if token.lower == "over" and (_prefers(clause[:position]) or _is_slogan(clause, lexicon=lexicon)):
        return "choice"
    if token.lower == "to" and _prefers(clause[:position]) and _is_noun_place(clause, position):
        return "choice"
    if token.lower in ("before", "then") or (token.lower == "after" and lexicon.language == "en"):
        return "order"
    return ""


def _follows_comparative(clause: Sequence[Token], position: int) -> bool:
    return any(token.lower.endswith("er") or token.lower in ("mehr", "besser") for token in clause[:position])


def _prefers(tokens: Sequence[Token]) -> bool:
    return any(token.entry.concept in ("lik", "pick", "choos") for token in tokens)


def _is_slogan(clause: Sequence[Token], *, lexicon: Lexicon) -> bool:
    """Say whether a clause is as short as "tabs over spaces"."""
    return len(concepts_of(clause)) <= 3 and not any(token.entry.concept in lexicon.verbs for token in clause)


def _is_noun_place(clause: Sequence[Token], position: int) -> bool:
    """Say whether a noun stands before a "to" and one, perhaps with an article, behind it."""
    before, behind = clause[position - 1], clause[position + 1 : position + 3]
    follows = any(is_content(token) for token in behind) and behind[0].lower not in ("be", "have")
    return is_content(before) and before.entry.concept != "lik" and follows


def _relate(
    kind: str,
    clause: Sequence[Token],
    position: int,
    *,
    previous: Sequence[Token],
    following: Sequence[Token],
    lexicon: Lexicon,
) -> Iterable[Relation]:
    ahead = concepts_of(clause[:position])
    behind_tokens = clause[position + 1 :]
    if not ahead:
        ahead = concepts_of(following) if clause[position].lower not in ("then",) else concepts_of(previous)
    if kind != "order":
        behind_tokens = _until_preposition(behind_tokens, lexicon=lexicon)
    behind = concepts_of(token for token in behind_tokens if token.lower not in lexicon.numbers)
    if kind == "order" and behind <= lexicon.times:
        return
    if not ahead or not behind:
        return
    yield Relation(kind, behind, ahead) if clause[position].lower == "after" else Relation(kind, ahead, behind)
