"""Take secrets out of a text."""

from collections import Counter
from collections.abc import Iterator, Sequence

from django.conf import settings

from memory.redaction.assignments import find_assigned
from memory.redaction.blocks import find_blocks
from memory.redaction.cards import find_cards
from memory.redaction.custom import CustomPattern, find_custom
from memory.redaction.detector import find_known_shapes
from memory.redaction.findings import MARKER, Finding, Redacted, replace_findings
from memory.redaction.tokens import find_random, find_tokens

_SHORTEST = 4  # characters; no secret is shorter
_GROUPS_OF_A_NAME = 4  # of digits: 16 and more, which no telephone number has


def redact(text: str, *, is_name: bool = False, patterns: Sequence[CustomPattern] | None = None) -> Redacted:
    """Replace each secret by a marker that names its kind; a text that was redacted stays as it is.

    A name (of a user, a session, a turn, a key for doing something once) may be random, or all digits, and yet no
    secret: what is random alone stays in it, and so does a number that is not written the way that cards have theirs.
    Names that differ still do afterwards. `patterns` are this place's own; those of the settings if left out.
    """
    own = settings.ENGRAM_REDACTION_PATTERNS if patterns is None else patterns
    found = _redact_once(text, own, is_name)
    if not found.counts:  # as nearly always
        return found
    counts: Counter[str] = Counter()
    while found.counts:  # a marker may be the edge that another secret lacked; each round leaves less to look at
        text = found.text
        counts.update(found.counts)
        found = _redact_once(text, own, is_name)
    return Redacted(text=text, counts=dict(counts))


def has_known_secret(text: str) -> bool:
    """Tell whether a text holds a key or token of a known shape; what is merely random is none."""
    return any(True for find in (find_known_shapes, find_tokens) for _ in find(text))


def _redact_once(text: str, patterns: Sequence[CustomPattern], is_name: bool) -> Redacted:
    findings = [
        Finding(start=start + finding.start, end=start + finding.end, kind=finding.kind)
        for start, end in _between_markers(text)
        if end - start >= _SHORTEST
        for finding in _find(text[start:end], patterns, is_name)
    ]
    return (
        replace_findings(text=text, findings=findings, is_name=is_name) if findings else Redacted(text=text, counts={})
    )


def _find(text: str, patterns: Sequence[CustomPattern], is_name: bool) -> Iterator[Finding]:
    yield from find_blocks(text)
    yield from find_known_shapes(text)
    yield from find_tokens(text)
    if not is_name:
        yield from find_random(text)
    yield from find_assigned(text)
    yield from find_cards(text, fewest_groups=_GROUPS_OF_A_NAME if is_name else 1)
    yield from find_custom(text=text, patterns=patterns)


def _between_markers(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for marker in MARKER.finditer(text):
        yield start, marker.start()
        start = marker.end()
    yield start, len(text)
