"""E6: no text stops a workspace: what our own code breaks on is set aside alone, and everything else goes on."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memory.consolidation.episode_states import list_dead_letters, retry_dead_letters
from memory.domain.lifecycle import CycleState
from memory.llm import offline
from memory.llm.offline import StaticEmbedder
from memory.models import Belief, CallOutcome, ClusterJob, Episode, ModelCall, Workspace, WorkspacePause
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.odd_texts import list_odd_texts

pytestmark = pytest.mark.django_db

NOW = factories.NOW
POISON = "Ana keeps her bike at 99:99 in the shed behind the house."
SOUND = [  # of the same words the reader of this machine is sure, whatever it was trained on
    "Ana keeps her bike in the shed behind the house.",
    "Ana keeps her bike in the shed behind the house!",
    "Ana keeps her bike, in the shed behind the house.",
    "Ana keeps her bike: in the shed, behind the house.",
]


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def tell(workspace: Workspace, *texts: str, speaker: str = "") -> list[Episode]:
    return [factories.episode(workspace=workspace, text=text, language="en", speaker=speaker) for text in texts]


def breaking(
    function: Callable[..., Any], *, over: str = "99:99", error: type[Exception] = ValueError
) -> Callable[..., Any]:
    """Return the function, but for what holds some words: that breaks it."""

    def break_over(*args: Any, **given: Any) -> Any:
        if over in f"{args}{given}":
            raise error(f"invalid literal: {over!r}")
        return function(*args, **given)

    return break_over


def check_set_aside(poison: Episode, *, error: type[Exception] = ValueError) -> None:
    """Check that an episode waits for a person, who sees why, and that nothing else does."""
    [letter] = list_dead_letters(workspace_id=poison.workspace_id)
    assert (letter.pk, letter.failures, letter.leased_by) == (poison.pk, 1, None)
    assert letter.state_reason == f"our own error: {error.__name__}: invalid literal: '99:99'"
    assert not Episode.objects.exclude(pk=poison.pk).filter(state__in=("new", "leased", "failed")).exists()
    assert not WorkspacePause.objects.exists()
    assert not ClusterJob.objects.filter(state="failed").exists()


BROKEN: dict[str, tuple[str, Callable[..., Any]]] = {
    "stating": ("memory.llm.offline._synthesize", offline._synthesize),
    "matter": ("memory.consolidation.extract.strip_echo", lambda text, speaker: text),
}


@pytest.mark.parametrize("place", BROKEN)
def test_what_breaks_a_step_is_set_aside_after_one_failure(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """E6: its neighbours found their belief in the same cycle, and the workspace does not rest."""
    name, function = BROKEN[place]
    monkeypatch.setattr(name, breaking(function))
    tell(workspace, *SOUND)
    poison = tell(workspace, POISON, speaker="Ana")[0]

    cycle = run_cycle(workspace, NOW)

    assert cycle.state == CycleState.FINISHED
    assert Belief.objects.count() == 1
    check_set_aside(poison)


def test_what_breaks_a_verdict_is_cornered(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6: the batch is halved down to it at no cost, and the others get their verdicts."""
    monkeypatch.setattr("memory.llm.offline._classify", breaking(offline._classify))
    monkeypatch.setattr("memory.consolidation.judge.supports_without_call", lambda **_: False)  # so that all are asked
    tell(workspace, *SOUND)
    poison = tell(workspace, POISON)[0]

    run_cycle(workspace, NOW)

    check_set_aside(poison)
    assert ModelCall.objects.filter(outcome=CallOutcome.OWN_ERROR).exists()
    assert not ModelCall.objects.filter(outcome=CallOutcome.BAD_REQUEST).exists()


def test_what_breaks_the_embedding_is_set_aside(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6: though it is the only one there is; a ValueError would be the model's word that it takes no such text."""
    broken = breaking(StaticEmbedder.embed_counted, error=ArithmeticError)
    monkeypatch.setattr(StaticEmbedder, "embed_counted", broken)
    poison = tell(workspace, POISON)[0]

    run_cycle(workspace, NOW)

    check_set_aside(poison, error=ArithmeticError)


def test_a_reader_that_breaks_over_everything_blames_nobody_for_good(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E6: together they break them, and alone none does: the job fails, and the workspace goes on all the same."""
    monkeypatch.setattr(
        "memory.llm.offline._synthesize",
        lambda episodes, person: offline_break() if len(episodes) > 1 else offline._NO_STATEMENT,
    )
    said = tell(workspace, *SOUND)

    cycle = run_cycle(workspace, NOW)

    assert (cycle.state, WorkspacePause.objects.count()) == (CycleState.FINISHED, 0)
    assert list_dead_letters(workspace_id=workspace.pk).count() == 0
    assert ClusterJob.objects.get().state_reason == "our own error: ZeroDivisionError: division by zero"
    assert set(Episode.objects.filter(pk__in=[one.pk for one in said]).values_list("failures", flat=True)) == {1}


def offline_break() -> float:
    return 1 / 0


def test_a_letter_is_read_once_the_error_is_mended(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B11, E6."""
    with monkeypatch.context() as broken:
        broken.setattr("memory.consolidation.extract.strip_echo", breaking(BROKEN["matter"][1]))
        tell(workspace, *SOUND)
        poison = tell(workspace, POISON)[0]
        run_cycle(workspace, NOW)
    assert retry_dead_letters(letters=list_dead_letters(workspace_id=workspace.pk)) == 1
    run_cycle(workspace, NOW + timedelta(days=1))
    poison.refresh_from_db()
    assert (poison.state in ("settled", "pooled"), poison.failures, poison.dead_at) == (True, 0, None)


def test_fifty_odd_texts_go_through_a_cycle(workspace: Workspace) -> None:
    """E6: after which nothing is left new, leased or failed, and the workspace does not rest."""
    texts = dict.fromkeys(
        text.strip() for text in list_odd_texts(seed=7, count=220)[:12] + list_odd_texts(seed=7, count=160)[-40:]
    )
    said = tell(workspace, *(text for text in texts if text))
    tell(workspace, *SOUND)

    cycle = run_cycle(workspace, NOW)

    assert len(said) >= 45
    assert cycle.state == CycleState.FINISHED
    assert not Episode.objects.filter(state__in=("new", "leased", "failed")).exists()
    assert (WorkspacePause.objects.count(), list_dead_letters(workspace_id=workspace.pk).count()) == (0, 0)
    assert Belief.objects.filter(statement__in=SOUND).count() == 1
