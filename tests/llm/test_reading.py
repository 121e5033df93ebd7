"""E1: how a model is asked what messages assert, and what it may answer."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from memory.language.clauses import Mode
from memory.llm.offline import StaticEmbedder
from memory.llm.prompts import READING, build_prompt, reply_tokens
from memory.llm.replies import ClaimsReply, MalformedReply, validate_reply
from memory.llm.requests import ClaimsRequest, KnownPerson, halve_request, hash_request
from memory.llm.runner import ModelRequest
from tests.injections import PLANTED
from tests.llm.asking import message, reading
from tests.llm.steps import Step
from tests.llm.test_injection import obedient
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, answer, claim, garbage, sensible

SAID = {"n": 1, "claim": "Mara keeps bees.", "mode": "asserted"}


def _items(request: ClaimsRequest) -> list[dict[str, Any]]:
    lines = build_prompt(request=request, fence="0").user.split("\n")
    assert (lines[0], lines[-1]) == ("BEGIN 0", "END 0")
    return [json.loads(line) for line in lines[1:-1]]


def _read(request: ClaimsRequest, *claims: dict[str, Any]) -> ClaimsReply:
    reply = validate_reply(request, json.dumps({"claims": claims}))
    assert isinstance(reply, ClaimsReply)
    return reply


# --- What is asked


def test_messages_have_numbers_and_those_beside_them_letters() -> None:
    """E1: who speaks and on which day of the week, a day told once; an assistant has its role, and no name."""
    request = reading(
        message(0, "Which one, tabs or spaces?", role="assistant", speaker="", is_read=False),
        message(1, "Yes, the second one."),
        message(2, "I moved to Graz today.", occurred_on="2026-03-02"),
    )
    assert _items(request) == [
        {"c": "a", "role": "assistant", "on": "Sun 2026-03-01", "text": "Which one, tabs or spaces?"},
        {"n": 1, "by": "Mara", "text": "Yes, the second one."},
        {"n": 2, "by": "Mara", "on": "Mon 2026-03-02", "text": "I moved to Graz today."},
    ]


def test_another_conversation_begins_with_a_line_that_says_so() -> None:
    request = reading("I keep bees.", message(1, "Me, too.", session="s2"))
    assert _items(request)[1] == {"conversation": "another"}


def test_what_is_known_of_somebody_is_told_without_values() -> None:
    """E1: names and slots alone, so that no belief echoes itself."""
    request = replace(reading("I keep bees."), known=(KnownPerson(name="Mara", slots=("diet", "home")),))
    assert _items(request)[0] == {"known": "Mara", "slots": ["diet", "home"]}


def test_a_long_message_beside_others_is_cut_in_its_middle(settings: Settings) -> None:
    """E1: it costs little, and what it asks at its end is kept."""
    long = message(0, "Well. " + "word " * 1_000 + "Tabs or spaces?", is_read=False)
    shown = _items(reading(long, "Spaces."))[0]["text"]
    assert len(shown) <= settings.POLICY.reading.context_characters + 3
    assert shown.startswith("Well. ")
    assert shown.endswith("Tabs or spaces?")


def test_a_message_that_is_read_is_whole_up_to_what_a_call_takes(settings: Settings) -> None:
    settings.POLICY = replace(settings.POLICY, reading=replace(settings.POLICY.reading, characters=5_000))
    assert _items(reading("I keep bees. " * 300))[0]["text"] == "I keep bees. " * 300
    assert len(_items(reading("I keep bees. " * 3_000))[0]["text"]) == 5_002


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_stays_one_string_of_the_data(planted: str) -> None:
    """E1, B11: read, beside, or as a name."""
    request = reading(planted, message(1, planted, is_read=False), message(2, "I keep bees.", speaker=planted))
    known = replace(request, known=(KnownPerson(name=planted, slots=("diet",)),))
    assert [item.get("text") for item in _items(known)] == [None, planted, planted, "I keep bees."]
    assert build_prompt(request=known).system == READING


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_changes_no_other_claim(step: Step, server: ModelServer, planted: str) -> None:
    """E1, B11: a model that obeys what reaches it as anything but data reads the others as ever."""
    server.script = lambda asked: obedient(asked) if asked.purpose == "read" else None
    request = reading("I keep bees.", planted, "I drink tea.")
    assert step.ask(ModelRequest(key="read", request=request)) == []
    [given] = step.answers
    assert isinstance(given.reply, ClaimsReply)
    assert [one.claim for one in given.reply.claims if one.n != 2] == ["Mara keeps bees.", "Mara drinks tea."]


def test_the_rules_say_what_decides() -> None:
    """E1, E2: they come first, are short, and name the modes and slots that an answer may give."""
    assert StaticEmbedder().count_tokens(READING) <= 750
    assert all(mode in READING for mode in Mode)
    for said in ("manager", "answer_tone", "other", "advises", "remember that", "Still X", "forwarded mail"):
        assert said in READING


def test_a_reply_has_room_for_every_message() -> None:
    """B9: those that only stand beside them ask for none."""
    alone = reply_tokens(request=reading("I keep bees."))
    beside = reading("I keep bees.", message(1, "I see.", is_read=False))
    assert reply_tokens(request=beside) == alone < reply_tokens(request=reading("I keep bees.", "I drink tea."))


# --- What is answered


def test_a_claim_needs_no_more_than_its_words_and_its_mode() -> None:
    """E1: what a model leaves out has a usual value; strict servers give all."""
    [one] = _read(reading("I keep bees."), SAID).claims
    assert (one.slot, one.context, one.told, one.denied, one.ended, one.since, one.used) == (
        "other", "general", False, False, [], None, [],
    )  # fmt: skip


def test_days_and_values_are_taken_as_they_are_meant() -> None:
    given = {"since": "2026-03-01", "until": "some day", "value": 120, "slot": "Price", "mode": "CHANGE", "used": [2]}
    [one] = _read(reading("I keep bees.", "I drink tea."), SAID | given).claims
    assert str(one.since) == "2026-03-01"
    assert (one.until, one.value, one.slot, one.mode, one.used) == (None, "120", "price", Mode.CHANGE, ["2"])


def test_nothing_asserted_is_an_answer() -> None:
    assert _read(reading("Thanks!")).claims == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 2}, {"n": 0}, {"n": "a"}, {"slot": "shoe size"}, {"mode": "shouted"}, {"claim": " "}, {"used": ["b"]},
        {"used": ["2"]}, {"told": "perhaps"},
    ],
    ids=str,
)  # fmt: skip
def test_a_number_letter_slot_or_mode_that_nobody_named_makes_a_reply_malformed(wrong: dict[str, Any]) -> None:
    """E1, B11: it is asked for again, never half believed."""
    request = reading("I keep bees.", message(1, "I see.", is_read=False))
    with pytest.raises(MalformedReply):
        _read(request, SAID, SAID | wrong)


def test_what_stands_beside_is_no_answers_subject() -> None:
    with pytest.raises(MalformedReply, match="unknown message 2"):
        _read(reading("I keep bees.", message(1, "I drink tea.", is_read=False)), SAID | {"n": 2})


# --- What is asked again


def test_halves_cover_all_messages_once_each_with_its_own_company() -> None:
    """B11: as with verdicts; the two keep what is known."""
    texts = [f"I keep {n} hives." for n in range(5)]
    beside = message(9, "I see.", is_read=False)
    request = replace(reading(*texts[:3], beside, *texts[3:]), known=(KnownPerson(name="Mara", slots=("pet",)),))
    halves = halve_request(request=request)
    assert halves is not None
    assert all(isinstance(half, ClaimsRequest) and half.known == request.known for half in halves)
    assert [one.text for half in halves for one in half.episodes] == [*texts[:3], "I see.", *texts[3:]]
    assert len({hash_request(request=one) for one in (request, *halves)}) == 3


def test_a_message_left_alone_is_asked_about_without_company() -> None:
    """B11: what stands beside it may be what spoils the call."""
    halves = halve_request(request=reading(message(0, "I see.", is_read=False), "I keep bees.", "I drink tea."))
    assert halves is not None
    assert [[one.text for one in half.episodes] for half in halves] == [["I keep bees."], ["I drink tea."]]
    assert halve_request(request=halves[0]) is None


@pytest.mark.django_db(transaction=True)
def test_one_message_that_spoils_every_call_fails_alone(step: Step, server: ModelServer) -> None:
    """E1, B11: a malformed reply is asked for once more, then halved; the other eleven are read."""

    def choke(asked: Asked) -> Any:
        return garbage() if any("poison" in one["text"] for one in asked.messages) else sensible(asked)

    server.script = choke
    texts = [f"I keep {n} hives." if n != 7 else "I sell poison." for n in range(12)]
    [failure] = step.ask(ModelRequest(key="read", request=reading(*texts)))
    assert [one.text for one in failure.request.episodes] == ["I sell poison."]
    told = [one.claim for given in step.answers if isinstance(given.reply, ClaimsReply) for one in given.reply.claims]
    assert len(told) == 11
    assert len(server.calls("read")) <= 12


@pytest.mark.django_db(transaction=True)
def test_a_claim_of_a_message_not_shown_is_refused(step: Step, server: ModelServer) -> None:
    """E1: a model that was talked into telling of others has answered nothing."""
    server.script = lambda asked: answer({"claims": [claim(asked.messages[0], n=99)]})
    assert len(step.ask(ModelRequest(key="read", request=reading(PLANTED[8])))) == 1
    assert step.answers == []
