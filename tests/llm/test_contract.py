"""What each implementation of a language model promises."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.life_scores import Message as LifeMessage
from benchmarks.quality.life_scores import read_lives
from benchmarks.quality.lives import LIVES
from memory.llm.local import LocalVerdicts
from memory.llm.offline import OfflineModel
from memory.llm.replies import LONGEST_STATEMENT, BeliefWord, Reading, Summary, Synthesis, Verdicts, validate_reply
from memory.llm.requests import Purpose, ReadingRequest
from memory.llm.types import LanguageModel
from tests.llm.asking import classification, message, reading, summary, synthesis
from tests.llm.conftest import openai_model
from tests.llm.tiny_pairs import make_classifier
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, about, new, sensible

TEXTS = ("Mara prefers short meetings.", "Mara likes her meetings short.", "Short meetings suit Mara.")
BERLIN, ANA, TEA = "I live in Berlin now.", "My sister is called Ana.", "I drink tea at four."


def overeager(asked: Asked) -> dict[str, Any]:
    """Quote the beginning of what is no small talk; name besides, as weak models do, what nobody showed."""
    if asked.purpose != "read":
        return sensible(asked)
    said = [(one["m"], one["by"], one["text"]) for one in asked.messages]
    quoted = [(m, f"{by}: “{' '.join(text.split()[:12])}”", by) for m, by, text in said if text.count(" ") > 2]
    invented = [new(99, "Mara owns a yacht."), new(1, "Mara " + "talks " * LONGEST_STATEMENT)]
    return {
        "new": [*invented, *(new(m, words, subject=by) for m, words, by in quoted if words not in asked.held)],
        "about": [
            about(1, "77", "SUPPORTS"),
            *(about(m, asked.held[words], "SUPPORTS") for m, words, _ in quoted if words in asked.held),
        ],
    }


@pytest.fixture(params=["openai", "offline", "local verdicts"])
def either(request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path) -> LanguageModel:
    """Return each implementation in turn."""
    server.script = overeager
    if request.param == "local verdicts":
        folder = make_classifier(tmp_path / "nli", words=["short", "meetings", "her", "likes"])
        return LocalVerdicts(base=OfflineModel(), classifier=str(folder))
    return openai_model(server) if request.param == "openai" else OfflineModel()


def test_a_synthesis_is_one_statement_about_a_subject(either: LanguageModel) -> None:
    """B10: statement, subject, predicate, context, timeframe."""
    completion = either.complete(request=synthesis(*TEXTS), timeout=5)
    assert isinstance(completion.reply, Synthesis)
    assert "meetings" in completion.reply.statement


def test_every_episode_gets_one_verdict_in_a_classification(either: LanguageModel) -> None:
    """B11: a verdict each."""
    request = classification(*TEXTS)
    completion = either.complete(request=request, timeout=5)
    assert isinstance(completion.reply, Verdicts)
    assert {item.id for item in completion.reply.verdicts} == {episode.id for episode in request.episodes}
    assert {item.belief for item in completion.reply.verdicts} == {"bl_0"}


def test_a_conversation_comes_down_to_a_few_sentences(either: LanguageModel) -> None:
    """R8: in the conversation's own terms."""
    completion = either.complete(request=summary(*TEXTS), timeout=5)
    assert isinstance(completion.reply, Summary)
    assert "meetings" in completion.reply.summary


def test_the_stored_text_reads_as_the_same_reply(either: LanguageModel) -> None:
    """A reply is stored before it is applied, and reused from its text."""
    request = classification(*TEXTS)
    completion = either.complete(request=request, timeout=5)
    assert validate_reply(request, completion.raw) == completion.reply


@pytest.mark.parametrize("asked", [synthesis(*TEXTS), reading(BERLIN, ANA)], ids=["synthesis", "reading"])
def test_the_same_request_gets_the_same_answer(either: LanguageModel, asked: Any) -> None:
    first, second = (either.complete(request=asked, timeout=5) for _ in range(2))
    assert first.reply == second.reply


