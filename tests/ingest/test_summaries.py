"""R8: a stretch of a conversation is summed up once, as what is recalled and never evidence."""

import pytest

from memory.domain.lifecycle import ConsolidationState
from memory.domain.taxonomy import ConversationTurn, Role
from memory.ingest.read_turns import extraction_budget
from memory.ingest.schemas import IngestContext, Outcome, Stored
from memory.ingest.summaries import summarize_stretch
from memory.llm.types import CallFailed, FailureKind
from memory.models import Episode, ModelCall, Workspace
from tests.factories import NOW
from tests.ingest.reading import Reader
from tests.ingest.talking import TALK, said

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = (
    "I prefer short meetings in the morning.",
    "Long meetings tire me out.",
    "Our release is on Friday.",
    "My sister Ana tests the release.",
    "Meetings after lunch are a waste for me.",
)


@pytest.fixture
def reader(reader: Reader) -> Reader:
    """Sum up in one sentence."""
    reader.summary = "Mara's sister Ana tests the release."
    return reader


def _sum_up(turns: list[ConversationTurn], workspace: Workspace, numbers: range = range(1, 6)) -> Outcome | None:
    arrival = IngestContext(workspace=workspace, now=NOW)
    return summarize_stretch(turns=turns, numbers=numbers, talk=TALK, arrival=arrival, budget=extraction_budget())


def test_turns_are_summed_up_as_a_derived_episode(workspace: Workspace) -> None:
    """R8: settled from the start, with the session and the time of its last turn."""
    turns = said(*TEXTS)

    outcome = _sum_up(turns, workspace)

    assert isinstance(outcome, Stored)
    episode = Episode.objects.get()
    assert episode.is_derived
    assert (episode.state, episode.state_reason) == (ConsolidationState.SETTLED, "derived")
    assert (episode.session, episode.user, episode.occurred_at) == ("s-1", "mara", turns[-1].occurred_at)
    assert 1 <= len(episode.text.split(". ")) <= 3


def test_a_stretch_is_summed_up_once(workspace: Workspace, reader: Reader) -> None:
    """R8: a second time the answer names the first summary, and nothing is asked."""
    first = _sum_up(said(*TEXTS), workspace)
    second = _sum_up(said(*TEXTS), workspace)

    assert isinstance(first, Stored)
    assert second == Stored(id=first.id, is_duplicate=True)
    assert ModelCall.objects.count() == 1


def test_what_stands_beside_a_stretch_is_shown_and_not_summed_up(workspace: Workspace, reader: Reader) -> None:
    """R8: it says what others mean."""
    turns = said(*TEXTS, "My brother Ben keeps bees in Graz.")

    outcome = _sum_up(turns, workspace, range(3, 6))

    assert isinstance(outcome, Stored)
    assert [turn.is_beside for turn in reader.summed_up[0].turns] == [True, True, False, False, False, True]
    assert Episode.objects.get().occurred_at == turns[4].occurred_at


def test_roles_and_days_are_told(workspace: Workspace, reader: Reader) -> None:
    """R8: so that it can be told whose word it is; what we injected and a system's orders are not shown."""
    orders = said("Always answer in German.", role=Role.SYSTEM, speaker="")
    turns = [*orders, *said("[Memory flash: Mara likes tabs.]", "I went to Graz yesterday.", first=2)]

    _sum_up(turns, workspace)

    [turn] = reader.summed_up[0].turns
    assert (turn.number, turn.role, turn.said_on, turn.speaker, turn.text) == (
        3, "user", "2026-03-01", "Mara", "I went to Graz yesterday.",
    )  # fmt: skip


def test_small_talk_is_not_summed_up(workspace: Workspace, reader: Reader) -> None:
    """R8: a blank summary says so; the same turns are not asked about again."""
    reader.summary = ""
    turns = said("Hi!", "Hello Mara!", "How are you?", "Thanks, great!", "See you!")

    assert [_sum_up(turns, workspace) for _ in range(2)] == [None, None]
    assert (Episode.objects.count(), ModelCall.objects.count()) == (0, 1)


def test_without_turns_nothing_is_asked(workspace: Workspace, reader: Reader) -> None:
    """R8: nor where they hold nothing but our own words."""
    assert _sum_up([], workspace) is None
    assert _sum_up(said("[Memory flash: Mara likes tabs.]"), workspace) is None
    assert not ModelCall.objects.exists()


def test_a_summary_that_failed_is_tried_again(
    workspace: Workspace, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R8: a reply that is none is no small talk."""

    def fail(_: object) -> None:
        raise CallFailed("no JSON", kind=FailureKind.MALFORMED)

    with monkeypatch.context() as patched:
        patched.setattr("memory.llm.offline._answer", fail)
        with pytest.raises(CallFailed):
            _sum_up(said(*TEXTS), workspace)

    assert isinstance(_sum_up(said(*TEXTS), workspace), Stored)
