"""Turns that say something become episodes: in their own words, whose word they are, and only once (E1, L3, L4)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory.domain.lifecycle import EpisodeStatus
from memory.domain.taxonomy import Category, ConversationKey, ConversationTurn, ExtractionResult, Kind, Role
from memory.ingest.schemas import Rejected, Stored
from memory.ingest.turn_facts import find_informative_turns
from memory.language.claims import read_claims
from memory.llm.call_log import OutOfBudget
from memory.models import CallOutcome, Claim, Episode, ModelCall, Source, Transition, Workspace
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.factories import NOW
from tests.ingest.talking import ask, keep, kept, said, store, told

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def _store(turns: Sequence[ConversationTurn], workspace: Workspace) -> list[Episode]:
    outcomes = store(ask(turns, workspace=workspace), turns=turns, workspace=workspace)
    return [Episode.objects.get(pk=one.id) for one in outcomes if isinstance(one, Stored) and not one.is_duplicate]


def test_a_turn_becomes_an_episode_in_its_own_words(workspace: Workspace) -> None:
    """E1, L3: with session, speaker and time; what was found in it gives category, confidence, names and kind."""
    turns = said("Hi there!", "I prefer short meetings in Graz because my days are full.", "What do you think?")

    [episode] = _store(turns, workspace)

    assert episode.text == "I prefer short meetings in Graz because my days are full."
    assert (episode.session, episode.user, episode.speaker) == ("s-1", "mara", "Mara")
    assert (episode.category, episode.confidence, episode.tier) == ("preference", 0.95, "explicit")
    assert episode.entities == ["mara", "graz"]
    assert episode.causes == ["Their days are full"]
    assert (episode.kind, episode.occurred_at) == (Kind.NOTE, turns[1].occurred_at)
    assert (episode.state, episode.read_at) == ("new", None)
    assert episode.embeddings.count() == 1


def test_a_turn_with_two_claims_is_one_episode_with_two_claims(workspace: Workspace) -> None:
    """E1: a cycle reads them, as of an episode that was posted."""
    [episode] = _store(said("My manager is Dana. I always drink oat milk."), workspace)

    run_cycle(workspace, NOW)

    claims = Claim.objects.filter(episode=episode).order_by("number").values_list("sentence", flat=True)
    assert list(claims) == ["Mara's manager is Dana.", "Mara always drinks oat milk."]


def test_a_turn_with_a_claim_and_no_fact_is_an_episode(workspace: Workspace) -> None:
    """E1, L3: its confidence goes by its hedges, and it is nothing but what was said."""
    words = "moved over to Helix last week, loving it"

    [sure, hedged] = kept(turns=said(words, "maybe moved over to Helix for good"), workspace=workspace)

    assert (sure.text, sure.source, sure.category, sure.entities) == (words, Source.HUMAN, "", [])
    assert (sure.confidence, hedged.confidence) == (0.95, 0.55)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!", "Thanks a lot, that helps.", "Hallo Jon, wie geht es dir?", "Good night, sleep well", "ok",
        "Have a nice day", "Vielen Dank, das hilft mir sehr.", "You're welcome", "Do you know where Ana lives?",
        "[Memory flash: Mara prefers tabs over spaces.]",
    ],
)  # fmt: skip
def test_greetings_thanks_and_questions_leave_nothing(workspace: Workspace, text: str) -> None:
    """L3: nor does what was recalled into a turn (B4)."""
    assert _store(said(text), workspace) == []


def test_what_is_asked_with_something_told_beside_it_is_an_episode(workspace: Workspace) -> None:
    """E1: the question alone would be none."""
    words = "At home on the fedora box. Which command shows the running Python?"

    assert [one.text for one in _store(said(words, words.partition(". ")[2]), workspace)] == [words]


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.TOOL, Role.SYSTEM])
def test_only_a_user_is_heard_without_a_fact(workspace: Workspace, role: Role) -> None:
    """E1: what others say must have told one."""
    assert kept(turns=said("We moved to Helix last week.", role=role), workspace=workspace) == []


def test_german_turns_stay_german(workspace: Workspace) -> None:
    """L3: the language of the source is kept."""
    turns = said("Hallo Jon, wie geht es dir?", "Ich trinke morgens Tee, weil Kaffee zu stark ist.")

    [episode] = _store(turns, workspace)

    assert (episode.text, episode.language) == ("Ich trinke morgens Tee, weil Kaffee zu stark ist.", "de")


def test_a_replay_adds_nothing(workspace: Workspace) -> None:
    """L4: the same turns once more, from their stored reply, make no further episode and no further call."""
    turns = said("I prefer short meetings in Graz.", "My sister Ana is a doctor.")
    _store(turns, workspace)

    assert _store(turns, workspace) == []
    assert Episode.objects.count() == 2
    assert ModelCall.objects.count() == 1
    assert not Episode.objects.filter(confirmations__gt=0).exists()


def test_a_long_turn_is_split(workspace: Workspace, settings: Settings) -> None:
    """E1, B1: at its paragraphs, as an importer splits; every part is an episode, and a replay adds none."""
    paragraphs = [f"Part {number} of the boat is {'very ' * 4_000}old." for number in (1, 2, 3)]
    turns = said("\n\n".join(paragraphs))
    fact = told("The boat is old.", importance=0.7)

    parts = kept(fact, turns=turns, workspace=workspace)
    keep(fact, turns=turns, workspace=workspace)

    assert [part.text.strip() for part in parts] == paragraphs
    assert all(len(part.text.encode()) <= settings.POLICY.ingest.text_bytes for part in parts)
    assert {(part.occurred_at, part.category) for part in parts} == {(turns[0].occurred_at, "fact")}
    assert Episode.objects.count() == 3


@pytest.mark.parametrize(
    ("role", "source"), [(Role.USER, Source.HUMAN), (Role.ASSISTANT, Source.AI), (Role.TOOL, Source.INGEST)]
)
def test_the_role_is_the_source(workspace: Workspace, role: Role, source: Source) -> None:
    """E1, D7: a turn is the word of whoever said it."""
    [episode] = kept(told("The tests run on Linux."), turns=said("Tests run on Linux.", role=role), workspace=workspace)

    assert episode.source == source


def test_all_turns_that_tell_a_fact_are_episodes_of_their_own(workspace: Workspace) -> None:
    """E1: each its speaker's word; a system's is none, however many of the words it has."""
    turns = [
        *said("Everybody meets on Mondays at nine in the hall.", role=Role.SYSTEM, speaker=""),
        *said("We meet on Mondays.", first=2),
        *said("Yes, at nine.", role=Role.ASSISTANT, speaker="Jon", first=3),
    ]

    episodes = kept(told("Everybody meets on Mondays at nine in the hall.", 2, 3), turns=turns, workspace=workspace)

    assert [(one.text, one.source, one.speaker) for one in episodes] == [
        ("We meet on Mondays.", "human", "Mara"),
        ("Yes, at nine.", "ai", "Jon"),
    ]


def test_several_facts_of_a_turn_are_traits_of_one_episode(workspace: Workspace) -> None:
    """E1, L3: the category of the most important, the highest confidence, the strongest feeling, all names."""
    facts = (
        told("Mara lives in Graz.", confidence=0.6, importance=0.5, entities=("Graz",), causes=("It is warm",)),
        told(
            "Mara decided to sell the boat.", category=Category.DECISION, confidence=0.5, importance=0.7,
            entities=("Boat", "Graz"), valence=-0.4,
        ),
        told("Mara likes rain.", category=Category.PREFERENCE, confidence=0.95, importance=0.6, valence=0.3),
    )  # fmt: skip

    [episode] = kept(*facts, turns=said("I live in Graz, I'll sell the boat, I like rain."), workspace=workspace)

    assert (episode.category, episode.confidence, episode.valence) == ("decision", 0.95, -0.4)
    assert episode.importance == pytest.approx(0.7 + 0.15)  # D5: the first of all
    assert (episode.entities, episode.causes) == (["graz", "boat"], ["It is warm"])


@pytest.mark.parametrize("category", [Category.DECISION, Category.COMMITMENT, Category.CORRECTION])
def test_what_must_not_be_paraphrased_is_kept_as_it_was_said(workspace: Workspace, category: Category) -> None:
    """L6: the exact words are the text."""
    words = "OK, so: I'll send it on Monday, promise."

    [episode] = kept(told("Mara will send the report.", category=category), turns=said(words), workspace=workspace)

    assert (episode.text, episode.category, episode.verbatim) == (words, category, "")


def test_what_a_system_says_is_not_read(workspace: Workspace) -> None:
    """L3: the same orders at the head of every conversation are no memories."""
    found = ask(said("Always answer in German.", role=Role.SYSTEM, speaker=""), workspace=workspace)

    assert found == ExtractionResult(facts=())
    assert not ModelCall.objects.exists()


def test_what_we_recalled_into_a_turn_is_not_read_again(workspace: Workspace) -> None:
    """L3, B4: injected spans are dropped, from what is asked and from what is kept."""
    turns = said("[Memory flash: Mara prefers tabs over spaces.] I live in Graz.")

    found = ask(turns, workspace=workspace)
    [episode] = _store(turns, workspace)

    assert [fact.text for fact in found.facts] == ["Mara lives in Graz."]
    assert episode.text == "I live in Graz."


def test_a_reply_is_linked_to_the_episodes_it_tells_of(workspace: Workspace) -> None:
    """B19: so that erasing one finds the reply."""
    [episode] = _store(said("I prefer short meetings in Graz."), workspace)

    call = ModelCall.objects.get()
    assert (call.purpose, call.outcome) == ("facts", CallOutcome.OK)
    assert [one.pk for one in call.episodes.all()] == [episode.pk]


def test_many_turns_are_asked_for_in_several_calls(workspace: Workspace) -> None:
    """L3: 20 a call."""
    found = ask(said(*(f"I own {n} red bicycles." for n in range(2, 47))), workspace=workspace)

    assert ModelCall.objects.count() == 3
    assert [fact.turns for fact in found.facts] == [(n,) for n in range(1, 46)]


def test_an_unstorable_turn_takes_no_other_with_it(workspace: Workspace) -> None:
    """L3: each is answered in its place."""
    facts = [told("x", causes=("\0",)), told("Mara lives in Graz.", 2)]

    first, second = keep(*facts, turns=said("x", "I live in Graz."), workspace=workspace)

    assert isinstance(first, Rejected)
    assert isinstance(second, Stored)


def test_a_turn_that_breaks_the_rules_is_named(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """E6: and those beside it are heard."""

    def break_over_one(*, text: str, **given: Any) -> Any:
        if "99:99" in text:
            raise ValueError("invalid literal: '99:99'")
        return read_claims(text=text, **given)

    monkeypatch.setattr("memory.ingest.turn_facts.read_claims", break_over_one)
    turns = said("The gate of the lab is on 99:99.", "My manager is Dana.")

    telling, broken = find_informative_turns(found=ExtractionResult(facts=()), turns=turns, user="mara")

    assert [one.matter for one in telling] == ["My manager is Dana."]
    assert broken == {1: "our own error: ValueError: invalid literal: '99:99'"}


def test_without_time_nothing_is_asked(workspace: Workspace) -> None:
    """B9: and nothing is lost: the turns stay where they are."""
    from memory.ingest.turn_facts import ask_for_facts, extraction_budget

    budget = extraction_budget()
    budget.deadline -= 1_000

    with pytest.raises(OutOfBudget):
        ask_for_facts(workspace_id=workspace.pk, turns=said("I live in Graz."), budget=budget)


def test_surprise_moves_the_importance_of_a_new_turn(workspace: Workspace) -> None:
    """D5: the first of all gains 0.15; what is nearly known loses, and is flagged."""
    turns = said(
        "Mara keeps the release notes in the wiki of the team.", "Mara keeps the release notes in the team's wiki."
    )  # fmt: skip

    first, second = kept(told(turns[0].text), told(turns[1].text, 2), turns=turns, workspace=workspace)

    assert first.importance == pytest.approx(0.65)
    assert (first.distance, first.is_near_duplicate) == (1.0, False)
    assert second.importance < 0.5
    assert second.is_near_duplicate
    assert second.surprise is not None
    assert second.surprise < 0.5


def test_a_later_turn_confirms_an_earlier_guess(workspace: Workspace) -> None:
    """L15: once, however often the later one is replayed."""
    words, fact = "I may move to Graz.", "Mara may move to Graz."
    [guess] = kept(told(fact, confidence=0.3), turns=said(words), workspace=workspace)
    later = said(words, first=2, at=NOW + timedelta(hours=1))
    other = ConversationKey(session="s-2", user="mara")
    for _ in range(2):
        keep(told(fact, 2), turns=later, workspace=workspace, talk=other)

    guess.refresh_from_db()
    assert (guess.tier, guess.confirmations, guess.confirmed_at) == ("speculative", 1, later[0].occurred_at)


def test_the_same_words_later_in_a_conversation_confirm(workspace: Workspace) -> None:
    """L15: they are no new episode (L4), whether a fact was found in them or not."""
    [episode] = kept(told("Mara lives in Graz."), turns=said("I live in Graz."), workspace=workspace)

    keep(turns=said("I live in Graz.", first=2), workspace=workspace)

    episode.refresh_from_db()
    assert (episode.confirmations, Episode.objects.count()) == (1, 1)


TABS, SPACES, TEA = "I prefer tabs over spaces.", "I prefer spaces over tabs.", "I prefer tea over coffee."


def _prefer(text: str, turn: int = 1) -> Any:
    return told(f"Mara prefers {text.removeprefix('I prefer ')}", turn, category=Category.PREFERENCE)


def test_a_newer_note_supersedes_an_older_one_it_contradicts(workspace: Workspace) -> None:
    """L18: the older keeps its words and says what superseded it."""
    old, tea = kept(_prefer(TABS), _prefer(TEA, 2), turns=said(TABS, TEA), workspace=workspace)

    [new] = kept(_prefer(SPACES, 3), turns=said(SPACES, first=3), workspace=workspace)

    for episode in (old, tea, new):
        episode.refresh_from_db()
    assert (old.status, tea.status, new.status) == (
        EpisodeStatus.SUPERSEDED,
        EpisodeStatus.ACTIVE,
        EpisodeStatus.ACTIVE,
    )
    assert old.text == TABS
    assert Transition.objects.get(episode=old).reason == f"superseded by {new.pk}"


def test_a_turn_that_says_several_things_is_not_superseded_for_one_of_them(workspace: Workspace) -> None:
    """L18: what else it says would be put aside with it."""
    [old] = kept(_prefer(TABS), turns=said(f"{TABS} I never eat pork."), workspace=workspace)

    kept(_prefer(SPACES, 2), turns=said(SPACES, first=2), workspace=workspace)

    old.refresh_from_db()
    assert old.status == EpisodeStatus.ACTIVE


def test_a_correction_supersedes_what_it_corrects(workspace: Workspace) -> None:
    """L18, L5: though the day makes an episode of both."""
    [old] = kept(told("Mara's review is on Friday."), turns=said("My review is on Friday."), workspace=workspace)

    correction = told("Mara's review is on Thursday, not Friday.", 2, category=Category.CORRECTION)
    turns = said("My review is on Thursday, not Friday.", first=2)
    [new] = kept(correction, turns=turns, workspace=workspace)

    old.refresh_from_db()
    assert (old.kind, new.kind) == ("episode", "episode")
    assert old.status == EpisodeStatus.SUPERSEDED
    assert Transition.objects.get(episode=old).reason == f"superseded by {new.pk}"


def test_a_model_does_not_supersede_its_user(workspace: Workspace) -> None:
    """L18, D7: what is trusted less puts nothing aside."""
    talk = ConversationKey(session="s-1")
    turns = [*said(TABS, speaker=""), *said(SPACES, role=Role.ASSISTANT, speaker="", first=2)]

    old, new = kept(_prefer(TABS), _prefer(SPACES, 2), turns=turns, workspace=workspace, talk=talk)

    old.refresh_from_db()
    assert (old.status, new.source) == (EpisodeStatus.ACTIVE, Source.AI)


def test_another_users_notes_are_left_alone(workspace: Workspace) -> None:
    """L18: a conflict is within one user's memory."""
    [old] = kept(_prefer(TABS), turns=said(TABS), workspace=workspace)

    keep(
        _prefer(SPACES, 2),
        turns=said(SPACES, first=2),
        workspace=workspace,
        talk=ConversationKey(session="s-9", user="jon"),
    )

    old.refresh_from_db()
    assert old.status == EpisodeStatus.ACTIVE