# --- Readings (F1)


def _read(model: LanguageModel, request: ReadingRequest) -> Reading:
    """Return a reading that keeps to its request, read back from its text."""
    completion = model.complete(request=request, timeout=5)
    assert isinstance(completion.reply, Reading)
    assert validate_reply(request, completion.raw) == completion.reply
    return completion.reply


def _stated(reply: Reading) -> list[tuple[int, str]]:
    return [(line.m, line.subject) for line in reply.new if line is not None]


def test_what_is_said_in_the_first_person_is_told_of_its_speaker(either: LanguageModel) -> None:
    """F1, F2: a statement stands alone, whoever of several speaks."""
    reply = _read(either, reading(BERLIN, message(2, TEA, speaker="Ben")))
    assert _stated(reply) == [(1, "Mara"), (2, "Ben")]
    assert all(line.subject in line.statement for line in reply.new if line is not None)


def test_only_what_is_to_be_read_is_read(either: LanguageModel) -> None:
    """F1: what stands beside it states nothing, and has no number."""
    before = message(0, TEA, is_read=False)
    reply = _read(either, reading(before, BERLIN, message(2, "Splendid, as ever.", role="assistant", speaker="")))
    assert [m for m, _ in _stated(reply)] == [1]


def test_what_is_believed_already_is_borne_out_and_not_stated_again(either: LanguageModel) -> None:
    """F1: by the belief's number."""
    reply = _read(either, reading("Good morning!", ANA, beliefs=("Mara: “I keep bees.”", f"Mara: “{ANA}”")))
    assert _stated(reply) == []
    said = [(line.m, line.b, line.verdict) for line in reply.about if line is not None]
    assert said == [(2, "2", BeliefWord.SUPPORTS)]


def test_small_talk_is_an_empty_reading(either: LanguageModel) -> None:
    """F1: nothing said is an answer, and no fault."""
    reply = _read(either, reading("Thanks!", "Good morning!"))
    assert not any(reply.new)
    assert not any(reply.about)


def test_a_reading_names_only_what_it_was_shown(either: LanguageModel) -> None:
    """F1: over a part of a life, lines name messages, beliefs and entries that are there, in a sentence each."""
    life = read_lives(LIVES)[0]
    founded: dict[str, str] = {}
    for start in range(0, 36, 12):
        messages = [_said(place, one) for place, one in enumerate(life.messages[start : start + 12])]
        request = reading(*messages, beliefs=tuple(founded), person=life.user)
        reply = _read(either, request)
        lines = [line for line in reply.new if line is not None]
        labels = {str(n) for n in range(1, len(founded) + 1)} | {f"n{n}" for n in range(1, len(reply.new) + 1)}
        words = [word for word in reply.about if word is not None]
        assert {*(line.m for line in lines), *(word.m for word in words)} <= set(range(1, len(request.read) + 1))
        assert {word.b for word in words} <= labels
        assert {line.replaces for line in lines} | {line.because for line in lines} <= {"", *labels}
        assert all(0 < len(line.statement.split()) <= LONGEST_STATEMENT for line in lines)
        founded |= {line.statement: "" for line in lines}
    assert founded


def _said(place: int, one: LifeMessage) -> Any:
    speaker = "Mara" if one.role == "user" else ""
    return message(place, one.text, role=one.role, is_read=one.role == "user", speaker=speaker, session=one.session)


@pytest.mark.parametrize("purpose", list(Purpose))
def test_every_purpose_has_a_named_model(either: LanguageModel, purpose: Purpose) -> None:
    assert either.model_for(purpose)
    assert isinstance(either.parameters_for(purpose), dict)


def test_what_calls_itself_offline_costs_nothing(either: LanguageModel) -> None:
    """Offline is plainly labelled, and free."""
    completion = either.complete(request=classification(*TEXTS), timeout=5)
    assert either.is_offline == either.model_for("synthesize").startswith("offline")
    assert either.is_offline == (completion.input_tokens + completion.output_tokens == 0)
