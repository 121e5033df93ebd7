"""Redaction: what is taken out of a text, and what stays."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from memory.redaction.detectors import MARKER, BadPattern, Redacted, compile_patterns, is_card_number
from memory.redaction.redact import redact
from tests.redaction.planted import ORDINARY, PLANTED, RANDOM, Planted

HISTORY = Path(__file__).parents[2] / "memory/samples/history.jsonl"


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.text[:30])
def test_a_secret_is_replaced_by_a_marker_that_names_its_kind(planted: Planted) -> None:
    """L2: the words around it stay."""
    found = redact(planted.text)
    assert found.text == planted.text.replace(planted.secret, f"[redacted: {planted.kind}]")
    assert found.counts == {planted.kind: 1}


@pytest.mark.parametrize("text", ORDINARY, ids=lambda text: text[:30])
def test_ordinary_words_stay(text: str) -> None:
    """L2: prose, code, hashes, ids and public keys are no secrets."""
    assert redact(text).text == text


def test_the_sample_history_stays_as_it_is() -> None:
    texts = [json.loads(line)["text"] for line in HISTORY.read_text().splitlines()]
    assert [text for text in texts if redact(text).counts] == []


def test_each_of_many_secrets_is_counted() -> None:
    text = "\n".join(planted.text for planted in PLANTED)
    found = redact(text)
    assert sum(found.counts.values()) >= len(PLANTED)
    assert [planted.secret for planted in PLANTED if planted.secret in found.text] == []


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.text[:30])
def test_a_redacted_text_stays_as_it_is(planted: Planted) -> None:
    once = redact(planted.text).text
    assert redact(once).text == once
    assert not redact(once).counts


_PIECES = st.sampled_from(
    [planted.text for planted in PLANTED] + [planted.secret for planted in PLANTED] + list(ORDINARY)
)


@given(parts=st.lists(_PIECES | st.text(max_size=12), max_size=6), seam=st.sampled_from(["", " ", "\n", ":", "="]))
def test_once_is_enough_wherever_secrets_stand(parts: list[str], seam: str) -> None:
    """Whatever stands beside what: a second pass finds nothing, and no marker is cut."""
    once = redact(seam.join(parts))
    assert not redact(once.text).counts
    assert len(MARKER.findall(once.text)) >= sum(once.counts.values()) > 0 or not once.counts


def test_a_random_name_is_no_secret() -> None:
    """Sessions, turns and cursors are told apart by theirs."""
    key = "Zq8r2TzLdKe-wJalrXUtn9FEMI3K7MDENG4bPxRf"
    assert redact(key).counts == {"key": 1}
    assert redact(key, is_name=True).counts == {}
    assert redact(f"ghp_{RANDOM[:36]}", is_name=True).counts == {"token": 1}


_PHONES = st.from_regex(r"(\+|00)?[1-9][0-9]{6,14}|\+[1-9][0-9]{1,2} [0-9]{3,4} [0-9]{4,8}", fullmatch=True)
_MAILS = st.from_regex(r"[a-z]{1,8}[.+-]?[a-z0-9]{1,8}@[a-z]{2,9}\.(org|de|com)", fullmatch=True)
_NUMBERS = st.integers(min_value=0, max_value=10**19).map(str)


@given(name=_PHONES | _MAILS | _NUMBERS | st.uuids().map(str) | st.uuids().map(lambda key: key.hex))
@example(name="+4915110003014")
@example(name="4111111111111111")
@example(name="AKC-4711")
def test_ordinary_names_stay(name: str) -> None:
    """Redaction: telephone numbers, mail addresses, numbers and UUIDs tell people and things apart."""
    assert redact(name, is_name=True) == Redacted(text=name, counts={})


def test_names_with_secrets_stay_apart_and_the_same() -> None:
    """Redaction: a marker in a name has a digest of its secret; given again, the name that is kept stays."""
    names = [f"ghp_{letter}{RANDOM[:35]}" for letter in "ABC"]
    kept = [redact(name, is_name=True).text for name in names]
    assert len(set(kept)) == 3
    assert all(MARKER.fullmatch(name) and "ghp_" not in name for name in kept)
    assert [redact(name, is_name=True).text for name in [*names, *kept]] == [*kept, *kept]
    assert [redact(name).text for name in kept] == kept


def test_a_card_in_a_name_is_told_by_its_groups() -> None:
    found = redact("Mia of 5105 1051 0510 5100", is_name=True)
    assert found.counts == {"card number": 1}
    assert "5105" not in found.text


@given(phone=_PHONES)
@example(phone="+4915110003014")
@example(phone="4915110003014")
def test_telephone_numbers_stay_in_texts(phone: str) -> None:
    """Redaction: none has the 16 digits of most cards; those of 14 and 15 are told by a plus or zeros before them."""
    assume(phone[0] in "+0" or len(phone) < 14)
    assert redact(f"Call me at {phone}, please.").counts == {}


def test_a_name_that_is_given_again_is_no_secret() -> None:
    assert redact("connect(password=password, token=user.token)").counts == {}


@pytest.mark.parametrize(
    ("digits", "is_card"),
    [
        ("4111111111111111", True),
        ("4111111111111112", False),  # Luhn
        ("30569309025904", True),
        ("3530111333300000", True),
        ("2223003122003222", True),
        ("6200000000000005", True),
        ("9111111111111111", False),  # no issuer
        ("4222222222222", False),  # Visa's of 13 digits are out of use
        ("41111111111111", False),  # no length of its issuer
        ("0000000000000000", False),
    ],
)
def test_cards_are_told_by_issuer_length_and_check_digit(digits: str, is_card: bool) -> None:
    """ISO/IEC 7812."""
    assert is_card_number(digits) is is_card


def test_a_place_has_patterns_of_its_own() -> None:
    """L2: a pattern with a group takes the group alone."""
    patterns = compile_patterns({"badge number": r"BADGE-\d{6}", "case": r"case (\d+-\d+)"})
    found = redact("Let BADGE-123456 in for case 77-12.", patterns=patterns)
    assert found.text == "Let [redacted: badge number] in for case [redacted: case]."


@pytest.mark.parametrize(
    "raw",
    [{"badge": "("}, {"badge": ""}, {"badge": "x*"}, {"Badge!": "x"}, {"badge": 5}, ["x"]],
    ids=["no pattern", "empty", "matches nothing", "bad name", "no text", "no object"],
)
def test_a_bad_pattern_is_refused_by_name(raw: object) -> None:
    with pytest.raises(BadPattern, match=r"badge|Badge!|names"):
        compile_patterns(raw)


def _milliseconds(text: str) -> float:
    began = time.thread_time()
    redact(text)
    return (time.thread_time() - began) * 1000


def _at_best(text: str, *, times: int = 5) -> float:
    return min(_milliseconds(text) for _ in range(times))


def _turns(text: str) -> list[str]:
    """Cut a text into turns of 500 characters."""
    return [text[place : place + 500] for place in range(0, len(text), 500)]


def test_a_turn_takes_well_under_a_millisecond() -> None:
    """L2: at the 99th percentile of turns of 500 characters, at best of five for each."""
    redact(RANDOM)  # what a first time prepares
    took = sorted(_at_best(turn) for turn in _turns(HISTORY.read_text()))
    assert took[int(len(took) * 0.99)] < 1.0


def test_a_turn_full_of_what_looks_like_secrets_takes_a_few_milliseconds() -> None:
    redact(RANDOM)
    assert max(_at_best(turn) for turn in _turns(" ".join(ORDINARY))) < 5.0


_UNKIND = (
    "a", " ", "eyJ", "/", "://a:", "4111 ", "4", "password is ", "token ", "password=", "-----BEGIN PRIVATE KEY-----\n",
    "Ab1/", "sk-", "xoxb-1-", "AKC", "pin pin: ", "key" + " " * 60 + "A" * 20, "-----BEGIN PRIVATE KEY-----\nAbc: d\n",
    "password for a b c ", "://a:@", "curl ", "1234 ", 'password="', "cloudant_key  ", "\\n",
)  # fmt: skip


@pytest.mark.parametrize("unit", _UNKIND)
def test_unkind_texts_take_linear_time(unit: str) -> None:
    """L2: eight times the text takes at most some eight times as long, up to 32 KiB."""
    short, long = (unit * 4096)[:4096], (unit * 32_768)[:32_768]
    redact(short)
    assert _at_best(long, times=2) < 20 * _at_best(short, times=3) + 20
