"""The labelled messages that a reader of claims is held against keep their own promises.

What is denied, refused or ended is *against* its value; where a new value takes the place of another, only the new one
is labelled. `contains` are words that the sentence of a claim cannot do without, as they stand in the message.
"""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("data") / "claims"
MODES = {"asserted", "change", "advised", "asked", "hypothetical", "wished", "quoted", "ironic"}
LASTING = {"asserted", "change"}
SLOTS = {
    "manager", "employer", "home", "diet", "allergy", "editor", "tool", "language", "schedule", "price",
    "preference", "rule", "family", "health", "pet", "vehicle", "other",
}  # fmt: skip
SIZES = {"en": 200, "de": 100}

Json = dict[str, Any]


def read_messages(language: str) -> list[Json]:
    """Return the labelled messages of a language."""
    return [json.loads(line) for line in (FOLDER / f"{language}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(params=sorted(SIZES), name="messages")
def _messages(request: pytest.FixtureRequest) -> list[Json]:
    messages = read_messages(request.param)
    assert len(messages) == SIZES[request.param]
    return messages


def test_messages_are_all_different_and_say_who_speaks(messages: list[Json]) -> None:
    assert len({message["text"] for message in messages}) == len(messages)
    assert all(message["user"] and message["role"] in {"user", "assistant"} for message in messages)
    assert all(
        datetime.fromisoformat(message["occurred_at"]).tzinfo for message in messages if "occurred_at" in message
    )


def test_claims_are_of_known_modes_slots_and_polarities(messages: list[Json]) -> None:
    """E1: a claim is a subject, a mode, a polarity, and where there is one a slot with its value."""
    claims = [claim for message in messages for claim in message["claims"]]

    assert all(claim["subject"] and claim["contains"] for claim in claims)
    assert {claim["mode"] for claim in claims} == MODES
    assert {claim["polarity"] for claim in claims} == {"for", "against"}
    assert {claim["slot"] for claim in claims} <= SLOTS


def test_what_a_claim_is_against_is_named_without_a_second_no(messages: list[Json]) -> None:
    against = [claim for message in messages for claim in message["claims"] if claim["polarity"] == "against"]

    assert against
    assert not any(claim["value"].lower().startswith(("no ", "not ", "kein", "nicht ")) for claim in against)


def test_what_a_claim_must_contain_stands_in_its_message(messages: list[Json]) -> None:
    missing = [
        (message["text"], word)
        for message in messages
        for claim in message["claims"]
        for word in claim["contains"]
        if word.lower() not in message["text"].lower()
    ]

    assert missing == []


def test_nothing_lasts_where_nothing_is_asserted(messages: list[Json]) -> None:
    """E2: an assistant asserts nothing about its user; questions, wishes, irony and quotations assert nothing."""
    for message in messages:
        modes = {claim["mode"] for claim in message["claims"]}
        assert message.get("nothing", False) is not bool(modes & LASTING)
        assert not (message["role"] == "assistant" and modes & LASTING)


def test_every_kind_of_speech_is_there_in_both_languages() -> None:
    kinds = {language: Counter(message["kind"] for message in read_messages(language)) for language in SIZES}

    assert set(kinds["en"]) == set(kinds["de"])
    assert len(kinds["en"]) == 23
    assert min(kinds["en"].values()) >= 5
    assert min(kinds["de"].values()) >= 2
