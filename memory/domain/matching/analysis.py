"""Analyse a claim once: its words in their roles, clauses with polarity, quantities and contrasts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from memory.domain.language import could_be_either, detect_language
from memory.domain.matching.claims import Claim
from memory.domain.matching.clauses import Clause, is_content, read_clauses
from memory.domain.matching.lexicon import AMBIGUOUS, STEMMERS, Lexicon, Mark, load_lexicon
from memory.domain.matching.quantities import Quantity, read_quantities
from memory.domain.matching.relations import Relation, read_relations
from memory.domain.matching.tokens import Token, tokenize

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A claim as the checks see it."""

    language: str
    speaker: str
    tokens: tuple[Token, ...] = ()
    words: tuple[Word, ...] = ()
    concepts: frozenset[str] = frozenset()
    markers: frozenset[str] = frozenset()  # every concept, function words included
    clauses: tuple[Clause, ...] = ()
    relations: tuple[Relation, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    kinds: frozenset[tuple[int, str]] = frozenset()
    has_first_person: bool = False
    is_question: bool = False
    is_hedged: bool = False
    is_limited: bool = False
    is_passive: bool = False


@lru_cache(maxsize=CACHED_CLAIMS)
def analyse(claim: Claim) -> Analysis:
    """Return the analysis of a claim; one in neither English nor German has a language and nothing else."""
    return analyse_as(claim, language=claim.language or detect_language(claim.text) or guess_language(claim.text))


@lru_cache(maxsize=CACHED_CLAIMS)
def analyse_as(claim: Claim, *, language: str) -> Analysis:
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
        relations=tuple(read_relations(tokens, lexicon=lexicon)),
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
