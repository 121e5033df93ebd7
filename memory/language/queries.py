"""What a query says of itself: whether it sets a task, and whether it is about somebody's own matters."""

import re
from functools import cache

from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.domain.matching.stems import stem_english, stem_german
from memory.domain.sentences import list_words
from memory.language.cues import common_words, dull_words, has_cue, word_list
from memory.language.readings import content_stems

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
    return not {lowered, bare} & _EVERYDAY


def telling_stems(text: str, language: str) -> frozenset[str]:
    """Return the stems of what says something of a text: none of verbs, of everyday words and of short numbers."""
    return frozenset(
        one for one in content_stems(text, language=language) if is_telling(one) and one not in _idle_stems(language)
    )


@cache
def _idle_stems(language: str) -> frozenset[str]:
    """Return the stems of all words that tell nothing: lists hold whole words."""
    stem = stem_german if language == "de" else stem_english
    return frozenset(map(stem, dull_words(language) | _EVERYDAY))


_EVERYDAY = common_words() | frozenset(word_list("task_words")) | ENGLISH_STOPS | GERMAN_STOPS
