"""Payment card numbers: digits of an issuer's length that pass Luhn's check (ISO/IEC 7812)."""

import re
from collections.abc import Iterator, Sequence

from memory.redaction.findings import Finding, SecretKind

# Digits that may be parted by single spaces or hyphens, neither within a word, a decimal, a longer code nor
# behind the plus of a telephone number.
_RUN = re.compile(r"(?<![\w.,/+-])\d{3,19}(?:[ \u00a0-]\d{2,19}){0,40}(?![\w/-])(?!\.\d)")
_GROUP = re.compile(r"\d+")
_LONG_ENOUGH = re.compile(r"\d[\d \u00a0-]{12}")  # for the fewest digits: cheap to look for, and seldom there
_FEWEST, _MOST = 14, 19
# How the digits of a card are parted on it, where they are.
_SHAPES = {(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (6, 13), (8, 8), (6, 10)}
_CODE = re.compile(
    r"(?i)\b(?:cvv2?|cvc2?|card (?:verification|security) (?:code|number))\W{0,3}(?:is |was )?(\d{3,4})\b"
)

# Issuers: the lowest and highest beginning of a number, and the lengths that it may have.
_ISSUERS: tuple[tuple[int, int, frozenset[int]], ...] = (
    (4, 4, frozenset({16, 19})),  # Visa: those of 13 digits are long out of use, and telephone numbers look like them
    (51, 55, frozenset({16})),  # Mastercard
    (2221, 2720, frozenset({16})),
    (34, 34, frozenset({15})),  # American Express
    (37, 37, frozenset({15})),
    (6011, 6011, frozenset({16, 19})),  # Discover
    (644, 659, frozenset({16, 19})),
    (300, 305, frozenset({14})),  # Diners Club
    (36, 36, frozenset({14})),
    (38, 39, frozenset({14})),
    (3528, 3589, frozenset({16, 19})),  # JCB
    (62, 62, frozenset({16, 17, 18, 19})),  # UnionPay
    (2200, 2204, frozenset({16})),  # Mir
    (6304, 6304, frozenset({16, 18, 19})),  # Maestro
    (6759, 6763, frozenset({16, 18, 19})),
)


def find_cards(text: str, *, fewest_groups: int = 1) -> Iterator[Finding]:
    """Find card numbers, written in one or in the groups that cards have, and their check codes.

    With `fewest_groups` only those are found that are written in as many groups.
    """
    if _LONG_ENOUGH.search(text):
        for run in _RUN.finditer(text):
            yield from _in_run(text, list(_GROUP.finditer(text, run.start(), run.end())), fewest_groups)
    lowered = text.lower()
    if "cv" in lowered or "card " in lowered:
        for code in _CODE.finditer(text):
            yield Finding(start=code.start(1), end=code.end(1), kind=SecretKind.CARD_NUMBER)


def is_card_number(digits: str) -> bool:
    """Tell whether digits are of an issuer, have its length and pass Luhn's check."""
    return _has_issuer(digits) and _passes_luhn(digits)


def _in_run(text: str, groups: Sequence[re.Match[str]], fewest: int) -> Iterator[Finding]:
    first = 0
    while first < len(groups):
        taken = _card_at(groups, first, fewest)
        if taken:
            start, end = groups[first].start(), groups[first + taken - 1].end()
            yield Finding(start=start, end=end, kind=SecretKind.CARD_NUMBER)
        first += taken or 1


def _card_at(groups: Sequence[re.Match[str]], first: int, fewest: int) -> int:
    """Return how many groups a card number takes that begins with this one; none if 0."""
    for count in range(5, fewest - 1, -1):
        taken = groups[first : first + count]
        shape = tuple(len(group[0]) for group in taken)
        if len(taken) == count and (count == 1 or shape in _SHAPES):
            digits = "".join(group[0] for group in taken)
            if _FEWEST <= len(digits) <= _MOST and is_card_number(digits):
                return count
    return 0


def _has_issuer(digits: str) -> bool:
    return any(
        len(digits) in lengths and low <= int(digits[: len(str(low))]) <= high for low, high, lengths in _ISSUERS
    )


def _passes_luhn(digits: str) -> bool:
    odd = sum(int(digit) for digit in digits[-1::-2])
    even = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return len(set(digits)) > 1 and (odd + even) % 10 == 0
