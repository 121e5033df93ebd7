"""Analyse a claim once: its words in their roles, clauses with polarity, quantities and contrasts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from memory.domain.language import could_be_either, detect_language
from memory.domain.matching.claims import Claim
from memory.domain.matching.lexicon import AMBIGUOUS, STEMMERS, Lexicon, Mark, load_lexicon
from memory.domain.matching.quantities import Quantity, read_quantities
from memory.domain.matching.tokens import Token, tokenize

CACHED_CLAIMS = 8_192
NEITHER = frozenset({"neither", "weder"})


class Word(NamedTuple):
    """A content word: its concept, the preposition that governs it ("" for none) and what it may be."""

    concept: str
    governor: str
    is_name: bool  # capitalised inside a sentence
    may_be_name: bool  # capitalised, also at the start of a sentence
    is_verb: bool
    is_light: bool
    denies: bool  # holds a negation of its concept


class Clause(NamedTuple):
    """A stretch of text with one polarity: +1, or -1 after an odd number of negations."""

    polarity: int
    concepts: frozenset[str]
    local: frozenset[str]  # what a local negation ("without sugar") denies


class Relation(NamedTuple):
    """An ordered pair of word sets: chosen over rejected, ahead of behind, earlier before later."""

    kind: str
    ahead: frozenset[str]
    behind: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A claim as the checks see it."""

    language: str
    speaker: str
    tokens: tuple[Token, ...]
    words: tuple[Word, ...]
    concepts: frozenset[str]
    markers: frozenset[str]  # every concept, function words included
    clauses: tuple[Clause, ...]
    relations: tuple[Relation, ...]
    quantities: tuple[Quantity, ...]
    kinds: frozenset[tuple[int, str]]
    has_first_person: bool
    is_question: bool
    is_hedged: bool
    is_limited: bool
    is_passive: bool


@lru_cache(maxsize=CACHED_CLAIMS)
def analyse(claim: Claim) -> Analysis:
    """Return the analysis of a claim; one in neither English nor German has a language and nothing else."""
    return analyse_as(claim, language=claim.language or detect_language(claim.text) or guess_language(claim.text))


@lru_cache(maxsize=CACHED_CLAIMS)
def analyse_as(claim: Claim, *, language: str) -> Analysis:
    """Return the analysis of a claim read as a given language."""
    if language not in STEMMERS:
        return _nothing(claim=claim, language=language)
    lexicon = load_lexicon(language)
    heard = tokenize(claim.text, lexicon=lexicon)
    lowers = {token.lower for token in heard}
    tokens = _voice(heard, speaker=claim.speaker.strip(), lexicon=lexicon)
    words = tuple(_read_words(tokens, lexicon=lexicon))
    marks = {token.entry.mark for token in tokens}
    first_person = bool(lowers & lexicon.first_person)
    return Analysis(
        language=language,
        speaker=claim.speaker.casefold().strip(),
        tokens=tuple(tokens),
        words=words,
        concepts=frozenset(word.concept for word in words),
        markers=frozenset(token.entry.concept for token in tokens if token.entry.sign > 0) | {w.concept for w in words},
        clauses=tuple(_read_clauses(tokens, lexicon=lexicon)),
        relations=tuple(_read_relations(tokens, lexicon=lexicon)),
        quantities=read_quantities(tokens, lexicon=lexicon),
        kinds=frozenset(_read_kinds(tokens, lexicon=lexicon)),
        has_first_person=first_person or bool(lowers & lexicon.first_person_plural),
        is_question=claim.text.rstrip().endswith("?"),
        is_hedged=Mark.HEDGE in marks,
        is_limited=Mark.LIMITER in marks,
        is_passive=bool(lowers & lexicon.passive) and lexicon.agent in lowers,
    )


def guess_language(text: str) -> str:
    """Return the language whose tables know more of a text without tell-tale words, "" for a tie or a foreign text."""
    if not could_be_either(text):
        return ""
    known = {language: _count_known(text, lexicon=load_lexicon(language)) for language in STEMMERS}
    best = max(known, key=lambda language: known[language])
    return best if list(known.values()).count(known[best]) == 1 else ""


