"""Turns become episodes: in their own words, whatever they say, whose word they are, and only once (F5, L4, L6)."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from memory.domain.lifecycle import EpisodeStatus
from memory.domain.taxonomy import ConversationKey, Role
from memory.ingest import turn_episodes
from memory.ingest.schemas import IngestContext, Rejected, Stored
from memory.ingest.turn_episodes import store_turns
from memory.language.sentences import strip_echo
from memory.models import Episode, ModelCall, Source, Workspace
from tests.api.caller import caller
from tests.factories import NOW
from tests.ingest.talking import TALK, kept, said, store

pytestmark = pytest.mark.django_db


def test_a_turn_becomes_an_episode_in_its_own_words(workspace: Workspace) -> None:
    """F5, L6: with session, speaker and time; it has a vector and waits to be read."""
    turns = said("I prefer short meetings in Graz because my days are full.")

    [episode] = kept(turns, workspace=workspace)

    assert episode.text == "I prefer short meetings in Graz because my days are full."
    assert (episode.session, episode.user, episode.speaker) == ("s-1", "mara", "Mara")
    assert (episode.confidence, episode.tier, episode.occurred_at) == (0.8, "implied", turns[0].occurred_at)
    assert (episode.category, episode.entities, episode.causes) == ("", [], [])
    assert (episode.state, episode.read_at, episode.embeddings.count()) == ("new", None, 1)
    assert not ModelCall.objects.exists()


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!", "Hallo Jon, wie geht es dir?", "ok", "Have a nice day", "Do you know where Ana lives?",
        "moved over to Helix last week, loving it", "Będę w środę o ósmej.", "明日は京都に行きます。", "🌊", "99:99",
    ],
)  # fmt: skip
def test_whatever_a_turn_says_it_is_an_episode(workspace: Workspace, text: str) -> None:
    """F5: small talk, questions, and what nobody here can read."""
    assert [one.text for one in kept(said(text), workspace=workspace)] == [text]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Do you know whether the ferry to Hven takes bicycles?", "ferry Hven bicycles"),
        ("Będę w środę o ósmej na przystani.", "środę przystani"),
    ],
    ids=["question", "polish"],
)
def test_a_turn_that_asserts_nothing_is_recalled_by_its_words(workspace: Workspace, text: str, query: str) -> None:
    """F5: nothing that a person said vanishes."""
    [episode] = kept(said(text, speaker=""), workspace=workspace)

    answer = caller(workspace=workspace).post("/recall", {"query": query, "user": "mara"}).json()

    assert episode.pk in str(answer)


def test_what_we_recalled_into_a_turn_is_not_stored_again(workspace: Workspace) -> None:
    """B4: a turn that holds nothing else is no episode."""
    flash = "[Memory flash: Mara prefers tabs over spaces.]"

    episodes = kept(said(flash, f"{flash} I live in Graz."), workspace=workspace)

    assert [one.text for one in episodes] == ["I live in Graz."]


@pytest.mark.parametrize(
    ("role", "source", "confidence"),
    [(Role.USER, Source.HUMAN, 0.8), (Role.ASSISTANT, Source.AI, None), (Role.TOOL, Source.INGEST, None)],
)
def test_the_role_is_the_source(workspace: Workspace, role: Role, source: Source, confidence: float | None) -> None:
    """E2, D7: a turn is the word of whoever said it."""
    [episode] = kept(said("Tests run on Linux.", role=role), workspace=workspace)

    assert (episode.source, episode.confidence) == (source, confidence)


def test_what_a_system_says_is_not_stored(workspace: Workspace) -> None:
    """F5: the same orders at the head of every conversation are no memories."""
    assert kept(said("Always answer in German.", role=Role.SYSTEM, speaker=""), workspace=workspace) == []


def test_german_turns_stay_german(workspace: Workspace) -> None:
    """L3: the language of the source is kept."""
    [episode] = kept(said("Ich trinke morgens Tee, weil Kaffee zu stark ist."), workspace=workspace)

    assert episode.language == "de"


def test_a_replay_adds_nothing(workspace: Workspace) -> None:
    """L4: the same turns once more make no further episode, and confirm nothing."""
    turns = said("I prefer short meetings in Graz.", "My sister Ana is a doctor.")
    store(turns, workspace=workspace)

    again = store(turns, workspace=workspace)

    assert all(isinstance(one, Stored) and one.is_duplicate for one in again)
    assert Episode.objects.count() == 2
    assert not Episode.objects.filter(confirmations__gt=0).exists()


def test_a_long_turn_is_split(workspace: Workspace, settings: Settings) -> None:
    """B1: at its paragraphs, as an importer splits; every part is an episode, and a replay adds none."""
    paragraphs = [f"Part {number} of the boat is {'very ' * 4_000}old." for number in (1, 2, 3)]
    turns = said("\n\n".join(paragraphs))

    parts = kept(turns, workspace=workspace)
    store(turns, workspace=workspace)

    assert [part.text.strip() for part in parts] == paragraphs
    assert all(len(part.text.encode()) <= settings.POLICY.ingest.text_bytes for part in parts)
    assert {part.occurred_at for part in parts} == {turns[0].occurred_at}
    assert Episode.objects.count() == 3


def test_an_unstorable_turn_takes_no_other_with_it(workspace: Workspace) -> None:
    """F5: each is answered in its place."""
    turns = [*said("I was in Graz.", at=NOW + timedelta(days=3)), *said("I live in Graz.", first=2)]

    first, second = store(turns, workspace=workspace)

    assert isinstance(first, Rejected)
    assert isinstance(second, Stored)


def test_a_turn_that_breaks_our_own_code_is_named(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6: and those beside it are stored."""

    def break_over_one(text: str, speaker: str = "") -> str:
        if "99:99" in text:
            raise ValueError("invalid literal: '99:99'")
        return strip_echo(text, speaker)

    monkeypatch.setattr(turn_episodes, "strip_echo", break_over_one)
    turns = said("My manager is Dana.", "The gate of the lab is on 99:99.", "I drink tea.")

    stored, broken = store_turns(turns=turns, talk=TALK, arrival=IngestContext(workspace=workspace, now=NOW))

    assert [one.turn.number for one in stored] == [1, 3]
    assert broken == {2: "our own error: ValueError: invalid literal: '99:99'"}
    assert Episode.objects.count() == 2


