"""B17: what speaks for an episode beside its likeness, and what a conversation tells of its turns."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from memory.llm.offline import static_embedder
from memory.models import Source, Workspace
from memory.recall.query import MemoryType
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, remembered

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
    made = factories.workspace()
    for text in NOISE:
        remembered(text, workspace=made)
    return made


def _parts(query: str, workspace: Workspace) -> Mapping[str, Mapping[str, float | None]]:
    """Return the numbers that each episode's score is made of, by its id, the best first."""
    results = ask(query, workspace=workspace, types=(MemoryType.EPISODE,), is_explained=True).results
    return {result.id: result.explain.components for result in results if result.explain}


def _said(texts: list[str], *, workspace: Workspace) -> list[str]:
    """Store the turns of a session, one a minute."""
    return [
        remembered(text, workspace=workspace, session="tea", occurred_at=NOW + timedelta(minutes=number)).pk
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("matching", "share"), [("Which parrot talks in the morning?", 0.8), ("A parrot talks in the morning.", 0.4)]
)
def test_what_follows_a_question_takes_more_of_its_score(workspace: Workspace, matching: str, share: float) -> None:
    """B17: an answer is found by its question, whose words it need not repeat."""
    said = ["Good evening!", matching, "Grey ones do.", "Well, well."]
    before, match, after, later = _said(said, workspace=workspace)
    found = _parts("parrot talks in the morning", workspace)
    text = found[match]["text"] or 0.0
    assert text > 0
    shares = [(found[key]["context"] or 0.0) / text for key in (before, after, later)]
    assert shares == pytest.approx([0.4, share, 0.2])


@pytest.mark.parametrize("query", ["what did Mara Lind cook?", "what did MARA cook?", "who ate Mara's soup?"])
def test_who_is_named_is_the_one_to_ask(workspace: Workspace, query: str) -> None:
    """B17: by the whole name or its first word, in any case."""
    own = remembered("Soup, the whole day long.", workspace=workspace, speaker="Mara Lind")
    other = remembered("Soup, the whole day long!", workspace=workspace, speaker="Marlon Wirth")
    remembered("Soup, the whole day long?", workspace=workspace, speaker=" ")
    found = _parts(query, workspace)
    assert (found[own.pk]["named_speaker"], found[other.pk]["named_speaker"]) == (0.3, 0.0)
    assert list(found).index(own.pk) < list(found).index(other.pk)


@pytest.mark.parametrize("given", [{"source": Source.AI}, {"speaker": "assistant"}, {"speaker": "AI"}])
def test_what_an_assistant_said_stands_behind(workspace: Workspace, given: dict[str, str]) -> None:
    """B17: known by its source or by its speaker's name."""
    answer = remembered("Parrots talk in the morning.", workspace=workspace, **given)
    own = remembered("Parrots talk in the morning!", workspace=workspace, speaker="user")
    found = _parts("do parrots talk", workspace)
    assert (found[answer.pk]["own_turn"], found[own.pk]["own_turn"]) == (-1.0, 0.0)
    assert list(found)[:2] == [own.pk, answer.pk]


def test_what_is_always_to_be_done_stands_before_what_was_talked_about(workspace: Workspace) -> None:
    """B17: though it shares fewer words with the query; what an assistant says of it orders nothing."""
    talk = remembered("The invoice for the client is late.", workspace=workspace)
    order = remembered("Always add the tax number to an invoice.", workspace=workspace, category="principle")
    echo = remembered(
        "Always add the tax number to your invoice!", workspace=workspace, category="principle", speaker="assistant"
    )
    found = _parts("write an invoice for the client", workspace)
    assert [found[key]["standing_order"] for key in (talk.pk, order.pk, echo.pk)] == [0.0, 1.0, 0.0]
    with_order = list(found).index(order.pk)
    assert with_order < list(found).index(echo.pk)


def test_a_long_text_stands_behind_a_short_one(workspace: Workspace) -> None:
    """B17: by 0.7 times the logarithm of how many times 40 different words it has."""
    long = remembered(" ".join(f"word{number}" for number in range(80)), workspace=workspace)
    found = _parts("word1 word2", workspace)
    assert found[long.pk]["long_text"] == pytest.approx(-0.7 * 0.6931, abs=0.001)
    assert {parts["long_text"] for key, parts in found.items() if key != long.pk} == {0.0}


def test_a_querys_rare_words_are_compared_by_themselves(workspace: Workspace) -> None:
    """B17: what everybody says does not drown what is asked; similarity stays that of the whole query."""
    for number in range(30):
        remembered(f"Caroline, what did you do on day {number}?", workspace=workspace)
    wanted = remembered("Violin lessons are dear.", workspace=workspace)
    query = "what did Caroline do with the violins and the cello?"
    found = _parts(query, workspace)
    assert max(found, key=lambda key: found[key]["weighted_similarity"] or 0.0) == wanted.pk
    assert max(found, key=lambda key: found[key]["similarity"] or 0.0) != wanted.pk
    model = static_embedder()
    asked, vector = model.embed([query, wanted.text])
    assert found[wanted.pk]["similarity"] == pytest.approx(model.profile.reference(float(asked @ vector)), abs=0.002)


def test_a_query_of_common_words_alone_has_no_weighted_vector(workspace: Workspace) -> None:
    """B17: there is nothing to weigh."""
    found = _parts("what is it?", workspace)
    assert found
    assert {parts["weighted_similarity"] for parts in found.values()} == {None}
