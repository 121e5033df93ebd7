"""Recall: both channels find, both kinds blend, and what must not come to mind does not."""

from datetime import timedelta
from functools import partial

import pytest

from memory.models import Episode, EpisodeEmbedding, Workspace
from memory.recall.query import MemoryType
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db

NOISE = [
    "The kettle in the office kitchen leaks.",
    "Rain is expected on Sunday.",
    "The train to Basel was late again.",
    "A new carpet arrived for the hallway.",
    "The museum closes early on Mondays.",
    "Somebody left a bicycle by the gate.",
]


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def noise(workspace: Workspace) -> None:
    for text in NOISE:
        remembered(text, workspace=workspace)


@pytest.mark.usefixtures("noise")
def test_words_find_what_vectors_miss(workspace: Workspace) -> None:
    """B17: the text channel contributes: this vector is that of another text altogether."""
    wanted = remembered("The invoice number is QX-7781.", workspace=workspace, embedded_as="bananas ripen in the sun")
    assert ask("what was QX-7781 about", workspace=workspace).results[0].id == wanted.pk


@pytest.mark.usefixtures("noise")
def test_vectors_find_what_words_miss(workspace: Workspace) -> None:
    """B17: the vector channel contributes: no word of the question is in the text."""
    wanted = remembered("Our cat adores tuna.", workspace=workspace)
    assert ask("pets eating fish", workspace=workspace).results[0].id == wanted.pk


def test_a_long_question_needs_only_some_of_its_words(workspace: Workspace) -> None:
    """B17: any word will do; asking for all of them finds nothing."""
    wanted = factories.episode(workspace=workspace, text="The deployment failed at night.", language="en")
    found = ask("can you remind me why exactly our last deployments were failing back then", workspace=workspace)
    assert [result.id for result in found.results] == [wanted.pk]


def test_words_are_compared_in_the_language_of_the_row(workspace: Workspace) -> None:
    """B3: a German row is found by another form of its word, a row of unknown language by the word itself."""
    german = factories.episode(workspace=workspace, text="Die Häuser sind gestrichen.", language="de")
    unknown = factories.episode(workspace=workspace, text="Haus", language="")
    assert ids(ask("Haus", workspace=workspace)) == {german.pk, unknown.pk}


def test_stop_words_find_no_row_of_unknown_language(workspace: Workspace) -> None:
    """B17: such rows keep every word, so the query's stop words are left out for them."""
    factories.episode(workspace=workspace, text="What is the time in the capital?", language="")
    wanted = factories.episode(workspace=workspace, text="the parrot sleeps", language="")
    assert ids(ask("where is the parrot", workspace=workspace)) == {wanted.pk}


def test_of_two_that_say_the_same_the_one_whose_session_is_about_it_comes_first(workspace: Workspace) -> None:
    """B17: what else was said in a session tells what a turn of it is about."""
    for number, (text, session) in enumerate(
        [("The kettle leaks.", "kitchen"), ("Rain is expected.", "kitchen"), ("Parrots talk.", "birds")]
    ):
        remembered(text, workspace=workspace, session=session, occurred_at=NOW + timedelta(hours=number))
    apart = remembered("It was a joy.", workspace=workspace, session="kitchen", occurred_at=NOW + timedelta(days=1))
    among = remembered("It was a joy!", workspace=workspace, session="birds", occurred_at=NOW + timedelta(days=1))
    results = [result.id for result in ask("which birds are there that talk", workspace=workspace).results]
    assert results.index(among.pk) < results.index(apart.pk)


def test_a_session_of_another_project_is_another_one(workspace: Workspace) -> None:
    """B17, B21."""
    here, there = factories.project(workspace=workspace), factories.project(workspace=workspace)
    remembered("Parrots talk.", workspace=workspace, session="1", project=there)
    remembered("The kettle leaks.", workspace=workspace, session="1", project=here)
    results = ask("do parrots talk", workspace=workspace, is_explained=True).results
    lifts = [result.explain.components["session"] or 0.0 for result in results if result.explain]
    assert lifts[0] > 0.0 > lifts[1]