def test_surprise_moves_the_importance_of_a_new_turn(workspace: Workspace) -> None:
    """D5: the first of all gains 0.15; what is nearly known loses, and is flagged."""
    turns = said(
        "Mara keeps the release notes in the wiki of the team.", "Mara keeps the release notes in the team's wiki."
    )  # fmt: skip

    first, second = kept(turns, workspace=workspace)

    assert first.importance == pytest.approx(0.65)
    assert (first.distance, first.is_near_duplicate) == (1.0, False)
    assert second.importance < 0.5
    assert second.is_near_duplicate
    assert second.surprise is not None
    assert second.surprise < 0.5


def test_the_same_words_in_another_conversation_confirm(workspace: Workspace) -> None:
    """L15: once, however often they are replayed."""
    words = "I may move to Graz."
    [first] = kept(said(words), workspace=workspace)
    later = said(words, first=2, at=NOW + timedelta(hours=1))
    for _ in range(2):
        store(later, workspace=workspace, talk=ConversationKey(session="s-2", user="mara"))

    first.refresh_from_db()
    assert (first.confirmations, first.confirmed_at) == (1, later[0].occurred_at)


def test_the_same_words_later_in_a_conversation_confirm(workspace: Workspace) -> None:
    """L15: they are no new episode (L4)."""
    [episode] = kept(said("I live in Graz."), workspace=workspace)

    store(said("I live in Graz.", first=2), workspace=workspace)

    episode.refresh_from_db()
    assert (episode.confirmations, Episode.objects.count()) == (1, 1)


def test_a_turn_is_no_note_before_it_is_read(workspace: Workspace) -> None:
    """L5, L18: its category comes with the reading; what it supersedes is found after that."""
    [old] = kept(said("Stand-up is at nine."), workspace=workspace)

    kept(said("Stand-up is at ten now.", first=2), workspace=workspace)

    old.refresh_from_db()
    assert old.status == EpisodeStatus.ACTIVE
