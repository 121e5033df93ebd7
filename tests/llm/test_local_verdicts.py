"""Verdicts on pairs from a classifier on this machine, behind the same door as any language model (B11)."""

from pathlib import Path

import pytest
from pytest_django import Settings

from memory import checks
from memory.domain.evidence import Verdict
from memory.llm.offline import OFFLINE_MODEL
from memory.llm.onnx_models import PairClasses, PairClassifier
from memory.llm.registry import language_model
from memory.llm.replies import Contradiction, Synthesis, Verdicts
from memory.llm.requests import (
    ClassificationRequest,
    ContradictionRequest,
    EpisodeText,
    Purpose,
    StatedBelief,
)
from memory.llm.types import CallFailed, FailureKind, LanguageModel
from memory.models import JobVerdict, ModelCall
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.llm.asking import synthesis
from tests.llm.tiny_pairs import make_classifier
from tests.recall.memories import believed, remembered

WORDS = (
    "Mara",
    "rides",
    "her",
    "bike",
    "to",
    "work",
    "carry",
    "wheels",
    "two",
    "every",
    "day",
    "is",
    "4",
    "9",
    "minutes",
)
BIKE = "Mara rides her bike to work."


@pytest.fixture
def model(settings: Settings, tmp_path: Path) -> LanguageModel:
    """Name a classifier that counts words in common, and return the model that all purposes ask."""
    settings.ENGRAM_VERDICTS = "local"
    settings.ENGRAM_VERDICT_MODEL = str(make_classifier(tmp_path / "nli", words=WORDS))
    return language_model()


def verdict_on(text: str, *, model: LanguageModel, statement: str = BIKE, speaker: str = "") -> Verdict:
    request = ClassificationRequest(
        beliefs=(StatedBelief(statement=statement, subject="Mara", context="", language="en", id="bl_1"),),
        episodes=(EpisodeText(id="ep_1", text=text, speaker=speaker, language="en"),),
    )
    reply = model.complete(request=request, timeout=10.0).reply
    assert isinstance(reply, Verdicts)
    return reply.verdicts[0].verdict


def test_a_paraphrase_is_judged_by_the_classifier(model: LanguageModel, settings: Settings) -> None:
    text = "To work on her bike: that is how her day begins."
    assert verdict_on(text, model=model) is Verdict.SUPPORTS
    settings.ENGRAM_VERDICTS = "llm"
    assert verdict_on(text, model=language_model()) is Verdict.IRRELEVANT


def test_a_denial_contradicts(model: LanguageModel) -> None:
    assert verdict_on("Mara rides her bike not to work.", model=model) is Verdict.CONTRADICTS


def test_texts_are_judged_as_they_stand(model: LanguageModel) -> None:
    """B11: a speaker is no word of the text, and no grammar is turned round."""
    assert verdict_on("I ride to work.", model=model, speaker="Mara") is Verdict.IRRELEVANT
    assert verdict_on("Mara: I ride to work.", model=model) is Verdict.SUPPORTS


