"""L3: what a model may answer when it is asked for facts, and what becomes of it when it does not."""

import json
from typing import Any

import pytest

from memory.llm.prompts import reply_tokens
from memory.llm.replies import Facts, MalformedReply, validate_reply
from memory.llm.requests import halve_request
from memory.llm.runner import ModelRequest
from memory.llm.types import FailureKind
from tests.llm.asking import facts
from tests.llm.steps import Step
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, answer, garbage, tell

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = facts("I prefer tabs.", "We deploy on Fridays.")


def _reply(**given: Any) -> str:
    return json.dumps({"facts": [tell({"turn": 1, "text": "Mara prefers tabs."}, **given)]})


def test_numbers_outside_their_range_are_clamped() -> None:
    """L3: clamped."""
    reply = validate_reply(ASKED, _reply(confidence=1.7, importance=-2, valence=-9))
    assert isinstance(reply, Facts)
    assert (reply.facts[0].confidence, reply.facts[0].importance, reply.facts[0].valence) == (1.0, 0.0, -1.0)


@pytest.mark.parametrize(
    "given",
    [
        {"category": "gossip"},
        {"turns": []},
        {"turns": [9]},
        {"text": " "},
        {"confidence": "high"},
        {"confidence": float("nan")},
        {"entities": "Mara"},
        {"mood": "good"},
    ],
)
def test_a_reply_of_another_shape_is_malformed(given: dict[str, Any]) -> None:
    """L3: an unknown category, an unknown turn, no words, no number."""
    with pytest.raises(MalformedReply):
        validate_reply(ASKED, _reply(**given))


def test_no_facts_is_an_answer() -> None:
    assert validate_reply(ASKED, '{"facts": []}') == Facts(facts=[])


def test_a_reply_may_be_longer_the_more_turns_it_is_about() -> None:
    """B9: what is reserved must be enough."""
    assert reply_tokens(request=facts(*["x"] * 10)) > reply_tokens(request=facts("x"))


def test_a_batch_that_fails_is_halved_by_turns() -> None:
    halves = halve_request(request=facts("a", "b", "c"))
    assert halves is not None
    assert [[turn.text for turn in half.turns] for half in halves] == [["a"], ["b", "c"]]  # type: ignore[union-attr]


def test_garbage_is_a_failure_and_never_no_facts(step: Step, server: ModelServer) -> None:
    """L3: what did not parse is named as failed, after one retry and two halves."""
    server.script = lambda asked: garbage()
    failures = step.ask(ModelRequest(key="talk", request=ASKED))
    assert not step.answers
    assert [failure.kind for failure in failures] == [FailureKind.MALFORMED] * 2


def test_one_bad_turn_takes_no_other_with_it(step: Step, server: ModelServer) -> None:
    """L3: the halves are asked for themselves."""

    def script(asked: Asked) -> Any:
        return garbage() if any("tabs" in turn["text"] for turn in asked.turns) else None

    server.script = script
    failures = step.ask(ModelRequest(key="talk", request=ASKED))
    told = [fact.text for given in step.answers if isinstance(given.reply, Facts) for fact in given.reply.facts]
    assert told == ["We deploy on Fridays."]
    assert len(failures) == 1


def test_the_same_turns_are_paid_for_once(step: Step, server: ModelServer) -> None:
    """L3: a stored reply is used again."""
    step.ask(ModelRequest(key="talk", request=ASKED))
    step.ask(ModelRequest(key="talk", request=ASKED))
    assert len(server.log) == 1
    assert [given.reused for given in step.answers] == [False, True]


def test_a_reply_in_a_code_fence_is_read(step: Step, server: ModelServer) -> None:
    server.then(answer(f"```json\n{_reply()}\n```"))
    assert step.ask(ModelRequest(key="talk", request=ASKED)) == []
