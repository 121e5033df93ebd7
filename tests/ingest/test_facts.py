"""Facts of a conversation become episodes: whose word they are, in which words, and only once (L3, L4, L6)."""

from datetime import timedelta

import pytest

from memory.domain.category import Category
from memory.domain.conversation import FactsFound, Role, SaidTurn, Talk
from memory.domain.kinds import Kind
from memory.domain.lifecycle import EpisodeStatus
from memory.ingest.arrival import Arrival, Rejected, Stored
from memory.ingest.facts import store_facts
from memory.llm.calls import OutOfBudget
from memory.models import CallOutcome, Episode, ModelCall, Source, Transition, Workspace
from tests import factories
from tests.factories import NOW
from tests.ingest.talking import TALK, ask, keep, kept, said, told

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def _store(turns: list[SaidTurn], workspace: Workspace) -> list[Episode]:
    found = ask(turns, workspace=workspace)
    outcomes = store_facts(found=found, turns=turns, talk=TALK, arrival=Arrival(workspace=workspace, now=NOW))
    return [Episode.objects.get(pk=one.id) for one in outcomes if isinstance(one, Stored) and not one.is_duplicate]


def test_turns_become_typed_episodes(workspace: Workspace) -> None:
    """L3: read offline and stored with session, speaker, category, confidence, names and kind."""
    turns = said("Hi there!", "I prefer short meetings in Graz because my days are full.", "What do you think?")

    [episode] = _store(turns, workspace)

    assert episode.text == "Mara prefers short meetings in Graz because their days are full."
    assert (episode.session, episode.user, episode.speaker) == ("s-1", "mara", "Mara")
    assert (episode.category, episode.confidence, episode.tier) == ("preference", 0.95, "explicit")
    assert episode.entities == ["mara", "graz"]
    assert episode.causes == ["Their days are full"]
    assert (episode.kind, episode.occurred_at) == (Kind.NOTE, turns[1].occurred_at)
    assert episode.embeddings.count() == 1


def test_german_turns_become_facts_in_german(workspace: Workspace) -> None:
    """L3: the language of the source is kept."""
    turns = said("Hallo Jon, wie geht es dir?", "Ich trinke morgens Tee, weil Kaffee zu stark ist.")

    [episode] = _store(turns, workspace)

    assert (episode.text, episode.language) == ("Mara trinkt morgens Tee, weil Kaffee zu stark ist.", "de")


def test_a_replay_adds_nothing(workspace: Workspace) -> None:
    """L4: the same turns once more, from their stored reply, make no further episode and no further call."""
    turns = said("I prefer short meetings in Graz.", "My sister Ana is a doctor.")
    _store(turns, workspace)

    assert _store(turns, workspace) == []
    assert Episode.objects.count() == 2
    assert ModelCall.objects.count() == 1
    assert not Episode.objects.filter(confirmations__gt=0).exists()


@pytest.mark.parametrize(
    ("roles", "source"),
    [
        ((Role.USER,), Source.HUMAN),
        ((Role.ASSISTANT,), Source.AI),
        ((Role.TOOL,), Source.INGEST),
        ((Role.USER, Role.ASSISTANT), Source.AI),
        ((Role.USER, Role.TOOL), Source.INGEST),
    ],
)
def test_roles_are_kept(workspace: Workspace, roles: tuple[Role, ...], source: Source) -> None:
    """L3: a fact is a person's word only if nobody else said any of it."""
    turns = [turn for n, role in enumerate(roles, start=1) for turn in said("Tests run on Linux.", role=role, first=n)]

    [episode] = kept(told("The tests run on Linux.", *range(1, len(roles) + 1)), turns=turns, workspace=workspace)

    assert episode.source == source


def test_what_several_said_has_no_speaker(workspace: Workspace) -> None:
    turns = [*said("We meet on Mondays."), *said("Yes, at nine.", speaker="Jon", first=2)]

    [episode] = kept(told("The team meets on Mondays at nine.", 1, 2), turns=turns, workspace=workspace)

    assert episode.speaker == ""


