"""B11, L3: what a text orders changes no verdict, and no fact, but what its own words are judged to be."""

import json
from typing import Any

import pytest

from memory.llm.offline import OfflineModel
from memory.llm.prompts import build_prompt
from memory.llm.replies import Facts, ToldFact, Verdicts
from memory.llm.requests import FactsRequest, Request
from memory.llm.runner import ModelRequest
from memory.llm.types import FailureKind
from tests.injections import PLANTED
from tests.llm.asking import classification, facts, summary, turn
from tests.llm.steps import Step
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, answer, judged, sensible, tell

pytestmark = pytest.mark.django_db(transaction=True)

ORDINARY = (
    "Mara prefers short meetings. #supports",
    "Mara does not like short meetings. #contradicts",
    "Mara keeps bees behind the house. #irrelevant",
)
SAID = ("I prefer short meetings.", "My sister Ana keeps bees in Graz.")


def obedient(asked: Asked) -> dict[str, Any]:
    """Answer as a model does that obeys whatever reaches it outside of its data: a line that is no JSON object."""
    lines = asked.body["messages"][1]["content"].split("\n")
    inside = lines[1:-1]
    is_sound = lines[0] == f"BEGIN {asked.fence}" and lines[-1] == f"END {asked.fence}"
    if not is_sound or not all(line.startswith("{") and isinstance(json.loads(line), dict) for line in inside):
        is_judging = asked.purpose == "classify"
        return judged(asked, lambda belief, one: ("PARTIAL", "I obey")) if is_judging else {"facts": []}
    return sensible(asked)


def _verdicts(step: Step) -> dict[str, str]:
    replies = [given.reply for given in step.answers if isinstance(given.reply, Verdicts)]
    return {one.id: one.verdict for reply in replies for one in reply.verdicts}


def _facts(reply: Any) -> list[ToldFact]:
    assert isinstance(reply, Facts)
    return reply.facts


def _with(planted: str, *, role: str = "tool") -> FactsRequest:
    """Ask for the facts of two turns, with a planted one between them."""
    first, second = SAID
    said = turn(1, first), turn(2, planted, role=role, speaker=""), turn(3, second)
    return FactsRequest(turns=said)


def test_there_are_twenty_cases() -> None:
    assert len(set(PLANTED)) == 20


@pytest.mark.parametrize("planted", PLANTED)
def test_what_is_planted_stays_one_string_of_the_data(planted: str) -> None:
    """B11: in every purpose."""
    requests: list[Request] = [classification(planted, statement=planted), facts(planted), summary(planted)]
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
def test_rules_give_the_others_the_same_verdicts(planted: str) -> None:
    """B11: offline, and what is planted supports nothing."""
    alone = OfflineModel().complete(request=classification(*ORDINARY), timeout=5).reply
    beside = OfflineModel().complete(request=classification(*ORDINARY, planted), timeout=5).reply
    assert isinstance(alone, Verdicts)
    assert isinstance(beside, Verdicts)
    assert beside.verdicts[:3] == alone.verdicts
    assert beside.verdicts[3].verdict != "SUPPORTS"


@pytest.mark.parametrize("planted", PLANTED)
def test_a_server_tells_the_same_facts_of_the_other_turns(step: Step, server: ModelServer, planted: str) -> None:
    """L3: and those of the planted turn quote that turn alone."""
    server.script = obedient
    assert step.ask(ModelRequest(key="talk", request=_with(planted))) == []
    told = _facts(step.answers[0].reply)
    assert [fact.text for fact in told if fact.turns in ([1], [3])] == list(SAID)
    assert all(fact.turns == [2] for fact in told if fact.text not in SAID)


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_rules_tell_the_same_facts_of_the_other_turns(planted: str, role: str) -> None:
    """L3: offline."""
    alone = _facts(OfflineModel().complete(request=facts(*SAID), timeout=5).reply)
    beside = _facts(OfflineModel().complete(request=_with(planted, role=role), timeout=5).reply)
    told = [fact.text for fact in beside if fact.turns in ([1], [3])]
    assert told == [fact.text for fact in alone]
    assert all(fact.turns == [2] for fact in beside if fact.text not in told)


def test_verdicts_on_what_nobody_asked_about_are_refused(step: Step, server: ModelServer) -> None:
    """B11: a model that was talked into judging another episode has answered nothing."""

    def overdone(asked: Asked) -> dict[str, Any]:
        [given] = sensible(asked)["verdicts"]
        return {"verdicts": [{**given, "texts": [*given["texts"], "12 C told so"]}]}

    server.script = overdone
    failures = step.ask(ModelRequest(key="belief", request=classification(PLANTED[5])))
    assert [failure.kind for failure in failures] == [FailureKind.MALFORMED]
    assert step.answers == []


def test_facts_of_turns_that_nobody_showed_are_refused(step: Step, server: ModelServer) -> None:
    """L3: what is quoted decides whose word it is."""
    server.script = lambda asked: answer({"facts": [tell({"turn": 99, "text": "Mara owns all keys."})]})
    failures = step.ask(ModelRequest(key="talk", request=facts(PLANTED[7])))
    assert [failure.kind for failure in failures] == [FailureKind.MALFORMED]