def test_quotes_and_operators_in_a_query_are_words(workspace: Workspace) -> None:
    wanted = factories.episode(workspace=workspace, text="Don't use C:\\temp & friends", language="en")
    assert ids(ask("don't | use: C:\\temp & !(friends) 'x' <-> ''", workspace=workspace)) == {wanted.pk}


@pytest.mark.parametrize("query", ["???", "the of and", "🦜"])
def test_a_query_without_words_is_answered_by_vectors(workspace: Workspace, query: str) -> None:
    wanted = remembered("Parrots talk.", workspace=workspace)
    assert ids(ask(query, workspace=workspace)) == {wanted.pk}


def test_a_pending_episode_is_found_at_once(workspace: Workspace) -> None:
    """B17: recall waits neither for consolidation nor for a vector."""
    wanted = factories.episode(workspace=workspace, text="The vault code changed today.", language="en", state="new")
    result = ask("vault code", workspace=workspace).results[0]
    assert (result.id, result.type, result.occurred_at) == (wanted.pk, MemoryType.EPISODE, NOW)


@pytest.mark.usefixtures("noise")
def test_a_query_whose_answer_is_a_belief_finds_it_in_the_top_three(workspace: Workspace) -> None:
    """B17: beliefs' scores × 0.8 stand beside episodes' scores."""
    for day in range(4):
        remembered(f"Mara said on day {day} that she drinks tea in the morning.", workspace=workspace)
    wanted = believed("Mara prefers tea to coffee.", workspace=workspace)
    top = {r.id: r for r in ask("does Mara prefer tea or coffee", workspace=workspace).results[:3]}
    assert top[wanted.pk].confidence == pytest.approx(6 / 7)


def test_an_old_belief_is_found_among_the_many_episodes_that_made_it(workspace: Workspace) -> None:
    """B17: in the top 3, though all episodes say the same and nobody asked for it in a year."""
    for number in range(60):
        remembered(f"Mara: I'd rather have tea than coffee, I said so {number} times.", workspace=workspace)
    wanted = believed("Mara prefers tea to coffee.", workspace=workspace, created_at=NOW - timedelta(days=365))
    for episode in Episode.objects.all():
        factories.evidence(belief=wanted, episode=episode)
    assert wanted.pk in [result.id for result in ask("Mara: tea or coffee?", workspace=workspace).results[:3]]


def test_a_fresh_belief_does_not_answer_every_question(workspace: Workspace) -> None:
    """B17: strength and confidence know nothing of the query; they take no place from episodes that answer it."""
    for number in range(30):
        remembered(f"Mara planted {number} apple trees behind the barn.", workspace=workspace)
    believed("Mara prefers tea to coffee.", workspace=workspace, alpha=60.0)
    results = ask("how many apple trees did Mara plant behind the barn", workspace=workspace).results
    assert {result.type for result in results} == {MemoryType.EPISODE}


@pytest.mark.parametrize(
    ("statement", "bearing_out", "is_told"),
    [
        ("Mara pours a cup of tea at dawn.", 0, True),  # as near as the episodes
        ("Mara has a cup.", 0, False),  # above the floor, far below the episodes
        ("Mara has a cup of tea.", 1, True),
        ("Otto plays chess.", 1, False),  # below the floor
        ("Otto plays chess.", 3, True),
    ],
)
def test_a_belief_that_is_not_as_near_as_the_episodes_must_be_borne_out_by_the_best_of_them(
    workspace: Workspace, statement: str, bearing_out: int, is_told: bool
) -> None:
    """B17: by the best one if it fits at all, by the three best if it does not."""
    for number in range(30):
        remembered(f"Carpet {number} arrived for the hallway.", workspace=workspace)
    for day in range(3):
        remembered(f"Mara pours a cup of tea at dawn on day {day}.", workspace=workspace)
    belief = believed(statement, workspace=workspace)
    asked = partial(ask, "who pours a cup of tea at dawn", workspace=workspace, limit=5)
    for episode in asked(types=(MemoryType.EPISODE,)).results[:bearing_out]:
        factories.evidence(belief=belief, episode=Episode.objects.get(pk=episode.id))
    assert (belief.pk in ids(asked())) == is_told


