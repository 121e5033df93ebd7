"""Keys and tokens of known services: what detect-secrets 1.5.0 found in a corpus is found by the patterns taken over.

The corpus was made from the language of every pattern (whole, cut off, in other letters, broken, in different company),
and records what was found in each text when the package itself was asked. A dot in the middle of each long run keeps
scanners of repositories from taking them for somebody's.
"""

import base64
import json
from pathlib import Path

import pytest

from memory.redaction.redact import find_service_keys, redact
from memory.redaction.service_patterns import LONG, SHORT, entropy_of

CORPUS = [json.loads(line) for line in Path(__file__).with_name("service_secrets.jsonl").read_text().splitlines()]


def test_what_was_found_before_is_found_now_to_the_character() -> None:
    texts = [row["text"].replace("·", "") for row in CORPUS]
    found = [sorted([one.start, one.end, one.kind] for one in find_service_keys(text)) for text in texts]
    wrong = [
        (text, row["found"], now) for text, row, now in zip(texts, CORPUS, found, strict=True) if now != row["found"]
    ]
    assert wrong == []


def test_the_corpus_has_secrets_and_near_misses_of_every_pattern() -> None:
    held = [row["text"].replace("·", "") for row in CORPUS if row["found"]]
    assert [known.service for known in (*SHORT, *LONG) if not any(known.pattern.search(text) for text in held)] == []
    assert 200 < len(held) < len(CORPUS) - 100


# As the package counted them, rounded.
@pytest.mark.parametrize(
    ("text", "entropy"),
    [("a", 0.0), ("ab", 1.0), ("0123456789", 3.321928), ("AABB+-==", 2.25), ("hunter2", 2.807355)],
)
def test_entropy_is_counted_in_bits_a_character(text: str, entropy: float) -> None:
    assert entropy_of(text) == pytest.approx(entropy, abs=1e-6)


def test_what_is_nested_beyond_reading_is_no_token_and_breaks_nothing() -> None:
    header = base64.urlsafe_b64encode(b'{"a":' + b"[" * 20_000).decode().rstrip("=")
    text = f"{header}.e30.abcd"
    assert redact(text).text == text