def _count_known(text: str, *, lexicon: Lexicon) -> int:
    return sum(lexicon.knows(word) for word in text.lower().split())


def _nothing(*, claim: Claim, language: str) -> Analysis:
    return Analysis(
        language=language,
        speaker=claim.speaker.casefold().strip(),
        tokens=(),
        words=(),
        concepts=frozenset(),
        markers=frozenset(),
        clauses=(),
        relations=(),
        quantities=(),
        kinds=frozenset(),
        has_first_person=False,
        is_question=False,
        is_hedged=False,
        is_limited=False,
        is_passive=False,
    )


def _is_content(token: Token) -> bool:
    return token.entry.mark is Mark.WORD and bool(token.entry.concept)


def _voice(tokens: list[Token], *, speaker: str, lexicon: Lexicon) -> list[Token]:
    """Put a known speaker's name for the first "I"."""
    spoken = next((at for at, token in enumerate(tokens) if token.lower in lexicon.first_person), None)
    if not speaker or spoken is None:
        return tokens
    name = speaker.split()[0]
    voiced = Token(name.capitalize(), name.lower(), lexicon.look_up(name.lower()), tokens[spoken].first)
    return [*tokens[:spoken], voiced, *tokens[spoken + 1 :]]


def _read_words(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Word]:
    governor = ""
    for position, token in enumerate(tokens):
        if token.lower in lexicon.prepositions:
            governor = token.lower
        elif not token.lower[0].isalnum() or token.lower in lexicon.linkers:
            governor = ""
        elif _is_content(token) and not _is_amount(tokens, position, lexicon=lexicon):
            word = _read_word(token, governor=governor, lexicon=lexicon)
            governor = "" if word.is_verb else governor
            yield word


def _is_amount(tokens: Sequence[Token], position: int, *, lexicon: Lexicon) -> bool:
    """Say whether a token is a number word, or the unit behind a number."""
    before = tokens[position - 1].lower if position else ""
    lower = tokens[position].lower
    counted = before[:1].isdigit() or before in lexicon.numbers
    return lower in lexicon.numbers or (counted and (lower in lexicon.units or lexicon.stem(lower) in lexicon.units))


def _read_word(token: Token, *, governor: str, lexicon: Lexicon) -> Word:
    entry, capital = token.entry, token.surface[0].isupper()
    known = entry.concept in lexicon.verbs or entry.concept in lexicon.light
    acts = entry.concept in lexicon.verbs or _is_gerund(token, lexicon=lexicon)
    lowercase_verb = acts and not (capital and not token.first)
    return Word(
        concept=entry.concept,
        governor="" if lowercase_verb else governor,
        is_name=capital and not token.first,
        may_be_name=capital and not known,
        is_verb=lowercase_verb,
        is_light=entry.concept in lexicon.light,
        denies=entry.sign < 0,
    )


def _is_gerund(token: Token, *, lexicon: Lexicon) -> bool:
    return (
        lexicon.language == "en" and token.lower.endswith("ing") and token.lower not in (token.entry.concept, "morning")
    )


