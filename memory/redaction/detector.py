"""The shapes of keys and tokens that detect-secrets knows, asked as patterns alone.

Its plugins are chosen here, once. Nothing of its scanning is used: no filters, so nothing that it finds is ever
verified over the network, no files, no processes. Not chosen: what it finds by entropy alone (hashes and ids would go,
too), public addresses (no secret), and what other modules here find in more of its forms (passwords that are assigned,
addresses with passwords, blocks of private keys, npm's tokens).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.utils.module_loading import import_string

from memory.redaction.findings import Finding, SecretKind

_BEFORE, _AFTER = 48, 8  # characters around a long run of them that its name and its quotes take at most
_LONG_RUN = re.compile(r"[\w+/=-]{20,}")
_TAIL = re.compile(r"(?:[\w=+/-]|\.(?=[\w-]))*")  # of a token that is longer than its pattern asks
_LEAST_GROUP = 8

_PLUGINS = "detect_secrets.plugins"
_JWT = "jwt.JwtTokenDetector"
# Openings of ours: where a run of characters could begin anywhere, only its beginning is looked at; words in capitals
# are no keys, dotted names of modules no tokens.
_ALONE = r"(?<![\w-])"
_NO_WORD = r"(?<!\w)(?=A\w{0,60}\d)(?=A\w{0,60}[a-z])"
_NO_MODULE = rf"{_ALONE}(?=\S{{0,60}}\d)"
_ARTIFACTORY_OPENS = '(?:\\s|=|:|"|^)'
_SHORT = (
    ("artifactory.ArtifactoryDetector", SecretKind.KEY, _NO_WORD),
    ("slack.SlackDetector", SecretKind.TOKEN, ""),
)
_LONG = (
    ("aws.AWSKeyDetector", SecretKind.KEY, ""),
    ("azure_storage_key.AzureStorageKeyDetector", SecretKind.KEY, ""),
    ("cloudant.CloudantDetector", SecretKind.KEY, ""),
    ("discord.DiscordBotTokenDetector", SecretKind.TOKEN, _NO_MODULE),
    ("github_token.GitHubTokenDetector", SecretKind.TOKEN, ""),
    ("gitlab_token.GitLabTokenDetector", SecretKind.TOKEN, ""),
    ("ibm_cloud_iam.IbmCloudIamDetector", SecretKind.KEY, ""),
    ("ibm_cos_hmac.IbmCosHmacDetector", SecretKind.KEY, ""),
    (_JWT, SecretKind.TOKEN, _ALONE),
    ("mailchimp.MailchimpDetector", SecretKind.KEY, _ALONE),
    ("openai.OpenAIDetector", SecretKind.KEY, _ALONE),
    ("pypi_token.PypiTokenDetector", SecretKind.TOKEN, ""),
    ("sendgrid.SendGridDetector", SecretKind.KEY, ""),
    ("softlayer.SoftlayerDetector", SecretKind.KEY, ""),
    ("square_oauth.SquareOAuthDetector", SecretKind.KEY, ""),
    ("stripe.StripeDetector", SecretKind.KEY, ""),
    ("telegram_token.TelegramBotTokenDetector", SecretKind.TOKEN, ""),
    ("twilio.TwilioKeyDetector", SecretKind.KEY, _ALONE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A pattern of secrets of one kind."""

    pattern: re.Pattern[str]
    kind: SecretKind
    is_jwt: bool = False


def find_known_shapes(text: str) -> Iterator[Finding]:
    """Find what looks like the keys and tokens of known services."""
    if "AKC" in text or "AP" in text or "xox" in text or "hooks.slack.com" in text:
        yield from _find(text, _short_shapes(), 0, len(text))
    for start, end in _neighbourhoods(text):
        yield from _find(text, _long_shapes(), start, end)


def entropy_of(text: str) -> float:
    """Return Shannon's entropy (bits a character) as detect-secrets counts it for base64."""
    entropy: float = _entropy_plugin().calculate_shannon_entropy(text)
    return entropy


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


def _find(text: str, shapes: Sequence[Shape], start: int, end: int) -> Iterator[Finding]:
    for shape in shapes:
        done = start
        for found in shape.pattern.finditer(text, start, end):
            if found.start() >= done and (not shape.is_jwt or _is_jwt(found[0])):
                low, done = _span_of(found)
                yield Finding(start=low, end=done, kind=shape.kind)


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


def _is_jwt(token: str) -> bool:
    return bool(import_string(f"{_PLUGINS}.{_JWT}").is_formally_valid(token))


@cache
def _entropy_plugin() -> Any:
    return import_string(f"{_PLUGINS}.high_entropy_strings.Base64HighEntropyString")()


@cache
def _short_shapes() -> tuple[Shape, ...]:
    """Import on first use: the package brings an HTTP client along that no command shall pay for at its start."""
    return _shapes_of(_SHORT)


@cache
def _long_shapes() -> tuple[Shape, ...]:
    return _shapes_of(_LONG)


def _shapes_of(plugins: Sequence[tuple[str, SecretKind, str]]) -> tuple[Shape, ...]:
    return tuple(
        Shape(pattern=_opened(pattern, opening), kind=kind, is_jwt=path == _JWT)
        for path, kind, opening in plugins
        for pattern in import_string(f"{_PLUGINS}.{path}").denylist
    )


def _opened(pattern: re.Pattern[str], opening: str) -> re.Pattern[str]:
    """Put an opening of ours before a plugin's pattern, in the place of its own."""
    return re.compile(opening + pattern.pattern.removeprefix(_ARTIFACTORY_OPENS), pattern.flags) if opening else pattern