@pytest.mark.parametrize("category", list(Category))
def test_exact_words_stay_beside_what_must_not_be_paraphrased(workspace: Workspace, category: Category) -> None:
    """L6: decisions, commitments and corrections."""
    turns = said("OK, so: I'll send it on Monday, promise.")

    [episode] = kept(told("Mara will send the report.", category=category), turns=turns, workspace=workspace)

    is_exact = category in ("decision", "commitment", "correction")
    assert episode.verbatim == ("OK, so: I'll send it on Monday, promise." if is_exact else "")


def test_what_a_system_says_is_not_read(workspace: Workspace) -> None:
    """L3: the same orders at the head of every conversation are no memories."""
    found = ask(said("Always answer in German.", role=Role.SYSTEM, speaker=""), workspace=workspace)

    assert found == FactsFound(facts=())
    assert not ModelCall.objects.exists()


def test_what_we_recalled_into_a_turn_is_not_read_again(workspace: Workspace) -> None:
    """L3, B4: injected spans are dropped."""
    found = ask(said("[Memory flash: Mara prefers tabs over spaces.] I live in Graz."), workspace=workspace)

    assert [fact.text for fact in found.facts] == ["Mara lives in Graz."]


def test_a_reply_is_linked_to_the_episodes_it_became(workspace: Workspace) -> None:
    """B19: so that erasing one finds the reply that quotes it."""
    [episode] = _store(said("I prefer short meetings in Graz."), workspace)

    call = ModelCall.objects.get()
    assert (call.purpose, call.outcome) == ("facts", CallOutcome.OK)
    assert [one.pk for one in call.episodes.all()] == [episode.pk]


def test_many_turns_are_asked_for_in_several_calls(workspace: Workspace) -> None:
    """L3: 20 a call."""
    found = ask(said(*(f"I own {n} red bicycles." for n in range(2, 47))), workspace=workspace)

    assert ModelCall.objects.count() == 3
    assert [fact.turns for fact in found.facts] == [(n,) for n in range(1, 46)]


def test_an_unstorable_fact_takes_no_other_with_it(workspace: Workspace) -> None:
    """L3: each is answered in its place."""
    turns = said("x", "y")

    first, second = keep(told("x" * 40_000), told("Mara lives in Graz.", 2), turns=turns, workspace=workspace)

    assert isinstance(first, Rejected)
    assert isinstance(second, Stored)


def test_without_time_nothing_is_asked(workspace: Workspace) -> None:
    """B9: and nothing is lost: the turns stay where they are."""
    from memory.ingest.facts import ask_for_facts, extraction_budget

    budget = extraction_budget()
    budget.deadline -= 1_000

    with pytest.raises(OutOfBudget):
        ask_for_facts(workspace_id=workspace.pk, turns=said("I live in Graz."), budget=budget)


def test_surprise_moves_the_importance_of_a_new_fact(workspace: Workspace) -> None:
    """D5: the first of all gains 0.15; what is nearly known loses, and is flagged."""
    turns = said("x", "y")
    fact = told("Mara keeps the release notes in the wiki of the team.")
    again = told("Mara keeps the release notes in the team's wiki.", 2)

    first, second = kept(fact, again, turns=turns, workspace=workspace)

    assert first.importance == pytest.approx(0.65)
    assert (first.distance, first.is_near_duplicate) == (1.0, False)
    assert second.importance < 0.5
    assert second.is_near_duplicate
    assert second.surprise is not None
    assert second.surprise < 0.5


