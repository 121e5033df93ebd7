"""What a search for secrets finds, and the markers that stand in its place."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.utils.crypto import salted_hmac


class SecretKind(StrEnum):
    """What a secret is; custom patterns have names of their own."""

    PRIVATE_KEY = "private key"
    KEY = "key"
    TOKEN = "token"  # noqa: S105
    PASSWORD = "password"  # noqa: S105
    CARD_NUMBER = "card number"


MARKER = re.compile(r"\[redacted: [a-z0-9][a-z0-9 _-]{0,39}(?: #[0-9a-f]{12})?\]")
_DIGITS = 12  # of a digest, in hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A secret from `start` up to `end` (characters of a text)."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """A text without its secrets, and how many of each kind it had."""

    text: str
    counts: Mapping[str, int]


def marker_of(kind: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[redacted: {kind}]"


def telling_marker_of(kind: str, *, secret: str) -> str:
    """Return what stands in the place of a secret in a name: one of its own for each secret, by a keyed digest."""
    digest = salted_hmac("memory.redaction.names", secret, algorithm="sha256").hexdigest()
    return f"[redacted: {kind} #{digest[:_DIGITS]}]"


def replace_findings(*, text: str, findings: Iterable[Finding], is_name: bool = False) -> Redacted:
    """Put a marker in the place of each finding; of findings that overlap, the first and longest names the kind.

    In a name the marker tells one secret from another.
    """
    parts: list[str] = []
    counts: Counter[str] = Counter()
    done = 0
    for finding in _united(findings):
        secret = text[finding.start : finding.end]
        marker = telling_marker_of(finding.kind, secret=secret) if is_name else marker_of(finding.kind)
        parts += [text[done : finding.start], marker]
        counts[finding.kind] += 1
        done = finding.end
    return Redacted(text="".join([*parts, text[done:]]), counts=dict(counts))


def _united(findings: Iterable[Finding]) -> list[Finding]:
    united: list[Finding] = []
    for finding in sorted(findings, key=lambda found: (found.start, -found.end)):
        if united and finding.start < united[-1].end:
            last = united[-1]
            united[-1] = Finding(start=last.start, end=max(last.end, finding.end), kind=last.kind)
        elif finding.start < finding.end:
            united.append(finding)
    return united
