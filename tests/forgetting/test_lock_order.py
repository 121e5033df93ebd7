"""Episodes are locked before conversations, by who erases as by who reads: the other order would be a deadlock."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import transaction

from memory.domain.lifecycle import ConsolidationState
from memory.erasure.erase import erase_memories, erase_user
from memory.forgetting import forget_episode
from memory.llm import offline
from memory.maintenance.maintain import MaintenanceRun, merge_notes
from memory.models import Conversation, Episode, Turn, TurnEpisode, Workspace
from tests import factories
from tests.consolidation.test_locks import elsewhere
from tests.consolidation.test_one_worker_a_job import wait_for_blocked
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.conftest import _no_dispatch
from tests.ingest.reading import MINUTE, Reader, read, say
from tests.recall.memories import remembered

__all__ = ["_no_dispatch"]

pytestmark = pytest.mark.django_db(transaction=True)

PIER, TIDE = "Never moor at the east pier.", "The tide is low."


@pytest.fixture
def workspace(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Return a workspace where two turns of Mara's were read."""
    monkeypatch.setattr(offline, "_answer", Reader())
    workspace = factories.workspace()
    say(PIER, TIDE, workspace=workspace, user="mara")
    assert read()
    return workspace


def of(text: str) -> Episode:
    return Episode.objects.get(text=text)


def erase_fact(workspace: Workspace) -> None:
    erase_memories(workspace=workspace, episodes=Episode.objects.filter(pk=of(PIER).pk), actor=LENA, now=NOW)


def erase_mara(workspace: Workspace) -> None:
    erase_user(workspace=workspace, user="mara", actor=LENA, now=NOW)


def while_held(held: Episode, work: Callable[[], object]) -> None:
    """Hold an episode as one who stores facts does, and then the conversation, while somebody else is at work."""
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            Episode.objects.select_for_update(no_key=True).get(pk=held.pk)
            done = other.submit(elsewhere, work)
            wait_for_blocked(1)
            assert list(Conversation.objects.select_for_update(nowait=True)) != []
        done.result(timeout=20)


def while_lower_held(low: Episode, high: Episode, work: Callable[[], object]) -> None:
    """Lock an episode and then one of a higher id, while somebody else is at work who wants both."""
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            Episode.objects.select_for_update(no_key=True).get(pk=low.pk)
            done = other.submit(elsewhere, work)
            wait_for_blocked(1)
            assert list(Episode.objects.select_for_update(no_key=True, nowait=True).filter(pk=high.pk)) == [high]
        done.result(timeout=20)


@pytest.mark.parametrize("erase", [erase_fact, erase_mara])
def test_who_erases_waits_for_episodes_with_conversations_free(
    workspace: Workspace, erase: Callable[[Workspace], None]
) -> None:
    """B19, L2: whoever stores facts meanwhile gets its conversation, and lets the episodes go."""
    while_held(of(PIER), lambda: erase(workspace))
    assert not Turn.objects.filter(content=PIER).exists()


def test_who_erases_holds_what_keeps_the_same_words_first(workspace: Workspace) -> None:
    """B19: exact words beside other facts are taken out later, when the conversation is held."""
    TurnEpisode.objects.create(workspace=workspace, turn=Turn.objects.get(content=PIER), episode=of(TIDE))
    Episode.objects.filter(pk=of(TIDE).pk).update(verbatim=PIER)
    while_held(of(TIDE), lambda: erase_fact(workspace))
    assert of(TIDE).verbatim == ""


@pytest.mark.parametrize("is_high", [False, True])
def test_what_goes_and_what_keeps_words_of_its_conversation_are_locked_in_one_order(
    workspace: Workspace, is_high: bool
) -> None:
    """B19: by id, whichever of them goes: whoever stores facts takes one after the other, and neither is stopped."""
    low, high = Episode.objects.filter(is_derived=False).order_by("pk")
    going, beside = (high, low) if is_high else (low, high)
    Episode.objects.filter(pk=beside.pk).update(verbatim="exact words")
    while_lower_held(low, high, lambda: forget_episode(episode=going, actor=LENA, now=NOW))
    assert Episode.objects.get(pk=going.pk).status == "forgotten"


def test_who_reads_waits_for_told_episodes_with_the_conversation_free(workspace: Workspace) -> None:
    """L2: one that was there before, too, to which the turns are only linked."""
    say(PIER, workspace=workspace, user="mara")
    while_held(of(PIER), read)
    assert TurnEpisode.objects.filter(episode=of(PIER)).count() == 2


def test_who_reads_locks_facts_that_are_told_again_by_id(workspace: Workspace) -> None:
    """L2, L15: in whatever order they are told."""
    low, high = Episode.objects.order_by("pk")
    say(*(one.text for one in (high, low)), workspace=workspace, user="mara", after=MINUTE)
    while_lower_held(low, high, lambda: read(after=MINUTE))
    assert set(Episode.objects.values_list("confirmations", flat=True)) == {1}


def test_who_merges_notes_locks_them_by_id(transactional_db: None) -> None:
    """L8: they are found in the order in which they were told."""
    workspace = factories.workspace()
    ids = {"Mara prefers tea.": "c", "Mara walks to work.": "d", "Mara prefers tea!": "b", "Mara walks to work!": "a"}
    for minutes, (text, digit) in enumerate(ids.items()):
        remembered(
            text, workspace=workspace, pk=f"ep_{digit * 12}", speaker="Mara", category="preference",
            state=ConsolidationState.SETTLED, occurred_at=NOW + minutes * MINUTE,
        )  # fmt: skip
    low, high = Episode.objects.order_by("pk")[:2]
    visit = MaintenanceRun(workspace_id=workspace.pk, now=NOW, ends_at=time.monotonic() + 60, policy=settings.POLICY)
    while_lower_held(low, high, lambda: merge_notes(visit))
    assert set(Episode.objects.filter(status="merged")) == {low, high}


@pytest.mark.parametrize("erase", [erase_fact, erase_mara])
def test_what_is_stored_while_a_conversation_is_waited_for_goes_too(
    workspace: Workspace, erase: Callable[[Workspace], None]
) -> None:
    """B19: a summary that quotes it, committed by who held the conversation."""
    with ThreadPoolExecutor(1) as other:
        with transaction.atomic():
            late = factories.episode(workspace=workspace, text=f"They said: {PIER}", user="mara", is_derived=True)
            Conversation.objects.select_for_update().get()
            done = other.submit(elsewhere, lambda: erase(workspace))
            wait_for_blocked(1)
            TurnEpisode.objects.create(workspace=workspace, turn=Turn.objects.get(content=PIER), episode=late)
        done.result(timeout=20)
    assert not Episode.objects.filter(pk=late.pk).exists()
    assert not Turn.objects.filter(content=PIER).exists()