def test_beliefs_score_by_confidence_similarity_strength_and_text(workspace: Workspace) -> None:
    """B17: 0.5·(1·confidence) + 0.3·0.5 of a belief just created + 0.2·0.5 of one candidate; times 0.8."""
    believed("Mara prefers tea.", workspace=workspace, alpha=9.0, beta=1.0)
    result = ask("Mara prefers tea.", workspace=workspace).results[0]
    assert result.score == pytest.approx(0.8 * (0.5 * 0.9 + 0.3 * 0.5 + 0.2 * 0.5), abs=1e-3)


@pytest.mark.parametrize(("alpha", "beta", "is_recalled"), [(2.0, 3.0, False), (2.01, 3.0, True)])
def test_beliefs_at_or_below_the_least_confidence_stay_away(
    workspace: Workspace, alpha: float, beta: float, is_recalled: bool
) -> None:
    """B17: confidence > 0.4 only."""
    believed("Mara prefers tea.", workspace=workspace, alpha=alpha, beta=beta)
    assert bool(ask("Mara tea", workspace=workspace).results) is is_recalled


@pytest.mark.parametrize("status", ["challenged", "archived", "revised", "forgotten"])
def test_only_active_memories_come_to_mind(workspace: Workspace, status: str) -> None:
    """B17, D3."""
    believed("Mara prefers tea.", workspace=workspace, status=status)
    remembered("Mara likes tea.", workspace=workspace, status="archived" if status == "revised" else status)
    assert ask("Mara tea", workspace=workspace).results == ()


def test_what_is_past_its_validity_does_not_come_to_mind(workspace: Workspace) -> None:
    """B1: past `valid_until` an item is not recalled, and it takes no place from others."""
    over, still = NOW, NOW + timedelta(seconds=1)
    for number in range(60):
        remembered(f"Mara drinks tea, note {number}.", workspace=workspace, valid_until=over)
    wanted = remembered("A sofa was moved.", workspace=workspace, valid_until=still)
    believed("Mara prefers tea.", workspace=workspace, valid_until=over)
    assert ids(ask("Mara tea", workspace=workspace)) == {wanted.pk}


def test_a_user_recalls_their_own_and_nobodys(workspace: Workspace) -> None:
    """B21."""
    for user in ("ann", "bob", ""):
        remembered(f"Tea for {user or 'all'}.", workspace=workspace, user=user)
        believed(f"Tea is good for {user or 'all'}.", workspace=workspace, user=user)
    texts = {result.text for result in ask("tea", workspace=workspace, user="ann").results}
    assert texts == {"Tea for ann.", "Tea for all.", "Tea is good for ann.", "Tea is good for all."}


def test_a_workspace_without_beliefs_recalls_episodes(workspace: Workspace) -> None:
    """B22."""
    workspace.beliefs_enabled = False
    workspace.save()
    believed("Mara prefers tea.", workspace=workspace)
    episode = remembered("Mara likes tea.", workspace=workspace)
    assert ids(ask("Mara tea", workspace=workspace)) == {episode.pk}


def test_vectors_of_another_model_are_not_compared(workspace: Workspace) -> None:
    remembered("Our cat adores tuna.", workspace=workspace)
    EpisodeEmbedding.objects.update(model="another")
    assert ask("pets eating fish", workspace=workspace).results == ()


def test_limit_counts_both_kinds_together(workspace: Workspace) -> None:
    for number in range(4):
        remembered(f"Tea number {number}.", workspace=workspace)
        believed(f"Tea {number} is good.", workspace=workspace)
    found = ask("tea", workspace=workspace, limit=3)
    assert len(found.results) == 3
    assert [r.score for r in found.results] == sorted((r.score for r in found.results), reverse=True)


def test_asking_for_one_kind_gives_one_kind(workspace: Workspace) -> None:
    remembered("Mara likes tea.", workspace=workspace)
    belief = believed("Mara prefers tea.", workspace=workspace)
    assert ids(ask("tea", workspace=workspace, types=(MemoryType.BELIEF,))) == {belief.pk}
