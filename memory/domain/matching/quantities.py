"""Read numbers with their units out of tokens, and compare them role by role."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from memory.domain.matching.lexicon import Lexicon, Mark, Unit
from memory.domain.matching.tokens import Token

CLOCK = "clock"
HALF_DAY = 720
NEAR = 1e-9  # relative difference below which two amounts are one
CURRENCIES = frozenset("$€£")
ARTICLES = frozenset({"a", "an", "ein", "eine", "einen", "einem", "einer", "eines"})
AM_PM = {"am": 0, "a.m": 0, "pm": HALF_DAY, "p.m": HALF_DAY}


class Quantity(NamedTuple):
    """An amount in its role: a dimension ("time"), the counted noun or the named thing before it ("python")."""

    role: str
    value: float | str
    vague: bool = False  # a time of day without am or pm


def read_quantities(tokens: Sequence[Token], *, lexicon: Lexicon) -> tuple[Quantity, ...]:
    """Return the quantities of a text in order."""
    found = []
    tens = 0.0
    for position, token in enumerate(tokens):
        value = _read_value(token, lexicon=lexicon)
        if _is_tens(value) and _read_unit(tokens, position + 1, lexicon=lexicon):
            tens = float(value or 0)  # twenty-four
        elif value is not None and not _is_pronoun(tokens, position):
            value, tens = (value + tens, 0.0) if isinstance(value, float) else (value, 0.0)
            found.append(_place(tokens, position, value=value, lexicon=lexicon))
        elif token.lower in ARTICLES and (unit := _read_unit_of(_at(tokens, position + 1), lexicon=lexicon)):
            found.append(Quantity(unit.dimension, unit.size))  # within a day
    return tuple(found)


def _read_value(token: Token, *, lexicon: Lexicon) -> float | str | None:
    text = token.surface
    if not text[0].isdigit():
        return lexicon.numbers.get(token.lower)
    if ":" in text or not text.replace(".", "").replace(",", "").isdecimal():
        return text  # a time of day, a host with its port, or digits that are no numeral: ², ①
    if "," in text and (lexicon.language == "de" or len(text.split(",")[-1]) != 3):
        text = text.replace(".", "").replace(",", ".")
    text = text.replace(",", "")
    if text.count(".") > 1:
        return text
    value = float(text)
    return value if math.isfinite(value) else text


def _read_unit_of(token: Token | None, *, lexicon: Lexicon) -> Unit | None:
    if token is None or token.entry.mark is not Mark.WORD or len(token.lower) <= 2:
        return None
    unit = lexicon.units.get(token.lower) or lexicon.units.get(lexicon.stem(token.lower))
    return unit if unit and not unit.dimension.startswith("money") else None


def _is_tens(value: float | str | None) -> bool:
    return isinstance(value, float) and 20 <= value < 100 and value % 10 == 0


def _read_unit(tokens: Sequence[Token], position: int, *, lexicon: Lexicon) -> bool:
    """Say whether a word from one to nine stands at a position."""
    following = _at(tokens, position)
    return following is not None and 1 <= lexicon.numbers.get(following.lower, 0) <= 9


def _is_pronoun(tokens: Sequence[Token], position: int) -> bool:
    following = _at(tokens, position + 1)
    return tokens[position].lower == "one" and (following is None or following.entry.mark is not Mark.WORD)


def _at(tokens: Sequence[Token], position: int) -> Token | None:
    return tokens[position] if 0 <= position < len(tokens) else None


def _place(tokens: Sequence[Token], position: int, *, value: float | str, lexicon: Lexicon) -> Quantity:
    before, after = _at(tokens, position - 1), _at(tokens, position + 1)
    clock = _read_clock(value, before=before, after=after, lexicon=lexicon)
    if clock is not None:
        return clock
    if isinstance(value, str):
        return Quantity(_named(before), value)
    return _read_amount(value, tokens=tokens, position=position, lexicon=lexicon)


def _read_amount(value: float, *, tokens: Sequence[Token], position: int, lexicon: Lexicon) -> Quantity:
    before, after = _at(tokens, position - 1), _at(tokens, position + 1)
    if before and before.surface in CURRENCIES:
        return Quantity("money", f"{value} {before.surface}")
    unit = after and (lexicon.units.get(after.lower) or lexicon.units.get(lexicon.stem(after.lower)))
    if unit:
        if unit.dimension.startswith("money"):
            return Quantity("money", f"{value} {unit.dimension}")
        return Quantity(unit.dimension, value * unit.size)
    if after and after.entry.mark is Mark.WORD and after.entry.concept:
        return Quantity(after.entry.concept, value)
    return Quantity(_named(before), value)


def _named(before: Token | None) -> str:
    return before.entry.concept if before and before.entry.mark is Mark.WORD else ""


def _read_clock(value: float | str, *, before: Token | None, after: Token | None, lexicon: Lexicon) -> Quantity | None:
    half = AM_PM.get(after.lower) if after else None
    if isinstance(value, str):
        return _clock_of(value, half=half) if _is_time_of_day(value) else None
    said = half is not None or (after is not None and after.lower in lexicon.clock_words)
    bare = before is not None and before.lower in lexicon.clock_words and not _counts(after, lexicon=lexicon)
    if not (said or bare) or value != int(value) or value > 24:
        return None
    return _clock_of(f"{int(value)}:00", half=half)


def _is_time_of_day(text: str) -> bool:
    """Tell "12:30" from "99:99" and from the port behind a host."""
    hours, colon, minutes = text.partition(":")
    if not colon or not all(part.isdecimal() and len(part) <= 2 for part in (hours, minutes)):
        return False
    return int(minutes) < 60 and int(hours) * 60 + int(minutes) <= 2 * HALF_DAY


def _counts(after: Token | None, *, lexicon: Lexicon) -> bool:
    if after is None:
        return False
    return (after.entry.mark is Mark.WORD and bool(after.entry.concept)) or after.lower in lexicon.units


def _clock_of(text: str, *, half: int | None) -> Quantity:
    hours, minutes = (int(part) for part in text.split(":"))
    total = hours * 60 + minutes
    if half is not None:
        return Quantity(CLOCK, float(total % HALF_DAY + half))
    return Quantity(CLOCK, float(total), total < 2 * HALF_DAY and total <= HALF_DAY)


def have_other_numbers(left: Sequence[Quantity], right: Sequence[Quantity], *, is_strict: bool = False) -> bool:
    """Say whether the texts put different amounts into one role; strictly, one without a role clashes with none."""
    if not left or not right:
        return False
    only_left = [one for one in left if not any(_same(one, other) for other in right)]
    only_right = [one for one in right if not any(_same(one, other) for other in left)]
    return any(_clash(one, other, is_strict=is_strict) for one in only_left for other in only_right)


def _same(one: Quantity, other: Quantity) -> bool:
    if one.role == other.role == CLOCK and (one.vague or other.vague):
        return float(one.value) % HALF_DAY == float(other.value) % HALF_DAY
    if isinstance(one.value, str) or isinstance(other.value, str):
        return one.value == other.value
    return abs(one.value - other.value) <= NEAR * max(1.0, abs(one.value))


def _clash(one: Quantity, other: Quantity, *, is_strict: bool) -> bool:
    if is_strict:
        return one.role == other.role != ""
    return one.role == other.role or not one.role or not other.role
