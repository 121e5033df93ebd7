"""Take secrets out of a text (Redaction).

`redact` runs all detectors and puts a marker in the place of each secret; `redact_event` does so for log events.
Below are the detectors of keys and tokens, by the patterns of known services, by prefixes and by randomness.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings

from memory.redaction.detectors import (
    MARKER,
    CustomPattern,
    Finding,
    Redacted,
    SecretKind,
    find_assigned,
    find_blocks,
    find_cards,
    find_custom,
    is_template,
    replace_findings,
)
from memory.redaction.service_patterns import LONG, SHORT, ServicePattern, entropy_of, is_jwt

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
    return any(True for find in (find_service_keys, find_tokens) for _ in find(text))


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
    yield from find_service_keys(text)
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


_REQUEST = "request"  # the method and address of a call, as the middleware names it
_OF_THE_LINE = {"level", "logger", "timestamp"}  # what code alone says, and the clock


def redact_event(logger: Any, method: str, event: Any) -> Any:
    """Take secrets out of every text of a log event; the last step before it is written (structlog's signature).

    Of a call's address the query goes altogether: it has people's words in it, in an encoding that hides them.
    """
    if isinstance(event.get(_REQUEST), str):
        event[_REQUEST] = event[_REQUEST].partition("?")[0]
    return {
        name: redact(value).text if isinstance(value, str) and name not in _OF_THE_LINE else value
        for name, value in event.items()
    }


_BEFORE, _AFTER = 48, 8  # characters around a long run of them that its name and its quotes take at most
_LONG_RUN = re.compile(r"[\w+/=-]{20,}")
_TAIL = re.compile(r"(?:[\w=+/-]|\.(?=[\w-]))*")  # of a token that is longer than its pattern asks
_LEAST_GROUP = 8


def find_service_keys(text: str) -> Iterator[Finding]:
    """Find what looks like the keys and tokens of known services."""
    if "AKC" in text or "AP" in text or "xox" in text or "hooks.slack.com" in text:
        yield from _match_patterns(text, SHORT, 0, len(text))
    for start, end in _neighbourhoods(text):
        yield from _match_patterns(text, LONG, start, end)


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


def _match_patterns(text: str, patterns: Sequence[ServicePattern], start: int, end: int) -> Iterator[Finding]:
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


# Newer than the services' patterns, or ours.
_PREFIXED = re.compile(
    r"(?<![\w-])(?:"
    r"(?P<key>sk-(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}|(?:sk|rk)_(?:test|live)_\w{16,}|AIza[\w-]{35}|dop_v1_[0-9a-f]{64})"
    r"|(?P<token>github_pat_\w{22,}|hf_[A-Za-z]{30,}|npm_[A-Za-z0-9]{36}|xapp-\d-[\w-]{20,}|xox[a-z](?:\.xox[a-z])?-[\w-]{20,}"
    r"|ya29\.[\w-]{20,}|whsec_[A-Za-z0-9+/=]{20,}|engram_[\w-]{43})"
    r")"
)

_PREFIXES = (
    "sk-",
    "sk_",
    "rk_",
    "AIza",
    "dop_v1_",
    "github_pat_",
    "hf_",
    "npm_",
    "xapp-",
    "xox",
    "ya29.",
    "whsec_",
    "engram_",
)

_HEADER = re.compile(
    r"(?i)(?<!\w)(?:(?:bearer|basic)[ \t]{1,4}"
    r"|authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:token|apikey|digest)[ \t]{1,4})"
    r"([\w.~+/=-]{12,})"
)
_HEADER_WORDS = ("bearer", "basic", "authorization")

# A port is no password; an @ belongs to the password where another follows in the same address.
_ADDRESS = re.compile(
    r"://[^\s:/@\"'<>]{0,100}:(?!\d{1,5}(?:[/?#\s]|$))((?:[^\s/@\"'<>]|@(?=[^\s/@\"'<>]{1,200}@)){1,256})@(?=[\w\[.-])"
)
_RANDOM = re.compile(r"(?<![\w+/=@.%-])[A-Za-z0-9+/_-]{32,100}={0,2}(?![\w+/%-])")
_LEAST_ENTROPY = 4.5
_LEAST_DIGITS = 3
_PUBLIC = ("AAAA",)  # how the public keys of ssh begin
_HEX = re.compile(r"[0-9a-fA-F-]+")
_DIGEST = re.compile(r"(?i)(?:sha\d{1,3}|md5|integrity|blake\w*)\W{1,3}$")
_WORDY = re.compile(r"[a-z]{6,}|[A-Z]{6,}|[_/-].*[_/-].*[_/-].*[_/-]")


def find_tokens(text: str) -> Iterator[Finding]:
    """Find tokens by their prefix, behind the name of a header, and passwords within an address."""
    if any(map(text.__contains__, _PREFIXES)):
        for found in _PREFIXED.finditer(text):
            yield Finding(start=found.start(), end=found.end(), kind=SecretKind(found.lastgroup or SecretKind.TOKEN))
    if "://" in text:
        yield from _first_groups(_ADDRESS, text, SecretKind.PASSWORD)
    yield from _headers(text)


def _headers(text: str) -> Iterator[Finding]:
    lowered = text.lower()
    if any(map(lowered.__contains__, _HEADER_WORDS)):
        for finding in _first_groups(_HEADER, text, SecretKind.TOKEN):
            if any(letter.isdigit() for letter in text[finding.start : finding.end]):
                yield finding


def _first_groups(pattern: re.Pattern[str], text: str, kind: SecretKind) -> Iterator[Finding]:
    for found in pattern.finditer(text):
        if not is_template(found[1]):
            yield Finding(start=found.start(1), end=found.end(1), kind=kind)


def find_random(text: str) -> Iterator[Finding]:
    """Find what no one would type: mixed letters and digits of high entropy that are neither a hash nor a path."""
    for found in _RANDOM.finditer(text):
        if _is_random(found[0]) and not _is_public(text, found):
            yield Finding(start=found.start(), end=found.end(), kind=SecretKind.KEY)


def _is_random(value: str) -> bool:
    if sum(letter.isdigit() for letter in value) < _LEAST_DIGITS or value.lower() == value or value.upper() == value:
        return False
    if _HEX.fullmatch(value) or _WORDY.search(value):
        return False
    return entropy_of(value) >= _LEAST_ENTROPY


def _is_public(text: str, found: re.Match[str]) -> bool:
    before = text[max(found.start() - 200, 0) : found.start()]
    word = before.split()[-1] if before and not before[-1].isspace() else ""
    return "://" in word or found[0].startswith(_PUBLIC) or bool(_DIGEST.search(before[-16:]))
