"""Passwords, keys and tokens that are given a value: in code and settings, on command lines, in plain words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.redaction.findings import Finding, SecretKind
from memory.redaction.tokens import is_template

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
