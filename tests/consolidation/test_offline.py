"""Cycles with the models of this machine: static vectors and the small reader, no server anywhere."""

from datetime import timedelta

import pytest

from memory.llm.registry import language_model
from memory.models import Belief, ClusterJob, Evidence, ModelCall, Workspace
from tests import factories
from tests.consolidation.inline import run_cycle

pytestmark = pytest.mark.django_db

NOW = factories.NOW
# Of the same words the reader is sure, whatever it was trained on.
ENGLISH = [
    "Ana keeps her bike in the shed behind the house.",
    "Ana keeps her bike in the shed behind the house!",
    "Ana keeps her bike: in the shed, behind the house.",
]
GERMAN = [
    "Ana stellt ihr Fahrrad in den Schuppen hinter dem Haus.",
    "Ana stellt ihr Fahrrad in den Schuppen hinter dem Haus!",
    "Ana stellt ihr Fahrrad: in den Schuppen, hinter dem Haus.",
]


@pytest.fixture
def workspace() -> Workspace:
    """Store an empty workspace."""
    return factories.workspace()


def tell(workspace: Workspace, texts: list[str], *, language: str = "en") -> None:
    """Store episodes, each from an origin of its own."""
    for text in texts:
        factories.episode(workspace=workspace, text=text, language=language)


def test_alike_episodes_found_a_belief_in_their_own_words(workspace: Workspace) -> None:
    """B8.3: an extracted statement is one that an episode made; nothing is paid for."""
    tell(workspace, ENGLISH)

    run_cycle(workspace, NOW)

    belief = Belief.objects.get()
    assert belief.statement in ENGLISH
    assert (belief.language, belief.beta) == ("en", 1.0)
    assert belief.alpha == 1.0 + belief.evidence_count >= 4.0
    assert set(ModelCall.objects.values_list("model", flat=True)) == {language_model().model_for("synthesize")}
    assert not ModelCall.objects.exclude(cost_usd=0).exists()


def test_clusters_never_cross_languages(workspace: Workspace) -> None:
    """B8.2: static vectors of two languages are not comparable, so each language has its own cluster."""
    tell(workspace, ENGLISH)
    tell(workspace, GERMAN, language="de")

    run_cycle(workspace, NOW)

    for job in ClusterJob.objects.all():
        assert len(set(job.members.values_list("episode__language", flat=True))) == 1
    assert set(Belief.objects.values_list("language", flat=True)) == {"en", "de"}


def test_two_english_and_one_german_are_nobodys_three(workspace: Workspace) -> None:
    """B8.2: even where they say the same."""
    tell(workspace, ENGLISH[:2])
    tell(workspace, GERMAN[:1], language="de")

    run_cycle(workspace, NOW)

    assert not Belief.objects.exists()


def test_the_same_words_again_reinforce_and_a_plain_denial_does_not(workspace: Workspace) -> None:
    """B4, B8: the guard passes the first without a call and refuses the second."""
    tell(workspace, [ENGLISH[0]] * 3)
    run_cycle(workspace, NOW)
    assert Belief.objects.get().alpha == 4.0

    tell(workspace, [ENGLISH[0]])
    tell(workspace, ["Ana no longer keeps her bike in the shed behind the house."])
    run_cycle(workspace, NOW + timedelta(days=1))

    belief = Belief.objects.get()
    assert belief.alpha == 5.0
    denied = Evidence.objects.exclude(episode__text=ENGLISH[0]).values_list("verdict", flat=True)
    assert list(denied) == ["CONTRADICTS"]
    assert belief.beta == 2.0


def test_questions_and_greetings_found_nothing(workspace: Workspace) -> None:
    """B8.3: three alike that say nothing stay in the pool."""
    tell(workspace, ["Hi Ana, how are you today?"] * 3 + ["Thanks so much for your help, Ana!"] * 3)

    run_cycle(workspace, NOW)

    assert not Belief.objects.exists()
    assert set(workspace.episodes.values_list("state", flat=True)) == {"pooled"}