@pytest.mark.parametrize(
    ("entailment", "contradiction", "verdict"),
    [
        (0.7, 0.0, Verdict.SUPPORTS),
        (0.69, 0.0, Verdict.IRRELEVANT),
        (0.0, 0.8, Verdict.CONTRADICTS),
        (0.2, 0.79, Verdict.IRRELEVANT),
        (0.0, 0.0, Verdict.IRRELEVANT),
    ],
)
def test_what_the_classifier_is_not_sure_of_says_nothing(
    model: LanguageModel,
    entailment: float,
    contradiction: float,
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B11."""
    odds = PairClasses(entailment=entailment, contradiction=contradiction)
    monkeypatch.setattr(PairClassifier, "classify", lambda self, pairs, seconds: [odds for _ in pairs])
    assert verdict_on(BIKE, model=model) is verdict


def test_every_pair_of_a_request_is_answered(model: LanguageModel) -> None:
    beliefs = [StatedBelief(statement=BIKE, subject="", context="", language="en", id=f"bl_{n}") for n in range(3)]
    episodes = [EpisodeText(id=f"ep_{n}", text=BIKE, language="en") for n in range(4)]
    request = ClassificationRequest(beliefs=tuple(beliefs), episodes=tuple(episodes), similarities=((0.9,) * 4,) * 3)
    completion = model.complete(request=request, timeout=10.0)
    assert isinstance(completion.reply, Verdicts)
    assert [(one.belief, one.id) for one in completion.reply.verdicts] == [
        (belief.id, episode.id) for belief in beliefs for episode in episodes
    ]
    assert (completion.input_tokens, completion.output_tokens) == (0, 0)


def test_contradicted_beliefs_are_named_by_their_numbers(model: LanguageModel) -> None:
    def stated(text: str) -> StatedBelief:
        return StatedBelief(statement=text, subject="", context="", language="en")

    fact = stated("It is not every day that two wheels carry her to work.")
    beliefs = (stated("Parrots talk."), stated("Two wheels carry her to work every day."))
    reply = model.complete(request=ContradictionRequest(fact=fact, beliefs=beliefs), timeout=10.0).reply
    assert isinstance(reply, Contradiction)
    assert reply.contradicts == [2]
    assert reply.reason


def test_all_else_is_asked_of_the_language_model(model: LanguageModel) -> None:
    reply = model.complete(request=synthesis("Ana keeps her bike in the shed."), timeout=1.0).reply
    assert isinstance(reply, Synthesis)
    assert model.model_for(Purpose.SYNTHESIZE).startswith(OFFLINE_MODEL)
    assert model.model_for(Purpose.CLASSIFY) == model.model_for(Purpose.CONTRADICT)
    assert model.model_for(Purpose.CLASSIFY).startswith("nli@")
    assert model.is_offline


def test_another_folder_is_another_model(model: LanguageModel, settings: Settings, tmp_path: Path) -> None:
    """Verdicts that one gave are not taken for another's."""
    settings.ENGRAM_VERDICT_MODEL = str(make_classifier(tmp_path / "other" / "nli", words=(*WORDS, "more")))
    assert language_model().model_for(Purpose.CLASSIFY) != model.model_for(Purpose.CLASSIFY)


def test_a_folder_that_is_gone_fails_by_name_and_is_told_by_the_checks(settings: Settings, tmp_path: Path) -> None:
    settings.ENGRAM_VERDICTS, settings.ENGRAM_VERDICT_MODEL = "local", str(tmp_path / "gone")
    with pytest.raises(CallFailed, match=r"ENGRAM_VERDICT_MODEL=.*gone is no folder") as failed:
        verdict_on(BIKE, model=language_model())
    assert failed.value.kind is FailureKind.AUTH
    assert language_model().model_for(Purpose.CLASSIFY) == "gone"
    assert [message.id for message in checks.check_models()] == ["engram.E009"]
    settings.ENGRAM_VERDICTS = "nobody"
    assert "engram.E012" in [message.id for message in checks.check_models()]


def test_over_its_time_a_call_fails_as_a_server_would(model: LanguageModel) -> None:
    request = ClassificationRequest(
        beliefs=(StatedBelief(statement=BIKE, subject="", context="", language="en", id="bl_1"),),
        episodes=(EpisodeText(id="ep_1", text=BIKE, language="en"),),
    )
    with pytest.raises(CallFailed) as failed:
        model.complete(request=request, timeout=0.0)
    assert failed.value.kind is FailureKind.TIMEOUT


@pytest.mark.django_db
def test_a_cycle_keeps_whose_verdicts_they_are(model: LanguageModel) -> None:
    """B7: the ledger and each verdict name the classifier."""
    workspace = factories.workspace()
    belief = believed(BIKE, workspace=workspace)
    for text in ("To work on her bike: so begins the day of Mara.", "Mara on her bike, every day, to work and back."):
        remembered(text, workspace=workspace)
    run_cycle(workspace, factories.NOW)
    named = model.model_for(Purpose.CLASSIFY)
    assert set(ModelCall.objects.filter(purpose="classify").values_list("model", flat=True)) == {named}
    verdicts = JobVerdict.objects.filter(basis="model", belief=belief)
    assert set(verdicts.values_list("model", "verdict")) == {(named, "SUPPORTS")}
    assert belief.evidence.filter(verdict="SUPPORTS").count() == 2
