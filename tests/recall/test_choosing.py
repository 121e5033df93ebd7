"""Which memories are worth a line: each fact once, and nothing that was given up without what took its place (B16)."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from memory.domain.taxonomy import Knowledge, Mode
from memory.models import Belief, Claim, Episode, Workspace
from memory.recall.prompt_lines import format_short_line
from memory.recall.query import MemoryType, RecalledMemory
from memory.recall.relevance import choose_lines
from memory.search.prepared import TimedSearch
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def told(query: str, *memories: RecalledMemory) -> list[str]:
    return [memory.text for memory in chosen(query, *memories)]


def chosen(query: str, *memories: RecalledMemory) -> list[RecalledMemory]:
    with TimedSearch(effort=64) as timed:
        return choose_lines(memories=memories, query=query, timed=timed, policy=settings.POLICY)


def of(row: Episode | Belief, **given: Any) -> RecalledMemory:
    """Return a row as recall gives it, relevant unless said otherwise."""
    fields: dict[str, Any] = {"id": row.pk, "score": 0.5, "is_relevant": True}
    if isinstance(row, Episode):
        fields |= {
            "type": MemoryType.EPISODE,
            "text": row.text,
            "knowledge": Knowledge.NARRATIVE,
            "dated": row.occurred_at,
        }
    else:
        fields |= {
            "type": MemoryType.BELIEF,
            "text": row.statement,
            "knowledge": Knowledge.FACT,
            "dated": NOW,
            "confidence": 0.8,
        }
    return RecalledMemory(**fields | given)


def said(text: str, workspace: Workspace, *, days: int = 0, claims: tuple[str, ...] = ()) -> Episode:
    """Store an episode of so many days ago, with claims."""
    episode = factories.episode(workspace=workspace, text=text, occurred_at=NOW - timedelta(days=days))
    for number, sentence in enumerate(claims, start=1):
        Claim.objects.create(
            workspace=workspace, episode=episode, number=number, sentence=sentence, words=sentence,
            mode=Mode.ASSERTED, reader="rules-1", created_at=NOW,
        )  # fmt: skip
    return episode


def test_what_is_beside_the_point_is_not_told(workspace: Workspace) -> None:
    """B16."""
    episode = said("The ferry leaves at six.", workspace)
    assert told("Who discovered penicillin?", of(episode, is_relevant=False)) == []


def test_a_belief_is_told_for_the_episodes_that_it_rests_on(workspace: Workspace) -> None:
    """B16: whichever stands first; an episode that bears out another belief is told as well."""
    episode = said("On Fridays I get oysters from Olaf", workspace, claims=("Nora buys oysters on Fridays.",))
    other = said("The oysters were off, I had mussels", workspace, claims=("Nora had mussels.",))
    belief = factories.belief(workspace=workspace, statement="Nora buys oysters on Fridays.")
    factories.evidence(belief=belief, episode=episode, claim=episode.claims.get())
    assert told("What does Nora buy?", of(episode), of(other), of(belief)) == [other.text, belief.statement]


@pytest.mark.parametrize(
    ("first", "second", "is_told"),
    [
        ("Olaf hates coriander.", "No coriander for Olaf, as ever.", False),
        ("Olaf hates coriander.", "Olaf plays the oboe.", True),
        ("Send the receipts as one PDF to the accountant.", "Receipts: one PDF, by the fifth.", False),
        ("The boat is in the shed.", "The boat is in the shed.", False),
        ("Nora is allergic to nuts.", "Nora is allergic to latex.", True),
        ("The meeting in the blue room is on Mondays.", "The meeting in the blue room is on Tuesdays.", True),
    ],
)
def test_what_says_the_same_in_other_words_is_told_once(
    workspace: Workspace, first: str, second: str, is_told: bool
) -> None:
    """B16: the better one."""
    lines = told("What about Olaf?", of(said(first, workspace)), of(said(second, workspace, days=1)))
    assert lines == [first, second][: 1 + is_told]


def test_what_was_given_up_is_told_beside_what_took_its_place_alone(workspace: Workspace) -> None:
    """B16."""
    old = said("I live in Oslo", workspace, days=300)
    belief = factories.belief(workspace=workspace, statement="Nora lives in Bergen.")
    former = of(old, superseded_by=belief.pk)
    assert told("Where does Nora live?", former) == []
    assert told("Where does Nora live?", former, of(belief)) == [old.text, belief.statement]


def test_what_is_not_said_of_the_belief_is_told_beside_it(workspace: Workspace) -> None:
    """B16: though other words of the episode bear the belief out."""
    episode = said(
        "I live in Oslo, and I take one tablet of bisoprolol each morning",
        workspace,
        claims=("Nora lives in Oslo.", "Nora takes one tablet of bisoprolol each morning."),
    )
    belief = factories.belief(workspace=workspace, statement="Nora lives in Oslo.")
    factories.evidence(belief=belief, episode=episode, claim=episode.claims.get(number=1))
    assert told("Which tablet does Nora take?", of(belief), of(episode)) == [belief.statement, episode.text]


def test_a_belief_that_is_not_told_makes_no_two_episodes_one(workspace: Workspace) -> None:
    """B16, B21: it may be one that whoever asks cannot see."""
    texts = ("Nora rows the skiff on Sundays.", "Nora rows with Ida from the north pier, at seven.")
    episodes = [said(text, workspace, days=days, claims=(text,)) for days, text in enumerate(texts)]
    belief = factories.belief(workspace=workspace, statement="Nora rows.")
    for episode in episodes:
        factories.evidence(belief=belief, episode=episode, claim=episode.claims.get())
    assert told("When does Nora row?", *map(of, episodes)) == list(texts)


def test_what_an_episode_as_a_whole_bore_out_and_was_given_up_stays_marked(workspace: Workspace) -> None:
    """B16: where no claim is known to be the one."""
    episode = said("I moor in Oslo", workspace, claims=("Nora moors in Oslo.",))
    ended = factories.belief(workspace=workspace, statement="Nora moors in Oslo.", status="invalidated")
    factories.evidence(belief=ended, episode=episode)
    belief = factories.belief(workspace=workspace, statement="Nora moors in Bergen.")
    former = of(episode, superseded_by=belief.pk)
    assert told("Where does Nora moor?", former) == []
    assert [one.superseded_by for one in chosen("Where does Nora moor?", former, of(belief))] == [belief.pk, None]


def test_the_truth_is_never_marked_formerly(workspace: Workspace) -> None:
    """B16: an episode of which other words were given up than those that are meant."""
    episode = said(
        "I live in Oslo, and I row on Sundays",
        workspace,
        claims=("Nora lives in Oslo.", "Nora rows on Sundays."),
    )
    ended = factories.belief(workspace=workspace, statement="Nora lives in Oslo.", status="invalidated")
    factories.evidence(belief=ended, episode=episode, claim=episode.claims.get(number=1))
    belief = factories.belief(workspace=workspace, statement="Nora lives in Bergen.")
    memories = [of(episode, superseded_by=belief.pk), of(belief)]
    [told_of_sport, _] = chosen("When does Nora row on the lake?", *memories)
    assert told_of_sport.superseded_by is None


def test_a_long_text_is_cut_to_the_words_that_are_meant(workspace: Workspace) -> None:
    """B16: with what stands around them."""
    filling = "The roof was mended, the mayor came by, and the boiler hums again. " * 6
    words = "I take one tablet for my heart each morning"
    episode = said(f"{filling}{words}. {filling}", workspace, claims=(words,))
    [memory] = chosen("Which tablet is for the heart?", *[of(episode)])
    bite = format_short_line(memory=memory, characters=240, now=NOW)
    assert bite.startswith("[Memory flash: …")
    assert words in bite
    assert len(bite) <= 240 + len("[Memory flash: ]")
