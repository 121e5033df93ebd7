"""Cut a text into tokens: contractions opened, phrases joined, each looked up in its language's tables."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memory.domain.matching.lexicon import Entry, Lexicon, Mark

TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_](?:\w|['.](?=\w))*(?:\+\+|#)?|[%€$£°](?:[CF]\b)?|[,;:.!?()—–]")
SENTENCE_END = frozenset(".!?")
_CONTRACTIONS = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r"[’‘`´]", "'"),
        (r"\bcan(?:'t|not)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"n't\b|\bn't\b", " not"),
        (r"'(?:re|ve|ll|d|m)\b", ""),
        (r"'s\b|(?<=s)'(?=\s|$)", ""),
        (r"\b(?:etc|e\.g|i\.e|z\.\s?B|bzw|usw)\.", ""),
    )
)
_NEEDS_WORK = re.compile(r"[’‘`´']|cannot|\.[gB]|etc\.|bzw\.|usw\.", re.IGNORECASE)
PRONOUNS = frozenset(
    {"i", "you", "he", "she", "it", "we", "they", "who", "that", "this", "there", "everyone", "everybody"}
)


class Token(NamedTuple):
    """A word, number, sign or phrase; `first` where it opens a sentence."""

    surface: str
    lower: str
    entry: Entry
    first: bool


PUNCTUATION = Entry("", mark=Mark.FUNCTION)


def tokenize(text: str, *, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of a text."""
    return _resolve_unless(list(_join_phrases(_open(text), lexicon=lexicon)))


def _resolve_unless(tokens: list[Token]) -> list[Token]:
    """Take "nothing … unless" for a double denial; elsewhere "unless" stays a condition."""
    for position, token in enumerate(tokens):
        if token.lower == "unless" and count_negators(tokens[:position]):
            denial = Entry(token.entry.concept, mark=Mark.NEGATOR)
            return [*tokens[:position], token._replace(entry=denial), *tokens[position + 1 :]]
    return tokens


def count_negators(tokens: Iterable[Token]) -> int:
    """Return how many words of negation stand among tokens; verbs with a negation inside do not count."""
    return sum(token.entry.mark in (Mark.NEGATOR, Mark.LOCAL_NEGATOR) for token in tokens)


def _open(text: str) -> list[str]:
    if _NEEDS_WORK.search(text):
        for pattern, replacement in _CONTRACTIONS:
            text = pattern.sub(replacement, text)
    return TOKEN.findall(text)


def _join_phrases(words: list[str], *, lexicon: Lexicon) -> Iterator[Token]:
    lowers = [word.lower() for word in words]
    stems = [lexicon.lemma(lower) for lower in lowers]
    particles = _find_separable(lowers, lexicon=lexicon)
    position, first = 0, True
    while position < len(words):
        size, entry = _longest_phrase(stems, position, lowers=lowers, lexicon=lexicon)
        if not size:
            size, entry = 1, _entry(lowers[position], separated=particles.get(position), lexicon=lexicon)
        yield Token(words[position], " ".join(lowers[position : position + size]), entry, first)
        first = words[position] in SENTENCE_END
        position += size


def _entry(lower: str, *, separated: str | None, lexicon: Lexicon) -> Entry:
    if separated is not None:
        return lexicon.look_up(separated) if separated else PUNCTUATION
    return lexicon.look_up(lower) if lower[0].isalpha() else PUNCTUATION


def _longest_phrase(stems: list[str], position: int, *, lowers: list[str], lexicon: Lexicon) -> tuple[int, Entry]:
    for parts, entry in lexicon.phrases.get(stems[position], ()):
        if tuple(stems[position : position + len(parts)]) != parts:
            continue
        if entry.concept == "used_to" and not _is_habit(lowers, position, lexicon=lexicon):
            continue
        return len(parts), entry
    return 0, PUNCTUATION


def _is_habit(lowers: list[str], position: int, *, lexicon: Lexicon) -> bool:
    """Tell "she used to smoke" from "is used to smoking" and "then used to smoke fish"."""
    before = lowers[position - 1] if position else ""
    return lowers[position] == "used" and (before in PRONOUNS or before not in lexicon.surfaces)


def _find_separable(lowers: list[str], *, lexicon: Lexicon) -> dict[int, str]:
    """Map the verb of a split German verb to the whole verb, and its particle to nothing."""
    found: dict[int, str] = {}
    for position, lower in enumerate(lowers):
        for particle, whole in lexicon.separable.get(lower, ()):
            after = [at for at in range(position + 1, len(lowers)) if lowers[at] == particle]
            if after:
                found |= {position: whole, after[-1]: ""}
    return found
