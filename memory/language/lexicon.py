"""The look-ups of one language (`load_lexicon`, from its word tables), and texts cut into tokens by them."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from memory.language.words import stem_english, stem_german


class Mark(StrEnum):
    """What a word or phrase does in its sentence."""

    WORD = auto()
    FUNCTION = auto()
    NEGATOR = auto()
    LOCAL_NEGATOR = auto()
    HARMLESS = auto()
    CONTRAST = auto()
    HEDGE = auto()
    LIMITER = auto()


@dataclass(frozen=True, slots=True)
class Entry:
    """What the tables say of a word or phrase: its concept, +1 or -1 where it denies that concept, and its mark."""

    concept: str
    sign: int = 1
    mark: Mark = Mark.WORD


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A unit's dimension and its size in that dimension's base unit."""

    dimension: str
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Everything the checks look up in one language; keys are stems unless stated."""

    language: str
    surfaces: Mapping[str, Entry]  # function words and marks, by lower-case surface
    words: Mapping[str, Entry]  # by stem, irregular forms by surface
    phrases: Mapping[str, tuple[tuple[tuple[str, ...], Entry], ...]]  # by first stem, longest first
    separable: Mapping[str, tuple[tuple[str, str], ...]]  # verb surface → (particle, concept)
    verbs: frozenset[str]  # concepts
    light: frozenset[str]  # concepts
    exclusive: Mapping[str, frozenset[str]]  # concept → concepts that exclude it
    kinds: Mapping[str, int]  # concept → number of its kind
    units: Mapping[str, Unit]  # by surface and by stem
    numbers: Mapping[str, float]  # by surface
    ordinals: Mapping[str, float]  # by surface
    prepositions: frozenset[str]
    opposed: frozenset[tuple[str, str]]
    passive: frozenset[str]
    splitters: frozenset[str]
    linkers: frozenset[str]  # words behind which a preposition governs nothing any more
    times: frozenset[str]  # concepts
    first_person: frozenset[str]
    first_person_plural: frozenset[str]
    clock_words: frozenset[str]
    auxiliaries: frozenset[str]
    moves: frozenset[str]  # concepts
    swaps: frozenset[str]  # concepts
    swap_for: frozenset[str]
    move_from: frozenset[str]
    move_to: frozenset[str]
    than: str
    agent: str
    irregular: Mapping[str, str]  # form → stem of its head
    stem: Callable[[str], str]

    def lemma(self, surface: str) -> str:
        """Return the stem of a lower-case word, of its head where the form is irregular."""
        return self.irregular.get(surface) or self.stem(surface)

    def look_up(self, surface: str) -> Entry:
        """Return the entry of a lower-case word: of its surface, else of its stem, else its stem as a new concept."""
        found = self.surfaces.get(surface) or self.words.get(surface)
        if found is None:
            stem = self.stem(surface)
            found = self.words.get(stem) or Entry(stem)
        return found

    def knows(self, surface: str) -> bool:
        """Say whether a lower-case word stands in any table."""
        stem = self.stem(surface)
        return (
            surface in self.surfaces
            or surface in self.words
            or stem in self.words
            or stem in self.verbs
            or stem in self.exclusive
        )

    def exclude_each_other(self, left: str, right: str) -> bool:
        """Say whether two concepts cannot hold of the same thing."""
        return right in self.exclusive.get(left, frozenset())


STEMMERS: Mapping[str, Callable[[str], str]] = MappingProxyType({"en": stem_english, "de": stem_german})

# Names that are ordinary words too: of their kind only when capitalised.
AMBIGUOUS = frozenset(
    {"go", "fly", "render", "edge", "fall", "spring", "swift", "rust", "c", "may", "march", "bun", "flask", "rails"}
    | {"oracle", "slack", "teams", "sublime", "safari", "helix", "ruby", "nano"}
)

_MARKED = (
    ("negators", Mark.NEGATOR),
    ("negator_phrases", Mark.NEGATOR),
    ("hedges", Mark.HEDGE),
    ("limiters", Mark.LIMITER),
    ("contrasts", Mark.CONTRAST),
    ("local_negators", Mark.LOCAL_NEGATOR),
    ("harmless", Mark.HARMLESS),
)


class _Builder:
    """Collect entries from one language's tables."""

    def __init__(self, *, tables: Mapping[str, str], stem: Callable[[str], str]) -> None:
        self.tables = tables
        self.stem = stem
        self.surfaces: dict[str, Entry] = {}
        self.words: dict[str, Entry] = {}
        self.phrases: dict[str, list[tuple[tuple[str, ...], Entry]]] = {}
        self.irregular: dict[str, str] = {}

    def concept(self, word: str) -> str:
        """Return the concept of a table's word or phrase."""
        first = word.split("_")[0]
        if "_" in word:
            parts = tuple(map(self._lemma, word.split("_")))
            return next(
                (entry.concept for known, entry in self.phrases.get(self._lemma(first), []) if known == parts), word
            )
        entry = self.surfaces.get(word) or self.words.get(word) or self.words.get(self.stem(word))
        return entry.concept if entry else self.stem(word)

    def _lemma(self, word: str) -> str:
        return self.irregular.get(word) or self.stem(word)

    def add(self, word: str, entry: Entry, *, surface: bool = False) -> None:
        """Enter a word under its stem (or its surface), or a phrase under its first stem."""
        if "_" not in word:
            (self.surfaces if surface else self.words).setdefault(word if surface else self.stem(word), entry)
            return
        parts = tuple(map(self._lemma, word.split("_")))
        rows = self.phrases.setdefault(parts[0], [])
        rows.append((parts, entry))
        rows.sort(key=lambda row: -len(row[0]))

    def read_irregular(self) -> None:
        for row in self._irregular_rows():
            self.irregular |= dict.fromkeys(row, self.stem(row[0]))

    def _irregular_rows(self) -> list[list[str]]:
        return [row.split() for row in self.tables["irregular"].replace("\n", " | ").split("|") if row.split()]

    def read_marks(self) -> None:
        for name, mark in _MARKED:
            for word in self.tables[name].split():
                self.add(word, Entry(word, mark=mark), surface=True)
        for word in self.tables["function"].split():
            self.add(word, Entry(word, mark=Mark.FUNCTION), surface=True)

    def read_concepts(self) -> None:
        for row in self.tables["synonyms"].strip().splitlines():
            head, *_ = words = row.split()
            concept = self.stem(head)
            for word in words:
                self.add(word.lstrip("-"), Entry(concept, sign=-1 if word.startswith("-") else 1))
        for forms in self._irregular_rows():
            self._read_forms(forms)

    def _read_forms(self, forms: list[str]) -> None:
        entry = self.words.get(self.stem(forms[0])) or Entry(self.stem(forms[0]))
        for form in forms:
            self.words[form] = entry
            self.words.setdefault(self.stem(form), entry)


