"""Private keys that span lines: PEM and PGP blocks, PuTTY's files, age's secret keys."""

import re
from collections.abc import Iterator

from memory.redaction.findings import Finding, SecretKind

_PEM_BEGINS = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_PEM_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|---- END SSH2 ENCRYPTED PRIVATE KEY ----")
_PUTTY_BEGINS = re.compile(r"PuTTY-User-Key-File-\d")
_PUTTY_ENDS = re.compile(r"Private-MAC:\s{0,4}[0-9a-fA-F]+")
_AGE = re.compile(r"AGE-SECRET-KEY-1[0-9A-Z]{40,80}")
# What follows the first line of a block without an end: headers, then lines of base64, however they are broken.
_BREAK = r"(?:\s|\\[nr]|[>|#*\"',+])*"
_HEADLESS = re.compile(
    rf"(?:{_BREAK}[A-Z][A-Za-z-]{{2,20}}: [^\n\\]{{1,80}}(?=\n|\\n|$))*"
    rf"(?:{_BREAK}[A-Za-z0-9+/]{{16,}}={{0,2}})*(?:{_BREAK}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)


def find_blocks(text: str) -> Iterator[Finding]:
    """Find private keys with all their lines; one that is cut off goes as far as its base64 does."""
    if "PRIVATE KEY" in text:
        yield from _between(text, _PEM_BEGINS, _PEM_ENDS)
    if "PuTTY-User-Key-File-" in text:
        yield from _between(text, _PUTTY_BEGINS, _PUTTY_ENDS)
    if "AGE-SECRET-KEY-1" in text:
        for found in _AGE.finditer(text):
            yield Finding(start=found.start(), end=found.end(), kind=SecretKind.PRIVATE_KEY)


def _between(text: str, begins: re.Pattern[str], ends: re.Pattern[str]) -> Iterator[Finding]:
    """Yield what stands between begins and ends; a block that begins before the last one ended had no end."""
    starts = list(begins.finditer(text))
    finishes = [found.end() for found in ends.finditer(text)]
    for number, start in enumerate(starts):
        limit = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        while finishes and finishes[0] <= start.end():
            finishes.pop(0)
        closed = finishes[0] if finishes and finishes[0] <= limit else None
        end = closed or _headless_end(text, start.end(), limit)
        yield Finding(start=start.start(), end=end, kind=SecretKind.PRIVATE_KEY)


def _headless_end(text: str, start: int, limit: int) -> int:
    found = _HEADLESS.match(text, start, limit)
    return found.end() if found else start
