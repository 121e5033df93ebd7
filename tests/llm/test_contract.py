"""What each implementation of a language model promises."""

from pathlib import Path

import pytest

from memory.language.clauses import EVIDENCE
from memory.llm.local import LocalVerdicts
from memory.llm.offline import OfflineModel
from memory.llm.replies import ClaimsReply, Facts, StatedClaim, Summary, Synthesis, Verdicts, validate_reply
from memory.llm.requests import ClaimsRequest, MessageText, Purpose
from memory.llm.types import LanguageModel
from tests.llm.asking import classification, facts, message, reading, summary, synthesis
from tests.llm.conftest import openai_model
from tests.llm.tiny_pairs import make_classifier
from tests.model_server import ModelServer
from tests.test_claims_data import read_messages

TEXTS = ("Mara prefers short meetings.", "Mara likes her meetings short.", "Short meetings suit Mara.")


@pytest.fixture(params=["openai", "offline", "local verdicts"])
def either(request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path) -> LanguageModel:
    """Return each implementation in turn."""
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


def test_facts_quote_the_turns_that_tell_them(either: LanguageModel) -> None:
    """L3: typed facts, each with its turn; a question tells nothing."""
    request = facts("I prefer short meetings in Berlin.", "What do you think?", "My sister is called Ana.")
    completion = either.complete(request=request, timeout=5)
    assert isinstance(completion.reply, Facts)
    assert [fact.turns for fact in completion.reply.facts] == [[1], [3]]
    assert validate_reply(request, completion.raw) == completion.reply


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


def test_the_same_request_gets_the_same_answer(either: LanguageModel) -> None:
    first, second = (either.complete(request=synthesis(*TEXTS), timeout=5) for _ in range(2))
    assert first.reply == second.reply


def _claims(model: LanguageModel, request: ClaimsRequest) -> list[StatedClaim]:
    completion = model.complete(request=request, timeout=5)
    assert isinstance(completion.reply, ClaimsReply)
    assert validate_reply(request, completion.raw) == completion.reply
    return completion.reply.claims


def test_what_is_said_in_the_first_person_is_told_of_its_speaker(either: LanguageModel) -> None:
    """E1, E2: a claim stands alone, whoever of several speaks."""
    request = reading("I prefer short meetings.", message(2, "I drink tea at four.", speaker="Ben"))
    said = [(claim.n, claim.claim) for claim in _claims(either, request)]
    assert said == [(1, "Mara prefers short meetings."), (2, "Ben drinks tea at four.")]


def test_only_what_is_to_be_read_is_read(either: LanguageModel) -> None:
    """E1: what stands beside it gives no claims."""
    beside = message(0, "I keep bees.", is_read=False)
    request = reading(beside, "I prefer short meetings.", message(2, "Splendid, as ever.", role="assistant"))
    assert [claim.n for claim in _claims(either, request)] == [1]


@pytest.mark.parametrize("language", ["en", "de"])
def test_labelled_messages_are_read_by_their_numbers(either: LanguageModel, language: str) -> None:
    """E1, E2: claims are of messages shown, and an assistant asserts nothing about its user."""
    labelled = read_messages(language)[::4]
    heard = []
    for start in range(0, len(labelled), 12):
        messages = [_labelled(place, one, language) for place, one in enumerate(labelled[start : start + 12])]
        claims = _claims(either, ClaimsRequest(episodes=tuple(messages)))
        heard += [messages[claim.n - 1].role for claim in claims if claim.mode in EVIDENCE]
    assert len(heard) > len(labelled) / 3
    assert set(heard) == {"user"}


def _labelled(place: int, said: dict[str, str], language: str) -> MessageText:
    return message(place, said["text"], speaker=said["user"], role=said["role"], language=language)


@pytest.mark.parametrize("purpose", list(Purpose))
def test_every_purpose_has_a_named_model(either: LanguageModel, purpose: Purpose) -> None:
    assert either.model_for(purpose)
    assert isinstance(either.parameters_for(purpose), dict)


def test_what_calls_itself_offline_costs_nothing(either: LanguageModel) -> None:
    """Offline is plainly labelled, and free."""
    completion = either.complete(request=classification(*TEXTS), timeout=5)
    assert either.is_offline == either.model_for("synthesize").startswith("offline")
    assert either.is_offline == (completion.input_tokens + completion.output_tokens == 0)
