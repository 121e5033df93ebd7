"""Find keys and tokens of known services by their patterns, in the parts of a text where one could be."""

import re
from collections.abc import Iterator, Sequence

from memory.redaction.findings import Finding
from memory.redaction.service_patterns import LONG, SHORT, ServicePattern, is_jwt

_BEFORE, _AFTER = 48, 8  # characters around a long run of them that its name and its quotes take at most
_LONG_RUN = re.compile(r"[\w+/=-]{20,}")
_TAIL = re.compile(r"(?:[\w=+/-]|\.(?=[\w-]))*")  # of a token that is longer than its pattern asks
_LEAST_GROUP = 8


def find_known_shapes(text: str) -> Iterator[Finding]:
    """Find what looks like the keys and tokens of known services."""
    if "AKC" in text or "AP" in text or "xox" in text or "hooks.slack.com" in text:
        yield from _find(text, SHORT, 0, len(text))
    for start, end in _neighbourhoods(text):
        yield from _find(text, LONG, start, end)


def _neighbourhoods(text: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches around long runs of characters, those that overlap as one."""
    start = end = -1
    for run in _LONG_RUN.finditer(text):
        if run.start() - _BEFORE <= end:
            end = run.end() + _AFTER
            continue
        if end >= 0:
            yield start, end
        start, end = max(run.start() - _BEFORE, 0), run.end() + _AFTER
    if end >= 0:
        yield start, end


def _find(text: str, patterns: Sequence[ServicePattern], start: int, end: int) -> Iterator[Finding]:
    for known in patterns:
        done = start
        for found in known.pattern.finditer(text, start, end):
            if found.start() >= done and (not known.is_jwt or is_jwt(found[0])):
                low, done = _span_of(found)
                yield Finding(start=low, end=done, kind=known.kind)


def _span_of(found: re.Match[str]) -> tuple[int, int]:
    """Return the widest group, which is the secret where its name is part of the pattern; else the match, to its end.

    White space and quotes around it stay.
    """
    groups = [found.span(number) for number in range(1, found.re.groups + 1)]
    low, high = max(groups, key=lambda span: span[1] - span[0], default=found.span())
    if high - low < _LEAST_GROUP:
        low, high = found.span()
    matched = found.string[low:high]
    low += len(matched) - len(matched.lstrip(" \t\r\n\"'"))
    tail = _TAIL.match(found.string, low + len(matched.strip(" \t\r\n\"'")))
    return low, tail.end() if tail else high
