"""What counts as an answer, and what never does (B10, B11)."""

import json
from dataclasses import replace

import pytest

from memory.domain.evidence import Verdict
from memory.language.subjects import Timeframe
from memory.llm.replies import (
    EpisodeVerdict,
    MalformedReply,
    Synthesis,
    Verdicts,
    reply_schema,
    validate_reply,
    write_reply,
)
from memory.llm.requests import ClassificationRequest, Purpose, halve_request, hash_request
from tests.llm.asking import REQUESTS, classification, synthesis

GOOD = {"statement": "Mara prefers tea.", "subject": "Mara", "predicate": "prefers tea", "timeframe": "current"}


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


@pytest.mark.parametrize(
    ("given", "read"), [("2026-03-09", "2026-03-09"), (" 2026-03-09 ", "2026-03-09"), ("", ""), ("last spring", "")]
)
def test_a_synthesis_says_since_when_or_not(given: str, read: str) -> None:
    """E5: what is no date is no answer, and spoils none."""
    reply = validate_reply(synthesis(), json.dumps(GOOD | {"since": given}))
    assert isinstance(reply, Synthesis)
    assert reply.since == read


def test_what_no_column_holds_is_dropped_from_a_reply() -> None:
    """JSON can spell NUL; PostgreSQL's text and jsonb cannot hold it, and a stored reply is read again and again."""
    stated = validate_reply(synthesis(), json.dumps(GOOD | {"statement": "Mara prefers\0 tea."}))
    assert isinstance(stated, Synthesis)
    assert stated.statement == "Mara prefers tea."
    judged = validate_reply(classification(), said("1 C It\0 denies it."))
    assert isinstance(judged, Verdicts)
    assert [verdict.reason for verdict in judged.verdicts] == ["It denies it."]


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


def said(*texts: str, belief: str = "A") -> str:
    """Write what a model says of one belief."""
    return json.dumps({"verdicts": [{"belief": belief, "texts": texts}]})


def test_numbers_and_letters_are_read_as_what_was_asked_about() -> None:
    """B11: a verdict each; a model sees no id."""
    reply = validate_reply(classification("a", "b"), said("1 S", "2 C spaces now"))
    assert isinstance(reply, Verdicts)
    assert [(item.id, item.verdict, item.reason) for item in reply.verdicts] == [
        ("ep_000000000000", Verdict.SUPPORTS, ""),
        ("ep_000000000001", Verdict.CONTRADICTS, "spaces now"),
    ]


@pytest.mark.parametrize("text", ["1 P only in Go", "1: P only in Go", "[1] P: only in Go", "1P - only in Go"])
def test_a_verdict_may_be_written_with_other_marks(text: str) -> None:
    reply = validate_reply(classification(), said(text))
    assert isinstance(reply, Verdicts)
    assert [(item.verdict, item.reason) for item in reply.verdicts] == [(Verdict.PARTIAL, "only in Go")]


def test_several_beliefs_are_told_apart_by_their_letters() -> None:
    """B11: in whatever order a model takes them."""
    asked = classification("a", statements=("Mara prefers tabs.", "Mara drinks tea."))
    lists = [{"belief": "B", "texts": ["1 I"]}, {"belief": "A", "texts": ["1 S"]}]
    reply = validate_reply(asked, json.dumps({"verdicts": lists}))
    assert isinstance(reply, Verdicts)
    assert {item.belief: item.verdict for item in reply.verdicts} == {
        "bl_0": Verdict.SUPPORTS,
        "bl_1": Verdict.IRRELEVANT,
    }


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (said(), "missing number 1"),
        (said("1 S", "1 S"), "duplicate number"),
        (said("1 S", "2 S"), "unknown number"),
        (said("1 supports"), "no number and letter"),
        (said("1 R"), "no number and letter"),
        (said("1 SUPPORTS"), "no number and letter"),
        (said("1 S", belief="B"), "unknown belief"),
        (json.dumps({"verdicts": []}), "missing belief A"),
        (json.dumps({"verdicts": [{"belief": "A", "texts": ["1 S"]}] * 2}), "duplicate belief"),
    ],
)
def test_numbers_must_be_those_asked_about(raw: str, fault: str) -> None:
    """B11: an unknown number makes a reply malformed; so does a missing or a repeated one, or another belief's."""
    with pytest.raises(MalformedReply, match=fault):
        validate_reply(classification(), raw)


@pytest.mark.parametrize("texts", [("a",), ("a", "b", "c")])
def test_a_written_reply_reads_as_the_same(texts: tuple[str, ...]) -> None:
    asked = classification(*texts, statements=("Mara prefers tabs.", "Mara drinks tea."))
    verdicts = [
        EpisodeVerdict(belief=belief.id, id=episode.id, verdict=Verdict.PARTIAL, reason="some: days")
        for belief in asked.beliefs
        for episode in asked.episodes
    ]
    reply = Verdicts(verdicts=verdicts)
    assert validate_reply(asked, write_reply(request=asked, reply=reply)) == reply


def test_a_fault_is_named_without_quoting_the_reply() -> None:
    with pytest.raises(MalformedReply) as caught:
        validate_reply(synthesis(), json.dumps(GOOD | {"timeframe": "secret words"}))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("purpose", list(Purpose))
def test_the_strict_schema_requires_every_field_and_allows_no_other(purpose: Purpose) -> None:
    schema = reply_schema(request=REQUESTS[purpose])
    lists = [part["items"] for part in schema["properties"].values() if "items" in part]
    objects = [schema, *schema.get("$defs", {}).values(), *lists]
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


def test_halving_takes_beliefs_apart_first() -> None:
    """B11: one that spoils its answers costs the others none; and the hints go with what they belong to."""
    rows = ((0.1, 0.4), (0.2, 0.5), (0.3, 0.6))
    whole = replace(classification("a", "b", statements=("x", "y", "z")), similarities=rows)
    halves = halve_request(request=whole)
    assert halves is not None
    parts = [half for half in halves if isinstance(half, ClassificationRequest)]
    assert [len(part.beliefs) for part in parts] == [1, 2]
    assert [part.similarities for part in parts] == [rows[:1], rows[1:]]
    of_one = halve_request(request=parts[0])
    assert of_one is not None
    assert [part.similarities for part in of_one if isinstance(part, ClassificationRequest)] == [((0.1,),), ((0.4,),)]


def test_a_single_episode_and_a_synthesis_cannot_be_halved() -> None:
    assert halve_request(request=classification("a")) is None
    assert halve_request(request=synthesis()) is None


def test_a_hash_follows_the_words_and_not_the_hint() -> None:
    """B7: what was judged once is recognised; the similarity is no part of it."""
    plain = classification("a")
    hinted = replace(plain, similarities=((0.8,),))
    assert hash_request(request=hinted) == hash_request(request=plain)
    assert hash_request(request=plain) != hash_request(request=classification("b"))
