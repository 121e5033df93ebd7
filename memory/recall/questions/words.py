"""Which words of a question say something, and whether it sets a task or is about somebody's own matters (B16)."""

import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from memory.language.sentences import list_words

_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]{0,2000}[\"“”»]|`[^`]{0,2000}`")
_FEWEST_DIGITS = 3  # of a number that says something by being shared


def sets_task(query: str) -> bool:
    """Tell whether a query is a piece of work to be done ("Write a haiku", "Übersetze …"), not a question.

    To be told of one's own matters ("Tell me who my manager is") is to ask.
    """
    asked = query.strip()
    if not has_cue("task", asked):
        return False
    return not (asks_of_own(asked) and (asked.endswith("?") or has_cue("look_up", asked)))


def asks_of_own(query: str) -> bool:
    """Tell whether a query is about somebody's own matters: theirs by a pronoun, and not what anybody might ask."""
    return has_cue("own_matters", _QUOTED.sub(" ", query))


def names_something(query: str) -> bool:
    """Tell whether a query is about something by itself: "yes please" and "ok, go on" are about nothing."""
    return asks_of_own(query) or count_telling(query) > 0


def count_telling(query: str) -> int:
    """Count the different words of a query that say something of what is meant."""
    return len({word.lower() for word in list_words(query) if is_telling(word)})


def is_telling(word: str) -> bool:
    """Tell whether a word says something of what is meant: no word of everyday, none of tasks, no short number."""
    lowered = word.lower()
    if lowered.isdigit():
        return len(lowered) >= _FEWEST_DIGITS
    bare = lowered.replace("’", "'").partition("'")[0]  # "who'd", "what's": as much as without their endings
    return not {lowered, bare} & _everyday()


def telling_stems(text: str, language: str) -> frozenset[str]:
    """Return the stems of what says something of a text: none of verbs, of everyday words and of short numbers."""
    german = language == "de"
    stem, idle = (stem_german if german else stem_english), _idle_words(language)
    words = (word.lower().removesuffix("'s") for word in list_words(text))
    stems = {stem(word) for word in words if len(word) > 1 and word not in idle}
    return frozenset(one for one in stems - _idle_stems(language) if is_telling(one))


def names_any(*, query: str, names: Collection[str]) -> bool:
    """Tell whether one of the names stands in a query, word for word, in any case; "Mara's" names Mara."""
    asked, stops = _phrase(query), word_list("stops_en") | word_list("stops_de")
    return any(_phrase(name) in asked for name in names if not stops.issuperset(_phrase(name).split()))


def _phrase(text: str) -> str:
    return f" {' '.join(_NAME_WORD.findall(text.casefold()))} "


_NAME_WORD = re.compile(r"[^\W_]+")


@cache
def _everyday() -> frozenset[str]:
    return word_list("common") | word_list("task_words") | word_list("stops_en") | word_list("stops_de")


@cache
def _idle_words(language: str) -> frozenset[str]:
    """Return the words of a language that say nothing by being shared."""
    return word_list("common") | (
        word_list("stops_de") if language == "de" else word_list("stops_en") | word_list("verbs_en")
    )


@cache
def _idle_stems(language: str) -> frozenset[str]:
    """Return the stems of all words that tell nothing: lists hold whole words."""
    return frozenset(map(stem_german if language == "de" else stem_english, _idle_words(language) | _everyday()))


_VOWEL = re.compile("[aeiouy]")


def stem_english(word: str) -> str:
    """Strip plural, -ing, -ed, -ly and -ment from a lower-case English word."""
    if len(word) <= 3 or not word.isalpha():
        return word[:-2] if word.endswith("'s") else word
    return _finish(_strip_suffix(_strip_plural(word)))


def _strip_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _strip_suffix(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    for ending, kept in (("ing", 2), ("ed", 2), ("ment", 4), ("ly", 3)):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= kept and _VOWEL.search(rest) and not rest.endswith("e"):
            return rest
    return word


def _finish(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 2 else word


_SEPARABLE_PARTICIPLE = re.compile(
    "^(zusammen|ein|aus|an|auf|ab|um|zu|mit|vor|nach|weiter|los|fest|weg|her|hin)ge(?=.{3,}t$|.{3,}en$)"
)
_UMLAUTS = str.maketrans({"ä": "a", "ö": "o", "ü": "u"})
_GERMAN_ENDINGS = (
    "ungen", "etest", "eten", "ete", "ung", "ern", "est", "et", "en", "er", "em", "es", "te", "st", "enst",
)  # fmt: skip


def stem_german(word: str) -> str:
    """Fold umlauts and strip inflection and the participle's ge from a lower-case German word."""
    word = word.replace("ß", "ss").translate(_UMLAUTS)
    if word in _STRONG:
        return _STRONG[word]
    if len(word) <= 3 or not word.isalpha():
        return word
    word = _SEPARABLE_PARTICIPLE.sub(r"\1", word)
    if word.startswith("ge") and len(word) > 6 and word.endswith(("t", "en")):
        word = word[2:]
    for ending in _GERMAN_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("t") and len(word) > 4 else word  # arbeit-en, arbeitet


# Verbs whose stem changes its vowel for he and she: so that "misst" and "messen" are one.
_STRONG = {
    "misst": "mess", "isst": "ess", "liest": "les", "nimmt": "nehm", "gibt": "geb", "spricht": "sprech",
    "sieht": "seh", "trifft": "treff", "hilft": "helf", "vergisst": "vergess", "fahrt": "fahr", "lauft": "lauf",
    "schlaft": "schlaf", "tragt": "trag", "bricht": "brech", "wirft": "werf",
}  # fmt: skip


def has_cue(name: str, text: str) -> bool:
    """Tell whether a text holds a cue of either language; KeyError for a name that words.toml lacks."""
    return _cue(name).search(text) is not None


@cache
def _cue(name: str) -> re.Pattern[str]:
    entry = _table()[name]
    return re.compile("|".join([*entry["en"], *entry["de"]]), re.IGNORECASE)


def wordword_list(name: str) -> frozenset[str]:
    """Return a closed list of words by name; KeyError for a name that words.toml lacks."""
    return word_list(name)


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(_table()["lists"][name].split())


@cache
def _table() -> Mapping[str, Any]:
    with (Path(__file__).parent / "words.toml").open("rb") as file:
        return tomllib.load(file)
