"""Turn the word tables of a language into look-ups."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import lru_cache
from types import MappingProxyType, ModuleType

from memory.domain.matching import words_de, words_en
from memory.domain.matching.stems import stem_english, stem_german


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
TABLES: Mapping[str, ModuleType] = MappingProxyType({"en": words_en, "de": words_de})

# Names that are ordinary words too: of their kind only when capitalised.
AMBIGUOUS = frozenset(
    {"go", "fly", "render", "edge", "fall", "spring", "swift", "rust", "c", "may", "march", "bun", "flask", "rails"}
    | {"oracle", "slack", "teams", "sublime", "safari", "helix", "ruby", "nano"}
)

_MARKED = (
    ("NEGATORS", Mark.NEGATOR),
    ("NEGATOR_PHRASES", Mark.NEGATOR),
    ("HEDGES", Mark.HEDGE),
    ("LIMITERS", Mark.LIMITER),
    ("CONTRASTS", Mark.CONTRAST),
    ("LOCAL_NEGATORS", Mark.LOCAL_NEGATOR),
    ("HARMLESS", Mark.HARMLESS),
)


class _Builder:
    """Collect entries from one language's tables."""

    def __init__(self, *, tables: ModuleType, stem: Callable[[str], str]) -> None:
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
        return [row.split() for row in self.tables.IRREGULAR.replace("\n", " | ").split("|") if row.split()]

    def read_marks(self) -> None:
        for name, mark in _MARKED:
            for word in getattr(self.tables, name).split():
                self.add(word, Entry(word, mark=mark), surface=True)
        for word in self.tables.FUNCTION.split():
            self.add(word, Entry(word, mark=Mark.FUNCTION), surface=True)

    def read_concepts(self) -> None:
        for row in self.tables.SYNONYMS.strip().splitlines():
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
    for row in builder.tables.EXCLUSIVE.split():
        members = [builder.concept(word) for word in row.split("|")]
        for member in members:
            excluded.setdefault(member, set()).update(other for other in members if other != member)
    return {member: frozenset(others) for member, others in excluded.items()}


def _read_kinds(builder: _Builder) -> dict[str, int]:
    rows = builder.tables.KINDS.split()
    return {builder.concept(word): number for number, row in enumerate(rows) for word in row.split("|")}


def _read_units(builder: _Builder) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for row in builder.tables.UNITS.strip().splitlines():
        dimension, size, *names = row.split()
        for name in names:
            unit = Unit(dimension=dimension, size=float(size))
            units[name] = unit
            if len(name) > 3:
                units[builder.stem(name)] = unit
    return units


def _read_numbers(tables: ModuleType) -> dict[str, float]:
    numbers = {word: float(value) for value, word in enumerate(tables.NUMBERS.split())}
    rest = tables.OTHER_NUMBERS.split()
    return numbers | {word: float(value) for word, value in zip(rest[::2], rest[1::2], strict=True)}


def _read_separable(builder: _Builder) -> dict[str, tuple[tuple[str, str], ...]]:
    rows: dict[str, list[tuple[str, str]]] = {}
    for row in getattr(builder.tables, "SEPARABLE", "").strip().splitlines():
        whole, verb, particle = row.split()
        rows.setdefault(verb, []).append((particle, whole))
    return {verb: tuple(parts) for verb, parts in rows.items()}


@lru_cache(maxsize=2)
def load_lexicon(language: str) -> Lexicon:
    """Return the look-ups of "en" or "de"; KeyError for any other language."""
    tables, stem = TABLES[language], STEMMERS[language]
    builder = _Builder(tables=tables, stem=stem)
    builder.read_irregular()
    builder.read_marks()
    builder.read_concepts()
    pairs = [tuple(row.split()) for row in tables.OPPOSED_PREPOSITIONS.strip().splitlines()]
    return Lexicon(
        language=language,
        surfaces=builder.surfaces,
        words=builder.words,
        phrases={first: tuple(rows) for first, rows in builder.phrases.items()},
        separable=_read_separable(builder),
        verbs=frozenset(builder.concept(word) for word in tables.VERBS.split()),
        light=frozenset(builder.concept(word) for word in tables.LIGHT.split()),
        exclusive=_read_exclusive(builder),
        kinds=_read_kinds(builder),
        units=_read_units(builder),
        numbers=_read_numbers(tables),
        ordinals={word: float(value) for value, word in enumerate(tables.ORDINALS.split(), start=1)},
        prepositions=frozenset(tables.PREPOSITIONS.split()),
        opposed=frozenset({(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}),
        passive=frozenset(tables.PASSIVE.split()),
        splitters=frozenset(tables.SPLITTERS.split()),
        linkers=frozenset(tables.LINKERS.split()),
        times=frozenset(builder.concept(word) for word in tables.TIMES.split()),
        first_person=frozenset(tables.FIRST_PERSON.split()),
        first_person_plural=frozenset(tables.FIRST_PERSON_PLURAL.split()),
        clock_words=frozenset(tables.CLOCK_WORDS.split()),
        auxiliaries=frozenset(tables.AUXILIARIES.split()),
        swaps=frozenset(builder.concept(word) for word in tables.SWAPS.split()),
        swap_for=frozenset(tables.SWAP_FOR.split()),
        moves=frozenset(builder.concept(word) for word in tables.MOVES.split()),
        move_from=frozenset(tables.MOVE_FROM.split()),
        move_to=frozenset(tables.MOVE_TO.split()),
        than=tables.THAN,
        agent=tables.AGENT,
        irregular=builder.irregular,
        stem=stem,
    )
