"""Tokens by their own form: prefixes that services give them, headers, addresses with passwords, sheer randomness."""

import re
from collections.abc import Iterator

from memory.redaction.findings import Finding, SecretKind
from memory.redaction.service_patterns import entropy_of

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


def is_template(value: str) -> bool:
    """Tell whether a value stands for another that is not here: ${NAME}, <name>, {{ name }}, %s, ****."""
    return value[:1] in "$<{%[(" or not any(letter.isalnum() for letter in value) or value.strip("xX.") == ""


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
