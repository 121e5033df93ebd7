"""The shipped words and turns of speech, as patterns (cues.toml, common_words.toml)."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from memory.domain.lexicon import ENGLISH_PAST, ENGLISH_STOPS, ENGLISH_VERBS, GERMAN_STOPS

_HERE = Path(__file__).parent
_SPEAKER = "(?:i|we)"


def has_cue(name: str, text: str, *, language: str = "") -> bool:
    """Tell whether a text holds a cue, of one language or of either; KeyError for a name that the list lacks."""
    return _cue(name, language).search(text) is not None


@cache
def _cue(name: str, language: str) -> re.Pattern[str]:
    entry = _table("cues.toml")[name]
    meant = entry[language] if language else [*entry["en"], *entry["de"]]
    return re.compile("|".join(one.replace("{I}", _SPEAKER) for one in meant) or r"(?!)", re.IGNORECASE)


@cache
def dull_words(language: str) -> frozenset[str]:
    """Return the words of a language that say nothing by being shared."""
    table = _table("common_words.toml")
    common = frozenset((table["en"] + table["de"]).split())
    return common | (GERMAN_STOPS if language == "de" else ENGLISH_STOPS | ENGLISH_VERBS | ENGLISH_PAST)


@cache
def common_words() -> frozenset[str]:
    """Return the commonest words of both languages."""
    table = _table("common_words.toml")
    return frozenset((table["en"] + table["de"]).split())


@cache
def word_list(name: str) -> tuple[str, ...]:
    """Return a closed list of words by name (word_lists.toml); KeyError for a name that there is not."""
    return tuple(str(_table("word_lists.toml")[name]).split())


@cache
def _table(name: str) -> Any:
    with (_HERE / name).open("rb") as file:
        return tomllib.load(file)
