"""B19: a memory that is erased between being looked up and being changed is not there, and no failure of ours."""

from collections.abc import Callable, Collection
from typing import Any

import pytest
from django.utils import timezone

from memory.domain.taxonomy import Category
from memory.erasure.erase import erase_memories
from memory.forgetting import forget_episode
from memory.ledger import transactions
from memory.mcp.catalogue import TOOLS
from memory.mcp.interface import ToolRefused
from memory.models import Belief, Episode
from memory.recall.usage import Feedback, give_feedback, resolve_commitment
from tests import factories
from tests.api.caller import caller, is_problem
from tests.forgetting.forgetful import LENA
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


def erase(memory: Episode | Belief) -> None:
    is_episode = isinstance(memory, Episode)
    erase_memories(
        workspace=memory.workspace,
        episodes=Episode.objects.filter(pk=memory.pk),
        beliefs=[] if is_episode else [memory.pk],
        actor=LENA,
        now=timezone.now(),
    )


@pytest.fixture
def belief(db: None) -> Belief:
    workspace = factories.workspace()
    belief = believed("Tea is good.", workspace=workspace)
    factories.evidence(belief=belief, episode=remembered("Tea!", workspace=workspace))
    return belief


@pytest.fixture
def racing(belief: Belief, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an eraser win the lock that a change of the belief waits for."""
    lock = transactions.lock_beliefs

    def lock_too_late(ids: Collection[str]) -> list[Belief]:
        erase(belief)
        return lock(ids)

    monkeypatch.setattr(transactions, "lock_beliefs", lock_too_late)


REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pin": ("POST", "/beliefs/{0}/pin", {}),
    "archive": ("POST", "/beliefs/{0}/archive", {}),
    "against": ("POST", "/beliefs/{0}/correct", {}),
    "instead": ("POST", "/beliefs/{0}/correct", {"statement": "Coffee is good."}),
    "merge": ("POST", "/beliefs/merge", {"beliefs": ["{0}", "{1}"]}),
    "split": (
        "POST", "/beliefs/{0}/split",
        {"parts": [{"statement": f"{one} is good.", "evidence": [{"episode": "{2}"}]} for one in ("Hot tea", "Ice")]},
    ),
    "forget": ("DELETE", "/memories/{0}", {}),
}  # fmt: skip


def filled(value: Any, names: list[str]) -> Any:
    """Put ids in the place of their numbers, however deep."""
    if isinstance(value, dict):
        return {key: filled(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, names) for one in value]
    return value.format(*names)


@pytest.mark.usefixtures("racing")
@pytest.mark.parametrize("what", list(REQUESTS))
def test_a_belief_that_was_erased_meanwhile_is_a_404(belief: Belief, what: str) -> None:
    other = believed("Tea is fine.", workspace=belief.workspace)
    method, path, body = filled(list(REQUESTS[what]), [belief.pk, other.pk, Episode.objects.get().pk])
    who = caller(workspace=belief.workspace)
    answer = who.post(path, {"reason": "so", **body}) if method == "POST" else who.request(method, path)
    assert is_problem(answer, 404)


@pytest.mark.usefixtures("racing")
@pytest.mark.parametrize("tool", ["memory_pin", "memory_correct", "memory_forget"])
def test_a_model_is_told_that_it_is_gone(belief: Belief, tool: str) -> None:
    key = factories.key(workspace=belief.workspace)[1]
    [called] = [one for one in TOOLS if one.name == tool]
    with pytest.raises(ToolRefused, match=f"There is no {belief.pk} any more"):
        called.call(key_text=key, arguments={"id": belief.pk, "reason": "so"})


ACTS: dict[str, Callable[[Episode], object]] = {
    "feedback": lambda episode: give_feedback(memory=episode, value=Feedback.USEFUL),
    "resolve": lambda episode: resolve_commitment(memory=episode, now=factories.NOW),
    "forget": lambda episode: forget_episode(episode=episode, actor=LENA, now=factories.NOW),
}


@pytest.mark.parametrize("act", list(ACTS))
def test_an_episode_that_was_erased_meanwhile_is_gone(db: None, act: str) -> None:
    episode = remembered("I will bring tea.", workspace=factories.workspace(), category=Category.COMMITMENT)
    erase(episode)
    with pytest.raises(transactions.NotFound, match=episode.pk):
        ACTS[act](episode)