def _read_exclusive(builder: _Builder) -> dict[str, frozenset[str]]:
    excluded: dict[str, set[str]] = {}
    for row in builder.tables["exclusive"].split():
        members = [builder.concept(word) for word in row.split("|")]
        for member in members:
            excluded.setdefault(member, set()).update(other for other in members if other != member)
    return {member: frozenset(others) for member, others in excluded.items()}


def _read_kinds(builder: _Builder) -> dict[str, int]:
    rows = builder.tables["kinds"].split()
    return {builder.concept(word): number for number, row in enumerate(rows) for word in row.split("|")}


def _read_units(builder: _Builder) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for row in builder.tables["units"].strip().splitlines():
        dimension, size, *names = row.split()
        for name in names:
            unit = Unit(dimension=dimension, size=float(size))
            units[name] = unit
            if len(name) > 3:
                units[builder.stem(name)] = unit
    return units


def _read_numbers(tables: Mapping[str, str]) -> dict[str, float]:
    numbers = {word: float(value) for value, word in enumerate(tables["numbers"].split())}
    rest = tables["other_numbers"].split()
    return numbers | {word: float(value) for word, value in zip(rest[::2], rest[1::2], strict=True)}


def _read_separable(builder: _Builder) -> dict[str, tuple[tuple[str, str], ...]]:
    rows: dict[str, list[tuple[str, str]]] = {}
    for row in builder.tables.get("separable", "").strip().splitlines():
        whole, verb, particle = row.split()
        rows.setdefault(verb, []).append((particle, whole))
    return {verb: tuple(parts) for verb, parts in rows.items()}


@lru_cache(maxsize=2)
def load_lexicon(language: str) -> Lexicon:
    """Return the look-ups of "en" or "de"; KeyError for any other language."""
    stem = STEMMERS[language]
    with (Path(__file__).parent / f"word_tables_{language}.toml").open("rb") as file:
        tables: Mapping[str, str] = tomllib.load(file)
    builder = _Builder(tables=tables, stem=stem)
    builder.read_irregular()
    builder.read_marks()
    builder.read_concepts()
    pairs = [tuple(row.split()) for row in tables["opposed_prepositions"].strip().splitlines()]
    return Lexicon(
        language=language,
        surfaces=builder.surfaces,
        words=builder.words,
        phrases={first: tuple(rows) for first, rows in builder.phrases.items()},
        separable=_read_separable(builder),
        verbs=frozenset(builder.concept(word) for word in tables["verbs"].split()),
        light=frozenset(builder.concept(word) for word in tables["light"].split()),
        exclusive=_read_exclusive(builder),
        kinds=_read_kinds(builder),
        units=_read_units(builder),
        numbers=_read_numbers(tables),
        ordinals={word: float(value) for value, word in enumerate(tables["ordinals"].split(), start=1)},
        prepositions=frozenset(tables["prepositions"].split()),
        opposed=frozenset({(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}),
        passive=frozenset(tables["passive"].split()),
        splitters=frozenset(tables["splitters"].split()),
        linkers=frozenset(tables["linkers"].split()),
        times=frozenset(builder.concept(word) for word in tables["times"].split()),
        first_person=frozenset(tables["first_person"].split()),
        first_person_plural=frozenset(tables["first_person_plural"].split()),
        clock_words=frozenset(tables["clock_words"].split()),
        auxiliaries=frozenset(tables["auxiliaries"].split()),
        swaps=frozenset(builder.concept(word) for word in tables["swaps"].split()),
        swap_for=frozenset(tables["swap_for"].split()),
        moves=frozenset(builder.concept(word) for word in tables["moves"].split()),
        move_from=frozenset(tables["move_from"].split()),
        move_to=frozenset(tables["move_to"].split()),
        than=tables["than"],
        agent=tables["agent"],
        irregular=builder.irregular,
        stem=stem,
    )


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
