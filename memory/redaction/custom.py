"""Patterns of a place's own secrets, from its settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory.redaction.findings import Finding

_NAME = re.compile(r"[a-z0-9][a-z0-9 _-]{0,39}")


class BadPattern(ValueError):
    """A pattern that cannot be used; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomPattern:
    """A pattern and the kind that its marker names. If it has a group, the first one is the secret."""

    kind: str
    pattern: re.Pattern[str]


def compile_patterns(raw: object) -> tuple[CustomPattern, ...]:
    """Compile patterns by name, as a setting has them; raise BadPattern."""
    if not isinstance(raw, Mapping):
        raise BadPattern("an object of names and patterns is expected")
    return tuple(_compile(str(name), pattern) for name, pattern in raw.items())


def find_custom(*, text: str, patterns: Sequence[CustomPattern]) -> Iterator[Finding]:
    """Find what the patterns match; matches of no length are nothing."""
    for custom in patterns:
        for found in custom.pattern.finditer(text):
            low, high = found.span(1) if custom.pattern.groups and found[1] else found.span()
            yield Finding(start=low, end=high, kind=custom.kind)


def _compile(name: str, pattern: object) -> CustomPattern:
    if not _NAME.fullmatch(name):
        raise BadPattern(f"{name!r}: a name of up to 40 small letters, digits, spaces, - and _ is expected")
    if not isinstance(pattern, str) or not pattern:
        raise BadPattern(f"{name!r}: a pattern is expected")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise BadPattern(f"{name!r} is no pattern: {error}") from None
    if compiled.fullmatch(""):
        raise BadPattern(f"{name!r} matches the empty text")
    return CustomPattern(kind=name, pattern=compiled)
