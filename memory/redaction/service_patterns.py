# SPDX-License-Identifier: Apache-2.0
# Copyright 2017-2018 Yelp Inc.
#
# The patterns, the test of a JSON web token and the entropy are those of detect-secrets 1.5.0
# (https://github.com/Yelp/detect-secrets), licensed under the Apache License 2.0: LICENSES/Apache-2.0.txt.
# Changed here: only patterns are kept, nothing that verifies a secret over the network; patterns that other modules
# of this package cover in more forms are left out (assigned passwords, private keys, npm, addresses with passwords);
# alternatives are written as sets; some have openings that keep them from words and from quadratic time.
"""The forms of keys and tokens that known services give out."""

import base64
import json
import math
import re
from collections import Counter
from dataclasses import dataclass

from memory.redaction.detectors import SecretKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePattern:
    """A pattern of one service's secrets; its widest group is the secret, where it has one."""

    service: str
    pattern: re.Pattern[str]
    kind: SecretKind
    is_jwt: bool = False


def is_jwt(token: str) -> bool:
    """Tell whether header and payload are JSON in base64, and the signature is base64."""
    for place, part in enumerate(token.split(".")):
        if len(part) % 4 == 1:
            return False
        try:
            decoded = base64.urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))
            if place < 2:
                json.loads(decoded.decode())
        except (ValueError, RecursionError):  # not ASCII, no base64, no text, no JSON; or nested beyond reading
            return False
    return True


def entropy_of(text: str) -> float:
    """Return Shannon's entropy of a text, in bits a character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _key(service: str, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> ServicePattern:
    return ServicePattern(service=service, pattern=re.compile(pattern, flags), kind=SecretKind.KEY)


def _token(service: str, pattern: str, flags: re.RegexFlag = re.NOFLAG, *, is_jwt: bool = False) -> ServicePattern:
    return ServicePattern(service=service, pattern=re.compile(pattern, flags), kind=SecretKind.TOKEN, is_jwt=is_jwt)


def _assigned(service: str, name: str, secret: str) -> ServicePattern:
    """Make a pattern of a secret that is given to a name, in code, settings or JSON; the group is the secret."""
    pattern = rf"(?:(?<=\W)|(?<=^))\[?[\"']?(?:{name})[\"']?\]? *(?:=|:|:=|=>| +|::) *[\"']?({secret})[\"']?"
    return _key(service, pattern, re.IGNORECASE)


# Where a run of characters could begin anywhere, only its beginning is looked at; words in capitals are no keys,
# dotted names of modules no tokens.
_ALONE = r"(?<![\w-])"
_NO_WORD = r"(?<!\w)(?=A\w{0,60}\d)(?=A\w{0,60}[a-z])"
_NO_MODULE = rf"{_ALONE}(?=\S{{0,60}}\d)"
_NAMED = "(?:key|pwd|pw|password|pass|token)"

# Secrets that may be shorter than 20 characters, or begin with an address.
SHORT = (
    _key("Artifactory", _NO_WORD + r'AKC[a-zA-Z0-9]{10,}(?:\s|"|$)'),
    _key("Artifactory", _NO_WORD + r'AP[\dABCDEF][a-zA-Z0-9]{8,}(?:\s|"|$)'),
    _token("Slack", r"xox[abposr]-(?:\d+-)+[a-z0-9]+", re.IGNORECASE),
    _token("Slack", r"https://hooks\.slack\.com/services/T\w+/B\w+/\w+", re.IGNORECASE | re.ASCII),
)

# Secrets that hold a run of 20 characters at least.
LONG = (
    _key("AWS", r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}"),
    _key("AWS", rf"aws.{{0,20}}?{_NAMED}.{{0,20}}?['\"]([0-9a-zA-Z/+]{{40}})['\"]", re.IGNORECASE),
    _key("Azure", r"AccountKey=[a-zA-Z0-9+/=]{88}"),
    _assigned("Cloudant", rf"(?:cloudant|cl|clou)[_-]?(?:api)?{_NAMED}", r"[0-9a-f]{64}"),
    _assigned("Cloudant", rf"(?:cloudant|cl|clou)[_-]?(?:api)?{_NAMED}", r"[a-z]{24}"),
    _token("Discord", _NO_MODULE + r"[MNO][a-zA-Z\d_-]{23,25}\.[a-zA-Z\d_-]{6}\.[a-zA-Z\d_-]{27}"),
    _token("GitHub", r"gh[pousr]_[A-Za-z0-9_]{36}"),
    _token("GitLab", r"(?:glpat|gldt|glft|glsoat|glrt)-[A-Za-z0-9_-]{20,50}(?!\w)"),
    _token("GitLab", r"GR1348941[A-Za-z0-9_-]{20,50}(?!\w)"),
    _token("GitLab", r"glcbt-(?:[0-9a-fA-F]{2}_)?[A-Za-z0-9_-]{20,50}(?!\w)"),
    _token("GitLab", r"glimt-[A-Za-z0-9_-]{25}(?!\w)"),
    _token("GitLab", r"glptt-[A-Za-z0-9_-]{40}(?!\w)"),
    _token("GitLab", r"glagent-[A-Za-z0-9_-]{50,1024}(?!\w)"),
    _token("GitLab", r"gloas-[A-Za-z0-9_-]{64}(?!\w)"),
    _assigned(
        "IBM Cloud IAM",
        r"(?:ibm[_-]?cloud[_-]?iam|cloud[_-]?iam|ibm[_-]?cloud|ibm[_-]?iam|ibm|iam|cloud|)[_-]?(?:api)?[_-]?"
        r"(?:key|pwd|password|pass|token)",
        r"[a-zA-Z0-9_-]{44}(?![a-zA-Z0-9_-])",
    ),
    _assigned(
        "IBM COS",
        r"(?:(?:ibm)?[-_]?cos[-_]?(?:hmac)?|)[_-]?secret[-_]?(?:access)?[-_]?key",
        r"[a-f0-9]{48}(?![a-f0-9])",
    ),
    _token("JSON web token", _ALONE + r"eyJ[A-Za-z0-9-_=]+\.[A-Za-z0-9-_=]+\.?[A-Za-z0-9-_.+/=]*?", is_jwt=True),
    _key("Mailchimp", _ALONE + r"[0-9a-z]{32}-us[0-9]{1,2}"),
    _key("OpenAI", _ALONE + r"sk-[A-Za-z0-9-_]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    _token("PyPI", r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9-_]{70,}"),
    _token("PyPI", r"pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9-_]{70,}"),
    _key("SendGrid", r"SG\.[a-zA-Z0-9_-]{22}\.[a-zA-Z0-9_-]{43}"),
    _assigned("SoftLayer", r"(?:softlayer|sl)[_-]?(?:api)?[_-]?(?:key|pwd|password|pass|token)", r"[a-z0-9]{64}"),
    _key("SoftLayer", r"https?://api.softlayer.com/soap/(?:v3|v3.1)/([a-z0-9]{64})", re.IGNORECASE),
    _key("Square", r"sq0csp-[0-9A-Za-z\\_-]{43}"),
    _key("Stripe", r"[rs]k_live_[0-9a-zA-Z]{24}"),
    _token("Telegram", r"\d{8,10}:[0-9A-Za-z_-]{35}"),
    _key("Twilio", _ALONE + r"(?:AC|SK)[a-z0-9]{32}"),
)
