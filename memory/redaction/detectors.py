"""Detectors of secrets that are no service's tokens: assigned passwords, card numbers, private keys, own patterns.

Each yields Findings; `replace_findings` puts markers in their place.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def distinct_marker_of(kind: str, *, secret: str) -> str:
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
    for finding in _merge_overlapping(findings):
        secret = text[finding.start : finding.end]
        marker = distinct_marker_of(finding.kind, secret=secret) if is_name else marker_of(finding.kind)
        parts += [text[done : finding.start], marker]
        counts[finding.kind] += 1
        done = finding.end
    return Redacted(text="".join([*parts, text[done:]]), counts=dict(counts))


def _merge_overlapping(findings: Iterable[Finding]) -> list[Finding]:
    united: list[Finding] = []
    for finding in sorted(findings, key=lambda found: (found.start, -found.end)):
        if united and finding.start < united[-1].end:
            last = united[-1]
            united[-1] = Finding(start=last.start, end=max(last.end, finding.end), kind=last.kind)
        elif finding.start < finding.end:
            united.append(finding)
    return united


_HINTS = (
    "password", "passwd", "passphrase", "passcode", "passwort", "pwd", "kennwort", "contrase", "secret", "token", "key",
    "mysql", "curl ",
)  # fmt: skip
_SHORT_HINTS = re.compile(r"\b(?:pin|pw)\b|[_-](?:pin|pw)\b")

# The last part of a name, as in DB_PASSWORD, clientSecret, aws_secret_access_key, "API key".
_NAME = re.compile(
    r"(?i)(?P<password>pass(?:word|wd|phrase|code)|passwort|kennwort|contrase(?:ñ|n)a|pwd|(?<![a-z])pw(?![a-z]))"
    r"|(?P<key>(?:api|auth|access|account|client|consumer|encryption|master|private|service|shared|signing|storage"
    r"|webhook)[ _-]?(?:secret[ _-]?)?key|secret(?:[ _-]?access)?(?:[ _-]?key)?)"
    r"|(?P<token>token)"
    r"|(?<![a-z])(?P<pin>pin)(?:[ -](?:code|number|nummer))?(?![a-z])"
)
_SUFFIX = r"(?:[_-]?(?:value|base|prod|production|dev|staging|live|test|\d{1,2}))?(?![\w-])"

_ASSIGNED = re.compile(
    rf"(?i){_SUFFIX}[\]\"'`*]{{0,3}}(?P<sign>[ \t]{{0,4}}(?::=|=>|={{1,3}}|:)[*]{{0,2}}[ \t]{{0,4}})(?P<quote>[\"'`]?)"
)

_SAID = re.compile(
    rf"(?i){_SUFFIX}(?P<sign>(?: (?:for|of|to|on|für|von|vom|zum|zur)(?: [\w'’.-]{{1,30}}){{1,5}}?)?"
    r"(?: (?:now|still|jetzt))?(?:['’]s| is| was| are| ist| war| lautet| =|:)"
    r"(?: (?:now|still|jetzt|just))?:? )(?P<quote>[\"'`]?)"
)
_FOLLOWED = re.compile(rf"{_SUFFIX}(?P<sign> )(?P<quote>[\"'`]?)")  # "with password Tr0ub4dor&3", "--token abc…"
_CLOSED = re.compile(r"[\"'`]?,? (?:ist|war|lautet)\b")  # "dass mein Passwort Sonne2024x ist"

# "Sonne2024x is my password", "I use Sonne2024x as the wifi password", "dass Sonne2024x mein Passwort ist".
_OWNER = r"(?:my|our|your|his|her|their|the|a|mein|unser|dein|euer|sein|ihr|das|als|as) (?:[\w-]{1,20} ){0,2}"

_BEFORE = re.compile(
    r"(?i)(?:^|[\s(])(?P<quote>[\"'`]?)(?P<value>[^\s\"'`<>]{5,100})(?P=quote),?"
    rf" (?P<link>(?:is|was|as|ist|war|als|for|für) )?{_OWNER}$"
)

_AFTER = re.compile(
    r"(?i)(?![\w-])(?P<link> (?:is|was|ist|war)\b)?"
    r"(?=[.,;:!?)\n]|$| (?:is|was|for|of|to|on|at|in|now|and|there|ist|war|für|von|vom|zum|zur|beim|bei|im|und|dort)\b)"
)
_WINDOW = 170  # characters before a name in which such a value and its link stand

_COMMAND = re.compile(
    r"\bmysql(?:dump|admin)?\b[^\n]{0,120}?\s-p(?P<mysql>[^\s\"'-][^\s\"']{2,100})"
    r"|\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,80}:(?P<curl>[^\s\"']{3,200})"
)
_BARE = re.compile(r"[^\s\"'`<>]{1,300}")
_BARE_ENDS = re.compile(r"[;&|]|,(?=\s*[\w\"'-]+\s*[=:])|[,.;:)\]}*]+$|\\[nrt]")
_QUOTED = {mark: re.compile(rf"[^{mark}\n]{{1,300}}(?={mark})") for mark in "\"'`"}
_LONGER_THAN_WORDS = 18
_DIGIT, _LETTER, _SYMBOL = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[!@#$%^&*+?~]")

# Words of documentation and code that stand where a secret would.
_PLACEHOLDERS = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|str|string|text|bytes|int|any|required|optional|missing|invalid|wrong"
    r"|expired|empty|unset|unknown|hidden|masked|redacted|removed|example|sample|placeholder|value|field|input|here"
    r"|change[_-]?me|todo|tbd|your[\w-]*|my[_-]?(?:key|token)|(?:\w+[_-])?(?:pass(?:word|wd|phrase)?|pw|secret|token|key)s?)"
)
_NAMED_AGAIN = re.compile(r"(?i)pass(?:word|wd|phrase|wort)|secret|token|api[_-]?key|credential")

# Names of methods and sizes, not values: sha256, base64-encoded, 12-character, OAuth2, v2.1, utf8, 90d.
_TECHNICAL = re.compile(
    r"(?i)(?:sha-?\d+|md\d|base\d{2}|utf-?\d+|oauth-?\d?|argon2\w{0,2}|bcrypt|pbkdf2|hs\d+|rs\d+|es\d+|ed25519|aes-?\d*|x509"
    r"|jwt|uuid\d?|v?\d+(?:\.\d+)*|\d+[a-z]{1,3})(?:[-_/][a-z]+)*|\d+[-–+][a-z-]*\w*|[a-z]+-\d+"
)

_REFERENCE = re.compile(
    r"[A-Za-z_][\w-]*(?:(?:\.|::|->)[A-Za-z_]\w*)+(?:[(\[].*)?|[\w.]+[(\[{].*|[~.]{0,2}/[\w./~-]*|[a-z_.-]+(?:/[a-z0-9_.-]+)+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """What is given to a name, where, and how it was written."""

    text: str
    start: int
    name: str
    kind: str  # the group of _NAME
    is_quoted: bool
    is_said: bool
    is_tight: bool  # name=value, not within a call


def find_assigned(text: str) -> Iterator[Finding]:
    """Find the values of what is called a password, key, token or PIN."""
    lowered = text.lower()
    is_short = "pin" in lowered or "pw" in lowered
    if not any(map(lowered.__contains__, _HINTS)) and not (is_short and _SHORT_HINTS.search(lowered)):
        return
    for name in _NAME.finditer(text):
        value = _assigned(text, name) or _said(text, name) or _said_before(text, name)
        if value and value.text and not is_template(value.text) and _is_secret(value):
            kind = {"key": SecretKind.KEY, "token": SecretKind.TOKEN}.get(value.kind, SecretKind.PASSWORD)
            yield Finding(start=value.start, end=value.start + len(value.text), kind=kind)
    yield from _in_commands(text)


def _in_commands(text: str) -> Iterator[Finding]:
    for command in _COMMAND.finditer(text):
        if not is_template(command[command.lastgroup or 0]):
            start, end = command.span(command.lastgroup or 0)
            yield Finding(start=start, end=end, kind=SecretKind.PASSWORD)


def _assigned(text: str, name: re.Match[str]) -> _Value | None:
    sign = _ASSIGNED.match(text, name.end())
    if not sign:
        return None
    before, after = text[max(name.start() - 40, 0) : name.start()], text[sign.end() :][:60]
    is_call = bool(re.search(r"[(,]\s*[\w-]*$", before)) or bool(re.match(r"\w+\s*[,)]", after))
    return _value(text, name, sign, is_said=False, is_tight=sign["sign"] == "=" and not is_call)


def _said(text: str, name: re.Match[str]) -> _Value | None:
    if said := _SAID.match(text, name.end()):
        return _value(text, name, said, is_said=True, is_tight=False)
    followed = _FOLLOWED.match(text, name.end())
    if not followed:
        return None
    if re.search(r"(?:^|\s)--[\w-]{0,40}$", text[max(name.start() - 42, 0) : name.start()]):
        return _value(text, name, followed, is_said=False, is_tight=True)
    value = _value(text, name, followed, is_said=True, is_tight=False)
    if value and (_is_strong(value.text) or _is_closed(text, value)):
        return value
    return None


def _is_closed(text: str, value: _Value) -> bool:
    """Tell whether the verb comes after a password that follows its name."""
    return value.kind == "password" and bool(_CLOSED.match(text, value.start + len(value.text)))


def _said_before(text: str, name: re.Match[str]) -> _Value | None:
    """Find a password that is named after it was said."""
    after = _AFTER.match(text, name.end())
    if name.lastgroup != "password" or not after:
        return None
    start = max(name.start() - _WINDOW, 0)
    before = _BEFORE.search(text[start : name.start()])
    if not before or not (before["link"] or after["link"]):
        return None
    return _Value(
        text=before["value"], start=start + before.start("value"), name=name[0].lower(), kind="password",
        is_quoted=False, is_said=True, is_tight=False,
    )  # fmt: skip


def _value(text: str, name: re.Match[str], sign: re.Match[str], *, is_said: bool, is_tight: bool) -> _Value | None:
    quoted = _QUOTED[sign["quote"]].match(text, sign.end()) if sign["quote"] else None
    bare = None if quoted else _BARE.match(text, sign.end())
    found = quoted[0] if quoted else _cut(bare[0]) if bare else ""
    return _Value(
        text=found, start=sign.end(), name=name[0].lower(), kind=name.lastgroup or "", is_quoted=bool(quoted),
        is_said=is_said, is_tight=is_tight,
    )  # fmt: skip


def _cut(bare: str) -> str:
    """Leave out what ends a sentence, a statement or a parameter."""
    end = _BARE_ENDS.search(bare)
    return bare[: end.start()] if end else bare


def _is_secret(value: _Value) -> bool:
    text = value.text
    if value.kind == "pin":
        return text.isdecimal() and 4 <= len(text) <= 8
    if _PLACEHOLDERS.fullmatch(text) or _TECHNICAL.fullmatch(text) or _REFERENCE.fullmatch(text):
        return False
    if any(letter.isspace() for letter in text):
        return value.name == "passphrase" and value.is_quoted
    return _is_password(value) if value.kind == "password" else _is_key(value)


def _is_password(value: _Value) -> bool:
    text = value.text
    if value.is_quoted or value.is_tight:
        return len(text) >= 4
    if text.isdecimal():
        return len(text) >= 4
    is_no_word = _is_mixed(text) or len(text) >= _LONGER_THAN_WORDS
    return len(text) >= 5 and is_no_word and not _NAMED_AGAIN.search(text)


def _is_key(value: _Value) -> bool:
    text = value.text
    least = 10 if value.is_said else 8
    is_mixed = bool(_DIGIT.search(text) and _LETTER.search(text))
    return len(text) >= least and is_mixed and not _NAMED_AGAIN.search(text)


def _is_mixed(text: str) -> bool:
    return bool(_LETTER.search(text) and (_DIGIT.search(text) or _SYMBOL.search(text[:-1])))


def _is_strong(text: str) -> bool:
    """Tell whether no ordinary word looks like it, so that nothing between it and its name is needed."""
    has_cases = text.lower() != text and text.upper() != text
    return len(text) >= 8 and bool(_DIGIT.search(text)) and has_cases and bool(_SYMBOL.search(text) or len(text) >= 16)


def is_template(value: str) -> bool:
    """Tell whether a value stands for another that is not here: ${NAME}, <name>, {{ name }}, %s, ****."""
    return value[:1] in "$<{%[(" or not any(letter.isalnum() for letter in value) or value.strip("xX.") == ""


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


_PATTERN_NAME = re.compile(r"[a-z0-9][a-z0-9 _-]{0,39}")


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
    return tuple(_compile_pattern(str(name), pattern) for name, pattern in raw.items())


def find_custom(*, text: str, patterns: Sequence[CustomPattern]) -> Iterator[Finding]:
    """Find what the patterns match; matches of no length are nothing."""
    for custom in patterns:
        for found in custom.pattern.finditer(text):
            low, high = found.span(1) if custom.pattern.groups and found[1] else found.span()
            yield Finding(start=low, end=high, kind=custom.kind)


def _compile_pattern(name: str, pattern: object) -> CustomPattern:
    if not _PATTERN_NAME.fullmatch(name):
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
