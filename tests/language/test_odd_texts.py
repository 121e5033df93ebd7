"""E6: no text is too odd for the rules: they read each without an error, and in a time that grows with its length."""

import time
from collections.abc import Callable, Mapping

import pytest

from memory.domain.policy import Policy
from memory.domain.taxonomy import kind_of
from memory.language.explicit_requests import load_cues, scan_signal
from memory.language.sentences import find_cause, strip_echo
from memory.language.subjects import find_entities, split_subject
from memory.redaction.redact import redact
from memory.text.sentences import split_sentences
from tests.odd_texts import LONG, list_odd_texts

SEED, TEXTS = 20_260_301, 2_000
SECONDS = 2.0  # of processor time for one text and one reader; a text of 32 kB takes most of them a tenth of that
POLICY = Policy()
CUES = load_cues(languages=("en", "de"))

# Whatever else reads texts is one line here.
READERS: Mapping[str, Callable[[str], object]] = {
    "kind": lambda text: kind_of(text=text),
    "subject": lambda text: split_subject(text, speaker="Anna"),
    "names": lambda text: [find_entities(text=one) for one in split_sentences(text)],
    "names in one": lambda text: find_entities(text=text, known=("anna",), german=True),
    "signal": lambda text: scan_signal(text=text, cues=CUES, policy=POLICY.turns),
    "matter": lambda text: strip_echo(text, "Anna"),
    "causes": lambda text: find_cause(cause=text, texts=[text], least=0.5),
    "secrets": lambda text: redact(text, patterns=()),
}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return list_odd_texts(seed=SEED, count=TEXTS)


def test_the_texts_are_the_same_every_time_and_odd(texts: list[str]) -> None:
    assert texts == list_odd_texts(seed=SEED, count=TEXTS)
    assert max(len(text.encode()) for text in texts) == LONG
    for odd in ("127.0.0.1:", "99:99", "18.04.25", "\u202e", "\u200b", "\u200d", "```", "|---|", "私は", "Traceback"):
        assert any(odd in text for text in texts), odd


@pytest.mark.parametrize("reader", READERS)
def test_every_text_is_read_in_time(reader: str, texts: list[str]) -> None:
    """E6: hosts and ports, versions, marks that nobody sees, 32 kB of one letter."""
    read, slow = READERS[reader], {}
    for place, text in enumerate(texts):
        began = time.thread_time()
        read(text)
        if (seconds := time.thread_time() - began) > SECONDS:
            slow[place] = (round(seconds, 1), text[:40])
    assert slow == {}