def test_a_later_fact_confirms_an_earlier_guess(workspace: Workspace) -> None:
    """L15: once, however often the later one is replayed."""
    [guess] = kept(told("Mara may move to Graz.", confidence=0.3), turns=said("x"), workspace=workspace)
    later = said("y", first=2, at=NOW + timedelta(hours=1))
    other = Talk(session="s-2", user="mara")
    for _ in range(2):
        keep(told("Mara may move to Graz.", 2), turns=later, workspace=workspace, talk=other)

    guess.refresh_from_db()
    assert (guess.tier, guess.confirmations, guess.confirmed_at) == ("speculative", 1, later[0].occurred_at)


def test_the_same_words_later_in_a_conversation_confirm(workspace: Workspace) -> None:
    """L15: they are no new episode (L4)."""
    fact = told("Mara lives in Graz.")
    [episode] = kept(fact, turns=said("x"), workspace=workspace)
    later = said("y", first=2)

    keep(told("Mara lives in Graz.", 2), turns=later, workspace=workspace)

    episode.refresh_from_db()
    assert (episode.confirmations, Episode.objects.count()) == (1, 1)


def test_a_newer_note_supersedes_an_older_one_it_contradicts(workspace: Workspace) -> None:
    """L18: the older keeps its words and says what superseded it."""
    old, tea = kept(
        told("Mara prefers tabs over spaces.", category=Category.PREFERENCE),
        told("Mara prefers tea over coffee.", category=Category.PREFERENCE),
        turns=said("x"),
        workspace=workspace,
    )

    [new] = kept(
        told("Mara prefers spaces over tabs.", 2, category=Category.PREFERENCE),
        turns=said("y", first=2),
        workspace=workspace,
    )

    for episode in (old, tea, new):
        episode.refresh_from_db()
    assert (old.status, tea.status, new.status) == (
        EpisodeStatus.SUPERSEDED,
        EpisodeStatus.ACTIVE,
        EpisodeStatus.ACTIVE,
    )
    assert old.text == "Mara prefers tabs over spaces."
    assert Transition.objects.get(episode=old).reason == f"superseded by {new.pk}"


def test_a_correction_supersedes_what_it_corrects(workspace: Workspace) -> None:
    """L18, L5: though the day makes an episode of both."""
    [old] = kept(told("Mara's review is on Friday."), turns=said("x"), workspace=workspace)

    correction = told("Mara's review is on Thursday, not Friday.", 2, category=Category.CORRECTION)
    [new] = kept(correction, turns=said("y", first=2), workspace=workspace)

    old.refresh_from_db()
    assert (old.kind, new.kind) == ("episode", "episode")
    assert old.status == EpisodeStatus.SUPERSEDED
    assert Transition.objects.get(episode=old).reason == f"superseded by {new.pk}"


def test_a_model_does_not_supersede_its_user(workspace: Workspace) -> None:
    """L18, D7: what is trusted less puts nothing aside."""
    talk = Talk(session="s-1")
    turns = [*said("x", speaker=""), *said("y", role=Role.ASSISTANT, speaker="", first=2)]
    [old] = kept(
        told("Mara prefers tabs over spaces.", category=Category.PREFERENCE),
        turns=turns,
        workspace=workspace,
        talk=talk,
    )

    keep(
        told("Mara prefers spaces over tabs.", 2, category=Category.PREFERENCE),
        turns=turns,
        workspace=workspace,
        talk=talk,
    )

    old.refresh_from_db()
    assert old.status == EpisodeStatus.ACTIVE


def test_another_users_notes_are_left_alone(workspace: Workspace) -> None:
    """L18: a conflict is within one user's memory."""
    [old] = kept(
        told("Mara prefers tabs over spaces.", category=Category.PREFERENCE), turns=said("x"), workspace=workspace
    )

    keep(
        told("Mara prefers spaces over tabs.", 2, category=Category.PREFERENCE),
        turns=said("y", first=2),
        workspace=workspace,
        talk=Talk(session="s-9", user="jon"),
    )

    old.refresh_from_db()
    assert old.status == EpisodeStatus.ACTIVE
