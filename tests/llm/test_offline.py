"""What the offline rules answer, and that they say who they are."""

from dataclasses import replace

import pytest

from memory.domain.evidence import Verdict
from memory.llm.offline import OfflineModel
from memory.llm.replies import Synthesis, Verdicts
from memory.llm.requests import EpisodeText, SynthesisRequest
from tests.llm.asking import classification, episode, synthesis

RULES = OfflineModel()


def verdict_on(text: str, *, statement: str = "Mara prefers tabs over spaces.") -> Verdict:
    """Return the verdict of one episode on one belief."""
    reply = RULES.complete(request=classification(text, statement=statement), timeout=1).reply
    assert isinstance(reply, Verdicts)
    return reply.verdicts[0].verdict


def test_a_turned_preference_contradicts() -> None:
    """B11: "spaces over tabs" never reinforces "tabs over spaces"."""
    assert verdict_on("Mara prefers spaces over tabs.") is Verdict.CONTRADICTS


def test_another_matter_is_irrelevant() -> None:
    """B11, offline: unsure means IRRELEVANT."""
    assert verdict_on("The deploy on Friday took an hour.") is Verdict.IRRELEVANT


def test_the_hint_of_a_low_similarity_is_heeded() -> None:
    text = "Mara writes tests for tabs of her browser and spaces them out."
    request = classification(text, statement="Mara prefers tabs over spaces.")
    hinted = replace(request, similarities=((0.1,),))
    reply = RULES.complete(request=hinted, timeout=1).reply
    assert isinstance(reply, Verdicts)
    assert reply.verdicts[0].verdict is Verdict.IRRELEVANT


def test_a_cluster_that_holds_no_statement_gets_a_blank_one() -> None:
    """B10: nothing is made up."""
    reply = RULES.complete(request=synthesis("Thanks!", "Thank you!", "Many thanks!"), timeout=1).reply
    assert isinstance(reply, Synthesis)
    assert reply.statement == ""


def test_a_first_person_text_is_told_of_its_speaker() -> None:
    """B10: the statement names its subject."""
    texts = ("I always drink tea in the morning.", "I drink tea every morning.", "Tea is what I drink in the morning.")
    spoken = tuple(
        EpisodeText(id=episode(n).id, text=text, speaker="Mara", language="en") for n, text in enumerate(texts)
    )
    reply = RULES.complete(request=SynthesisRequest(episodes=spoken), timeout=1).reply
    assert isinstance(reply, Synthesis)
    assert "Mara" in reply.statement
    assert "tea" in reply.statement.lower()


@pytest.mark.parametrize("purpose", ["synthesize", "classify"])
def test_rules_are_labelled_offline(purpose: str) -> None:
    """Offline says what it is wherever it shows."""
    assert RULES.is_offline
    assert RULES.model_for(purpose) == "offline-rules-2"
