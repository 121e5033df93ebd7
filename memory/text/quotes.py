"""Statements that quote: a person's own words behind their name, in no language turned round or rewritten."""

import re

from memory.text.names import NOBODY
from memory.text.words import (
    FIRST_PERSON,
    GERMAN_FUNCTION_WORDS,
    POINTING,
    RELATIVES,
    SECOND_PERSON,
    count_words,
    list_names,
    list_words,
)

_FEWEST_WORDS = 3  # of a sentence that stands by itself
_APOSTROPHE = "ʼ"  # U+02BC, a letter: no reader of quotation marks takes it for one


def quote(person: str, sentence: str) -> str:
    """Return a sentence as the statement that its speaker made: `Mara: “Fridays are for my own comic.”`.

    One that stands by itself is returned as it was said: "Wout is coeliac."
    """
    return _clean(sentence) if stands_alone(sentence) else quote_words(person, sentence)


def quote_words(person: str, sentence: str) -> str:
    """Return a sentence in quotation marks behind its speaker's name; the marks are the only ones in the statement."""
    name = _single_marks(" ".join(person.split())) or NOBODY
    return f"{name}: “{_single_marks(_clean(sentence))}”"


def unquote(statement: str) -> tuple[str, str] | None:
    """Return the person and the sentence of a statement that `quote_words` made, None for any other.

    Inner quotation marks come back as double ones, apostrophes as straight ones.
    """
    person, opening, rest = statement.strip().partition(": “")
    if not (opening and person and rest.endswith("”")) or "“" in person or "”" in person:
        return None
    sentence = rest[:-1]
    return None if "“" in sentence or "”" in sentence else (_double_marks(person), _double_marks(sentence))


def stands_alone(sentence: str) -> bool:
    """Tell whether a sentence says whom or what it speaks of, without its speaker; in doubt it does not.

    It has three words or more, speaks of no "I" and to no "you", does not begin with a word for something said before
    or for somebody's relative, and holds a name.
    """
    words = list_words(sentence)
    if count_words(sentence) < _FEWEST_WORDS or not words or is_first_person(sentence) or _is_addressed(sentence):
        return False
    first = words[0].casefold().partition("'")[0]
    if first in POINTING or first in RELATIVES or first in GERMAN_FUNCTION_WORDS:  # any German noun has a capital
        return False
    return bool(list_names(sentence))


def is_first_person(text: str) -> bool:
    """Tell whether a text has a word by which somebody speaks of themselves, in any language of the tables."""
    return _has_any(text, FIRST_PERSON)


def _is_addressed(text: str) -> bool:
    """Tell whether a text has a word by which somebody is spoken to."""
    return _has_any(text, SECOND_PERSON)


def _has_any(text: str, table: frozenset[str]) -> bool:
    words = [word.casefold() for word in list_words(text)]
    return any(word in table or word.partition("'")[0] in table for word in words)


def _clean(sentence: str) -> str:
    return " ".join(sentence.split()).rstrip(" ,;:")


_GERMAN_MARKS = re.compile("„([^„“”]*)[“”]")
_OPENS = re.compile(r"(?:(?<=^)|(?<=[\s(\[{‘“/-]))\"(?=\S)")


def _single_marks(text: str) -> str:
    """Turn inner quotation marks into single ones, and apostrophes into a letter."""
    plain = text.translate({ord("'"): _APOSTROPHE, ord("’"): _APOSTROPHE})
    plain = _OPENS.sub("‘", _GERMAN_MARKS.sub(r"‘\1’", plain))
    return plain.translate({ord("“"): "‘", ord("„"): "‘", ord("”"): "’", ord('"'): "’"})


def _double_marks(text: str) -> str:
    return text.translate({ord("‘"): "“", ord("’"): "”", ord(_APOSTROPHE): "'"})
