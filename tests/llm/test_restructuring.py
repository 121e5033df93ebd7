"""B12, B13, B15: what may be answered to a revision, a split and a merge, and what is answered offline."""

import json

import pytest

from memory.language.subjects import Timeframe
from memory.llm.offline import OfflineModel
from memory.llm.replies import Division, MalformedReply, Synthesis, Union, reply_schema, validate_reply
from memory.llm.requests import Purpose, Request, hash_request
from memory.llm.types import LanguageModel
from tests.llm.asking import REQUESTS, merge, revision, split
from tests.llm.conftest import openai_model
from tests.model_server import ModelServer

OFFLINE = OfflineModel()
TABS = ("Mara indents with tabs at work.", "Mara uses tabs at work.", "At work it is tabs for Mara, she says.")
SPACES = ("Mara prefers spaces.", "Mara likes spaces best.", "Mara prefers spaces to anything else.")


def answer(request: Request, **given: object) -> object:
    return validate_reply(request, json.dumps(given))


def part(statement: str, context: str) -> dict[str, str]:
    return {
        "statement": statement, "subject": "Mara", "predicate": "prefers", "context": context, "timeframe": "current"
    }  # fmt: skip


@pytest.fixture(params=["openai", "offline"])
def either(request: pytest.FixtureRequest, server: ModelServer) -> LanguageModel:
    """Return each implementation in turn."""
    return openai_model(server) if request.param == "openai" else OFFLINE


@pytest.mark.parametrize(
    ("asked", "shape"),
    [
        (revision(*SPACES), Synthesis),
        (split(*SPACES, in_favour=TABS), Division),
        (merge("Mara prefers tabs.", "Tabs are what Mara prefers."), Union),
    ],
)
def test_both_models_answer_in_the_same_shape(either: LanguageModel, asked: Request, shape: type) -> None:
    """B12, B13, B15: and the stored text reads as the same reply."""
    completion = either.complete(request=asked, timeout=5)
    assert isinstance(completion.reply, shape)
    assert validate_reply(asked, completion.raw) == completion.reply


@pytest.mark.parametrize(
    "parts",
    [
        [part("Mara prefers tabs at work.", "at work")],
        [part("Tabs.", "at work"), part("Spaces.", "At work")],
        [part("", "at work"), part("Spaces.", "at home")],
        [part(f"Statement {n}.", str(n)) for n in range(3)],
    ],
)
def test_a_division_has_two_statements_with_contexts_of_their_own(parts: list[dict[str, str]]) -> None:
    """B12."""
    with pytest.raises(MalformedReply):
        answer(split("b", in_favour=("a",)), parts=parts)


def test_a_division_may_be_declined() -> None:
    """B12: where no circumstance parts the episodes."""
    assert answer(split("b", in_favour=("a",)), parts=[]) == Division(parts=[])


def test_a_union_may_keep_the_words_that_there_are() -> None:
    """B13."""
    given = {"subject": "", "predicate": "", "context": "general", "timeframe": "current"}
    assert answer(merge("a", "b"), same=True, statement="", **given) == Union(
        same=True, statement="", subject="", predicate="", timeframe=Timeframe.CURRENT
    )


@pytest.mark.parametrize("purpose", list(Purpose))
def test_every_schema_requires_every_field(purpose: Purpose) -> None:
    """B11: in the strict form that servers ask for."""
    schema = reply_schema(request=REQUESTS[purpose])
    assert schema["required"] == list(schema["properties"])


def test_the_hint_of_similarity_makes_no_other_request() -> None:
    assert hash_request(request=merge("a", "b", similarity=0.93)) == hash_request(request=merge("a", "b"))


def test_offline_a_revision_is_the_central_contradiction() -> None:
    """B15, offline: somebody's own words, never the old ones."""
    reply = OFFLINE.complete(request=revision(*SPACES, in_favour=TABS), timeout=1).reply
    assert isinstance(reply, Synthesis)
    assert "spaces" in reply.statement


def test_offline_nothing_is_revised_into_small_talk() -> None:
    """B15, offline."""
    reply = OFFLINE.complete(request=revision("Thanks!", "Thank you!", "Many thanks!"), timeout=1).reply
    assert isinstance(reply, Synthesis)
    assert reply.statement == ""


def test_offline_a_split_is_declined() -> None:
    """B12, F6: a circumstance is found by models that write."""
    at_work, at_home = ("Mara prefers tabs at work.",), ("Mara prefers spaces at home.",)
    assert OFFLINE.complete(request=split(*at_home, in_favour=at_work), timeout=1).reply == Division(parts=[])


@pytest.mark.parametrize(
    ("other", "similarity", "same"),
    [
        ("MARA prefers tabs!", 0.95, True),
        ("MARA prefers tabs!", 0.92, False),
        ("Mara never prefers tabs.", 0.99, False),
        ("Ben prefers tabs.", 0.99, False),
    ],
)
def test_offline_two_are_one_only_where_each_bears_out_the_other(other: str, similarity: float, same: bool) -> None:
    """B13, offline."""
    reply = OFFLINE.complete(request=merge("Mara prefers tabs.", other, similarity=similarity), timeout=1).reply
    assert isinstance(reply, Union)
    assert reply.same is same
