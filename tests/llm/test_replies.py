"""What counts as an answer, and what never does (B10, B11)."""

import json

import pytest

from memory.domain.statements import Timeframe
from memory.domain.verdicts import Verdict
from memory.llm.replies import MalformedReply, Synthesis, Verdicts, reply_schema, validate_reply
from memory.llm.requests import Purpose, halve_request, hash_request
from tests.llm.asking import classification, synthesis

GOOD = {"statement": "Mara prefers tea.", "subject": "Mara", "predicate": "prefers tea", "timeframe": "current"}
VERDICT = {"id": "ep_000000000000", "verdict": "SUPPORTS", "reason": "says so"}


def test_a_synthesis_has_a_general_context_unless_it_names_one() -> None:
    """B10: the context is 'general' where a statement always holds."""
    reply = validate_reply(synthesis(), json.dumps(GOOD))
    assert reply == Synthesis(
        statement="Mara prefers tea.",
        subject="Mara",
        predicate="prefers tea",
        context="general",
        timeframe=Timeframe.CURRENT,
    )


def test_a_blank_statement_is_an_answer_that_says_there_is_none() -> None:
    """B10: only what the episodes support; nothing, where they have no point in common."""
    reply = validate_reply(synthesis(), json.dumps(GOOD | {"statement": " ", "subject": "", "predicate": ""}))
    assert isinstance(reply, Synthesis)
    assert reply.statement == ""


def test_what_no_column_holds_is_dropped_from_a_reply() -> None:
    """JSON can spell NUL; PostgreSQL's text and jsonb cannot hold it, and a stored reply is read again and again."""
    stated = validate_reply(synthesis(), json.dumps(GOOD | {"statement": "Mara prefers\0 tea."}))
    assert isinstance(stated, Synthesis)
    assert stated.statement == "Mara prefers tea."
    said = [
        {"id": episode.id, "verdict": "SUPPORTS", "reason": "It\0 says so."} for episode in classification().episodes
    ]
    judged = validate_reply(classification(), json.dumps({"verdicts": said}))
    assert isinstance(judged, Verdicts)
    assert {verdict.reason for verdict in judged.verdicts} == {"It says so."}


@pytest.mark.parametrize("wrapped", ["```json\n{}\n```", "```\n{}\n```", "\n ```JSON\n{}```\n"])
def test_code_fences_around_a_reply_are_tolerated(wrapped: str) -> None:
    reply = validate_reply(synthesis(), wrapped.replace("{}", json.dumps(GOOD)))
    assert isinstance(reply, Synthesis)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "   ",
        "<html><body>Please log in.</body></html>",
        "I see nothing of note.",
        '{"statement": "Mara',
        "[]",
        "null",
        json.dumps(GOOD | {"timeframe": "sometimes"}),
        json.dumps(GOOD | {"subject": "  "}),
        json.dumps(GOOD | {"statement": 7}),
        json.dumps(GOOD | {"confidence": 0.9}),
        json.dumps({name: value for name, value in GOOD.items() if name != "subject"}),
    ],
)
def test_anything_else_is_malformed(raw: str) -> None:
    """B11: a reply that does not validate is malformed, never empty."""
    with pytest.raises(MalformedReply):
        validate_reply(synthesis(), raw)


def test_verdicts_are_read_one_for_each_episode() -> None:
    """B11: a verdict each."""
    reply = validate_reply(classification(), json.dumps({"verdicts": [VERDICT]}))
    assert isinstance(reply, Verdicts)
    assert [(item.id, item.verdict) for item in reply.verdicts] == [("ep_000000000000", Verdict.SUPPORTS)]


@pytest.mark.parametrize(
    ("verdicts", "fault"),
    [
        ([], "missing id"),
        ([VERDICT, VERDICT], "duplicate id"),
        ([VERDICT, VERDICT | {"id": "ep_unknown00000"}], "unknown id"),
        ([VERDICT | {"verdict": "supports"}], "verdicts.0.verdict"),
        ([VERDICT | {"verdict": "REFUTES"}], "verdicts.0.verdict"),
    ],
)
def test_ids_must_be_those_asked_about(verdicts: list[dict[str, str]], fault: str) -> None:
    """B11: an unknown id makes a reply malformed; so does a missing or a repeated one."""
    with pytest.raises(MalformedReply, match=fault):
        validate_reply(classification(), json.dumps({"verdicts": verdicts}))


def test_a_fault_is_named_without_quoting_the_reply() -> None:
    with pytest.raises(MalformedReply) as caught:
        validate_reply(synthesis(), json.dumps(GOOD | {"timeframe": "secret words"}))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("purpose", list(Purpose))
def test_the_strict_schema_requires_every_field_and_allows_no_other(purpose: Purpose) -> None:
    schema = reply_schema(purpose=purpose)
    objects = [schema, *schema.get("$defs", {}).values()]
    assert all(
        item["required"] == list(item["properties"]) and item["additionalProperties"] is False
        for item in objects
        if item.get("type") == "object"
    )
    assert "default" not in json.dumps(schema)


def test_halving_keeps_every_episode_once() -> None:
    """B11: a batch is halved."""
    whole = classification("a", "b", "c")
    halves = halve_request(request=whole)
    assert halves is not None
    assert [len(half.episodes) for half in halves] == [1, 2]
    assert halves[0].episodes + halves[1].episodes == whole.episodes


def test_a_single_episode_and_a_synthesis_cannot_be_halved() -> None:
    assert halve_request(request=classification("a")) is None
    assert halve_request(request=synthesis()) is None


def test_a_hash_follows_the_words_and_not_the_hint() -> None:
    """B7: what was judged once is recognised; the similarity is no part of it."""
    plain = classification("a")
    hinted = type(plain)(
        statement=plain.statement,
        subject=plain.subject,
        context=plain.context,
        language=plain.language,
        episodes=plain.episodes,
        similarities=(0.8,),
    )
    assert hash_request(request=hinted) == hash_request(request=plain)
    assert hash_request(request=plain) != hash_request(request=classification("b"))
