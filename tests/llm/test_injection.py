"""B11, F1: what a text orders changes no verdict, and no reading, but what its own words are judged to be."""

import json
from typing import Any

import pytest

from memory.llm.offline import OfflineModel
from memory.llm.prompts import build_prompt
from memory.llm.replies import Reading, Verdicts
from memory.llm.requests import Message, ReadingRequest, Request
from memory.llm.runner import ModelRequest
from memory.llm.types import FailureKind
from tests.injections import PLANTED
from tests.llm.asking import classification, message, reading, summary
from tests.llm.steps import Step
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, about, judged, new, sensible

pytestmark = pytest.mark.django_db(transaction=True)

ORDINARY = (
    "Mara prefers short meetings. #supports",
    "Mara does not like short meetings. #contradicts",
    "Mara keeps bees behind the house. #irrelevant",
)
SAID = ("I live in Berlin now.", "My sister is called Ana.")
BELIEVED = ("Mara: “I live in Leipzig.”", "Mara: “I'm a vegetarian.”")


def obedient(asked: Asked) -> dict[str, Any]:
    """Answer as a model does that obeys whatever reaches it outside of its data: a line that is no JSON object.

    A reading states each message, or bears out the belief in its words.
    """
    lines = asked.body["messages"][1]["content"].split("\n")
    inside = lines[1:-1]
    is_sound = lines[0] == f"BEGIN {asked.fence}" and lines[-1] == f"END {asked.fence}"
    is_sound = is_sound and all(line.startswith("{") and isinstance(json.loads(line), dict) for line in inside)
    if asked.purpose == "read":
        said = [(one["m"], one["text"]) for one in asked.messages] if is_sound else []
        return {
            "new": [new(m, text) for m, text in said if text not in asked.held],
            "about": [about(m, asked.held[text], "SUPPORTS") for m, text in said if text in asked.held],
        }
    return sensible(asked) if is_sound else judged(asked, lambda belief, one: ("PARTIAL", "I obey"))


def _verdicts(step: Step) -> dict[str, str]:
    replies = [given.reply for given in step.answers if isinstance(given.reply, Verdicts)]
    return {one.id: one.verdict for reply in replies for one in reply.verdicts}


def _with(planted: str, *, role: str = "tool") -> ReadingRequest:
    """Ask for a reading of two messages, with a planted one between them."""
    first, second = SAID
    return reading(first, _planted(planted, role), message(2, second), beliefs=BELIEVED)


def _planted(text: str, role: str) -> Message:
    return message(1, text, role=role, speaker="Mara" if role == "user" else "", is_read=role == "user")


def _lines(reply: Any, *, apart_from: int = 0) -> list[tuple[int, str, str]]:
    """Return what a reading says of other messages than one, with the numbers of `SAID`."""
    assert isinstance(reply, Reading)
    stated = [(line.m, line.statement, line.replaces) for line in reply.new if line is not None]
    judged = [(word.m, word.b, str(word.verdict)) for word in reply.about if word is not None]
    return [(min(m, len(SAID)), one, other) for m, one, other in (*stated, *judged) if m != apart_from]


def test_there_are_twenty_cases() -> None:
    assert len(set(PLANTED)) == 20


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_stays_one_string_of_the_data(planted: str) -> None:
    """B11: in every purpose."""
    requests: list[Request] = [classification(planted, statement=planted), summary(planted)]
    for request in requests:
        lines = build_prompt(request=request, fence="0000").user.split("\n")
        assert [json.loads(line).get("text", planted) for line in lines[1:-1]] == [planted] * (len(lines) - 2)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_server_gives_the_others_the_same_verdicts(step: Step, server: ModelServer, planted: str) -> None:
    """B11: one that obeys what reaches it as anything but data."""
    server.script = obedient
    assert step.ask(ModelRequest(key="belief", request=classification(*ORDINARY, planted))) == []
    verdicts = list(_verdicts(step).values())
    assert verdicts[:3] == ["SUPPORTS", "CONTRADICTS", "IRRELEVANT"]


@pytest.mark.parametrize("planted", PLANTED)
def test_the_offline_reader_gives_the_others_the_same_verdicts(planted: str) -> None:
    """B11: offline, and what is planted supports nothing."""
    alone = OfflineModel().complete(request=classification(*ORDINARY), timeout=5).reply
    beside = OfflineModel().complete(request=classification(*ORDINARY, planted), timeout=5).reply
    assert isinstance(alone, Verdicts)
    assert isinstance(beside, Verdicts)
    assert beside.verdicts[:3] == alone.verdicts
    assert beside.verdicts[3].verdict != "SUPPORTS"


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_the_offline_reader_reads_the_others_the_same(planted: str, role: str) -> None:
    """F1, F6: and what is planted founds nothing about its order's object."""
    alone = OfflineModel().complete(request=reading(*SAID, beliefs=BELIEVED), timeout=5).reply
    beside = OfflineModel().complete(request=_with(planted, role=role), timeout=5).reply
    assert _lines(alone)
    assert _lines(beside, apart_from=2 if role == "user" else 0) == _lines(alone)


def test_verdicts_on_what_nobody_asked_about_are_refused(step: Step, server: ModelServer) -> None:
    """B11: a model that was talked into judging another episode has answered nothing."""

    def overdone(asked: Asked) -> dict[str, Any]:
        [given] = sensible(asked)["verdicts"]
        return {"verdicts": [{**given, "texts": [*given["texts"], "12 C told so"]}]}

    server.script = overdone
    failures = step.ask(ModelRequest(key="belief", request=classification(PLANTED[5])))
    assert [failure.kind for failure in failures] == [FailureKind.MALFORMED]
    assert step.answers == []
