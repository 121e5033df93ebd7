"""B19, R8: what sums up a forgotten memory, or keeps its exact words, is not recalled in its place."""

import json
from datetime import timedelta

import pytest
from django.core.management import call_command

from memory.consolidation.cycle import database_now
from memory.forgetting import Forgotten, forget_episode
from memory.ingest import extract, summaries
from memory.ingest.summaries import summarize_stretch
from memory.ledger.confidence import find_drift
from memory.models import Conversation, Episode, Transition, Turn, TurnEpisode, Workspace
from tests import factories
from tests.api.caller import caller
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.conftest import _no_dispatch
from tests.ingest.reading import MINUTE, read, say

__all__ = ["_no_dispatch"]

pytestmark = pytest.mark.django_db
REST = 16 * MINUTE

PIER = "Never moor at the east pier, for the planks are rotten."
TALK = [PIER, *(f"The tide of day {n} is low at the west pier." for n in range(4))]


@pytest.fixture(autouse=True)
def _no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be believed of what is said."""
    monkeypatch.setattr(extract, "read_conversation", lambda **_: 0)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def talk(workspace: Workspace) -> None:
    """Have a conversation read, and summed up as it rests."""
    say(*TALK, workspace=workspace)
    assert read()
    sum_up()


def sum_up() -> None:
    Conversation.objects.exclude(sum_due_at=None).update(sum_due_at=database_now(plus=-1))
    read(after=REST)


def fact() -> Episode:
    return Episode.objects.get(text=PIER)


def forget() -> Forgotten:
    return forget_episode(episode=fact(), actor=LENA, now=NOW + timedelta(hours=1))


def test_a_summary_is_forgotten_with_what_it_sums_up(workspace: Workspace) -> None:
    """R8: its row stays and says why; the other facts stay as they are."""
    talk(workspace)
    summary = Episode.objects.get(is_derived=True)
    assert TurnEpisode.objects.filter(episode=summary).count() == len(TALK)
    assert list(forget().along.summaries) == [summary.pk]
    gone = set(Episode.objects.filter(status="forgotten").values_list("pk", flat=True))
    assert gone == {fact().pk, summary.pk}
    assert Transition.objects.get(episode=summary).reason == f"it tells of {fact().pk}, which was forgotten"
    assert list(forget().along.summaries) == []


def test_nobody_is_shown_the_words_any_more(workspace: Workspace) -> None:
    """B17, B18: neither in the summary, nor as another fact's exact words, nor as a turn on its card."""
    talk(workspace)
    beside = Episode.objects.get(text__endswith=TALK[1])
    TurnEpisode.objects.create(workspace=workspace, turn=Turn.objects.get(content=PIER), episode=beside)
    Episode.objects.filter(pk=beside.pk).update(verbatim="\n".join(TALK[:2]))
    owner = caller(workspace=workspace)
    answer = owner.request("DELETE", f"/memories/{fact().pk}").json()
    told = json.dumps([owner.post("/recall", {"query": PIER}).json(), owner.get(f"/memories/{beside.pk}").json()])
    assert (answer["summaries"], len(answer["summary_ids"])) == (1, 1)
    assert "rotten" not in told
    assert TALK[1] in told


def test_a_summary_is_forgotten_for_itself(workspace: Workspace) -> None:
    """B19: the facts stay, and so do other summaries."""
    talk(workspace)
    summary = Episode.objects.get(is_derived=True)
    other = factories.episode(workspace=workspace, is_derived=True)
    TurnEpisode.objects.create(workspace=workspace, turn=Turn.objects.all()[0], episode=other)
    forget_episode(episode=summary, actor=LENA, now=NOW)
    assert list(Episode.objects.filter(status="forgotten")) == [summary]


def test_a_belief_that_leans_on_either_is_computed_anew(workspace: Workspace) -> None:
    """B4: whatever of it was evidence leaves; numbers follow from what is left."""
    talk(workspace)
    summary = Episode.objects.get(is_derived=True)
    belief = factories.belief(workspace=workspace, alpha=4.0)
    for one in (fact(), summary, factories.episode(workspace=workspace)):
        factories.evidence(belief=belief, episode=one)
    assert forget().bereft.beliefs == {belief.pk}
    belief.refresh_from_db()
    assert (belief.alpha, find_drift(workspace=workspace)[1]) == (2.0, [])


def test_what_was_forgotten_is_not_summed_up_later(workspace: Workspace) -> None:
    """R8: a stretch that is summed up after the forgetting leaves the turn out."""
    say(*TALK, workspace=workspace)
    read()
    forget()
    sum_up()
    summary = Episode.objects.get(is_derived=True)
    assert "rotten" not in summary.text
    assert sorted(TurnEpisode.objects.filter(episode=summary).values_list("turn__number", flat=True)) == [2, 3, 4, 5]


def test_what_is_forgotten_while_it_is_summed_up_is_not_stored(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: the summary is made again without it."""
    really_summarize, calls = summarize_stretch, list[object]()

    def forgotten_meanwhile(**given: object) -> object:
        calls.append(given)
        if len(calls) == 1:
            forget()
        return really_summarize(**given)  # type: ignore[arg-type]

    monkeypatch.setattr(summaries, "summarize_stretch", forgotten_meanwhile)
    talk(workspace)
    assert not Episode.objects.filter(is_derived=True).exists()
    sum_up()
    assert "rotten" not in Episode.objects.get(is_derived=True).text


def test_the_command_names_what_went_along(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """R15."""
    talk(workspace)
    summary = Episode.objects.get(is_derived=True)
    call_command("forget", fact().pk)
    assert capsys.readouterr().out == f"{fact().pk} forgotten, with what sums it up: {summary.pk}.\n"