def _read_kinds(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[tuple[int, str]]:
    for token in tokens:
        kind = lexicon.kinds.get(token.entry.concept)
        if kind is not None and (token.surface[0].isupper() or token.lower not in AMBIGUOUS):
            yield kind, token.entry.concept


def _ends_clause(token: Token, *, lexicon: Lexicon) -> bool:
    return token.lower in ",;:.!?—–(" or token.lower in lexicon.splitters


def _split_clauses(tokens: Sequence[Token], *, lexicon: Lexicon) -> list[list[Token]]:
    clauses: list[list[Token]] = [[]]
    for token in tokens:
        if _ends_clause(token, lexicon=lexicon):
            clauses.append([])
        clauses[-1].append(token)
    return [clause for clause in clauses if any(token.lower[0].isalnum() for token in clause)]


def _read_clauses(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Clause]:
    for clause in _split_clauses(tokens, lexicon=lexicon):
        if not _is_interjection(clause) and not _is_contrast(clause):
            yield _read_clause(clause)


def _is_interjection(clause: Sequence[Token]) -> bool:
    return len(clause) == 1 and clause[0].entry.mark is Mark.NEGATOR


def _is_contrast(clause: Sequence[Token]) -> bool:
    """Say whether a clause is only a ", not X", which a relation tells."""
    words = [token for token in clause if token.lower[0].isalnum()]
    return len(words) <= 3 and words[0].lower in ("not", "nicht", "kein", "keine", "keinen")


def _read_clause(clause: Sequence[Token]) -> Clause:
    polarity, local, concepts, locally, rejected = 1, set[str](), set[str](), False, False
    neither = any(token.lower in NEITHER for token in clause)
    for token in clause:
        mark = token.entry.mark
        if mark is Mark.NEGATOR and not (neither and token.lower in ("nor", "noch")):
            polarity = -polarity
        elif mark is Mark.LOCAL_NEGATOR:
            locally = True
        elif mark is Mark.CONTRAST:
            rejected = True
        elif _is_content(token):
            concepts.add(token.entry.concept)
            polarity *= 1 if rejected else token.entry.sign
            if locally:
                local.add(token.entry.concept)
                locally = token.entry.sign > 0 and len(local) < 2
    return Clause(polarity, frozenset(concepts), frozenset(local))


def _concepts_of(tokens: Iterable[Token]) -> frozenset[str]:
    return frozenset(token.entry.concept for token in tokens if _is_content(token))


def _until_preposition(tokens: Sequence[Token], *, lexicon: Lexicon) -> list[Token]:
    taken: list[Token] = []
    for token in tokens:
        if taken and token.lower in lexicon.prepositions and _concepts_of(taken):
            break
        taken.append(token)
    return taken


def _read_relations(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Relation]:
    clauses = _split_clauses(tokens, lexicon=lexicon)
    for number, clause in enumerate(clauses):
        previous = clauses[number - 1] if number else []
        following = clauses[number + 1] if number + 1 < len(clauses) else []
        yield from _read_move(clause, lexicon=lexicon)
        if _is_contrast(clause) and previous:
            yield Relation("choice", _concepts_of(previous), _concepts_of(clause))
        for position in range(len(clause)):
            kind = _relation_kind(clause, position, lexicon=lexicon)
            if kind:
                yield from _relate(kind, clause, position, previous=previous, following=following, lexicon=lexicon)


def _read_move(clause: Sequence[Token], *, lexicon: Lexicon) -> Iterable[Relation]:
    """Read "from X to Y" beside a verb of change, and "replaced X with Y", as Y chosen over X."""
    verbs = [position for position, token in enumerate(clause) if token.entry.concept in lexicon.moves]
    if not verbs:
        return
    left, reached = (
        _concepts_of(_behind(clause, words, lexicon=lexicon)) for words in (lexicon.move_from, lexicon.move_to)
    )
    if left and reached:
        yield Relation("choice", reached, left)


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
    return len(_concepts_of(clause)) <= 3 and not any(token.entry.concept in lexicon.verbs for token in clause)


def _is_noun_place(clause: Sequence[Token], position: int) -> bool:
    if position + 1 >= len(clause):
        return False
    before, after = clause[position - 1], clause[position + 1]
    return _is_content(before) and before.entry.concept != "lik" and _is_content(after)


def _relate(
    kind: str,
    clause: Sequence[Token],
    position: int,
    *,
    previous: Sequence[Token],
    following: Sequence[Token],
    lexicon: Lexicon,
) -> Iterable[Relation]:
    ahead = _concepts_of(clause[:position])
    behind_tokens = clause[position + 1 :]
    if not ahead:
        ahead = _concepts_of(following) if clause[position].lower not in ("then",) else _concepts_of(previous)
    if kind != "order":
        behind_tokens = _until_preposition(behind_tokens, lexicon=lexicon)
    behind = _concepts_of(behind_tokens)
    if not ahead or not behind:
        return
    yield Relation(kind, behind, ahead) if clause[position].lower == "after" else Relation(kind, ahead, behind)
