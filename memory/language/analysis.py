"""Analyse a text once for all comparisons: words in their roles, clauses with polarity, what is put ahead of what."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from memory.language.lexicon import AMBIGUOUS, STEMMERS, Lexicon, Mark, Token, load_lexicon, tokenize
from memory.language.quantities import Quantity, read_quantities
from memory.language.words import could_be_either, detect_language


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenText:
    """A text, who says it (a belief's speaker is its subject) and its language ("" → detected)."""

    text: str
    speaker: str = ""
    language: str = ""


CACHED_CLAIMS = 8_192


class Word(NamedTuple):
    """A content word: its concept, the preposition that governs it ("" for none) and what it may be."""

    concept: str
    governor: str
    is_name: bool  # capitalised inside a sentence
    may_be_name: bool  # capitalised, also at the start of a sentence
    is_verb: bool
    is_light: bool
    denies: bool  # holds a negation of its concept


class PolarClause(NamedTuple):
    """A stretch of text with one polarity: +1, or -1 after an odd number of negations."""

    polarity: int
    concepts: frozenset[str]
    local: frozenset[str]  # what a local negation ("without sugar") denies
    denied: frozenset[str]  # the first concept behind each word of negation


class OrderedPair(NamedTuple):
    """An ordered pair of word sets: chosen over rejected, ahead of behind, earlier before later."""

    kind: str
    ahead: frozenset[str]
    behind: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A claim as the checks see it."""

    language: str
    speaker: str
    tokens: tuple[Token, ...] = ()
    words: tuple[Word, ...] = ()
    concepts: frozenset[str] = frozenset()
    markers: frozenset[str] = frozenset()  # every concept, function words included
    clauses: tuple[PolarClause, ...] = ()
    relations: tuple[OrderedPair, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    kinds: frozenset[tuple[int, str]] = frozenset()
    has_first_person: bool = False
    is_question: bool = False
    is_hedged: bool = False
    is_limited: bool = False
    is_passive: bool = False


@lru_cache(maxsize=CACHED_CLAIMS)
def analyse(claim: SpokenText) -> Analysis:
    """Return the analysis of a claim; one in neither English nor German has a language and nothing else."""
    return analyse_as(claim, language=claim.language or detect_language(claim.text) or guess_language(claim.text))


@lru_cache(maxsize=CACHED_CLAIMS)
def analyse_as(claim: SpokenText, *, language: str) -> Analysis:
    """Return the analysis of a claim read as a given language."""
    if language not in STEMMERS:
        return Analysis(language=language, speaker=claim.speaker.casefold().strip())
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
        clauses=tuple(read_clauses(tokens, lexicon=lexicon)),
        relations=tuple(read_ordered_pairs(tokens, lexicon=lexicon)),
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
        elif is_content(token) and not _is_amount(tokens, position, lexicon=lexicon):
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
    is_cut = token.lower.endswith("ing") and token.lower != token.entry.concept
    return lexicon.language == "en" and is_cut and token.entry.concept not in lexicon.times


def _read_kinds(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[tuple[int, str]]:
    for token in tokens:
        kind = lexicon.kinds.get(token.entry.concept)
        if kind is not None and (token.surface[0].isupper() or token.lower not in AMBIGUOUS):
            yield kind, token.entry.concept


NEITHER = frozenset({"neither", "weder"})
NOT = frozenset({"not", "never", "nicht", "nie", "niemals", "kein", "keine", "keinen"})
AND = frozenset({"and", "und"})
CONTRAST_WORDS = 2  # content words of a clause that only says what was not meant


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


def read_clauses(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[PolarClause]:
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


def _read_clause(clause: Sequence[Token]) -> PolarClause:
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
    return PolarClause(polarity, frozenset(concepts), frozenset(local), frozenset(denied))


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


def read_ordered_pairs(tokens: Sequence[Token], *, lexicon: Lexicon) -> Iterable[OrderedPair]:
    """Yield the ordered pairs of a text."""
    clauses = split_clauses(tokens, lexicon=lexicon)
    for number, clause in enumerate(clauses):
        previous = clauses[number - 1] if number else []
        following = clauses[number + 1] if number + 1 < len(clauses) else []
        yield from _read_move(clause, lexicon=lexicon)
        yield from _read_swap(clause, lexicon=lexicon)
        if is_contrast(clause) and previous:
            yield OrderedPair("choice", concepts_of(previous), concepts_of(clause))
        for position in range(len(clause)):
            kind = _relation_kind(clause, position, lexicon=lexicon)
            if kind:
                yield from _relate(kind, clause, position, previous=previous, following=following, lexicon=lexicon)


def _read_move(clause: Sequence[Token], *, lexicon: Lexicon) -> Iterable[OrderedPair]:
    """Read "from X to Y" beside a verb of change as Y chosen over X."""
    if not any(token.entry.concept in lexicon.moves for token in clause):
        return
    left, reached = (
        concepts_of(_behind(clause, words, lexicon=lexicon)) for words in (lexicon.move_from, lexicon.move_to)
    )
    if left and reached:
        yield OrderedPair("choice", reached, left)


def _read_swap(clause: Sequence[Token], *, lexicon: Lexicon) -> Iterable[OrderedPair]:
    """Read "replaced X with Y" and "left X for Y" as Y chosen over X."""
    for position, token in enumerate(clause):
        if token.entry.concept not in lexicon.swaps:
            continue
        given_up = concepts_of(_until_preposition(clause[position + 1 :], lexicon=lexicon))
        reached = concepts_of(_behind(clause[position + 1 :], lexicon.swap_for, lexicon=lexicon))
        if given_up and reached:
            yield OrderedPair("choice", reached, given_up)


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
) -> Iterable[OrderedPair]:
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
    yield OrderedPair(kind, behind, ahead) if clause[position].lower == "after" else OrderedPair(kind, ahead, behind)
