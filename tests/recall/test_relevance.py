"""Whether a result has to do with the query at all, and that nothing else is put before a model."""

from datetime import timedelta
from typing import Any

import pytest

from memory.domain.taxonomy import Mode
from memory.mcp.catalogue import TOOLS
from memory.models import Claim, Workspace
from memory.recall.prompt_lines import Recollection, gather_context, recollect
from tests import factories
from tests.api.caller import caller
from tests.recall.memories import ask, believed, remembered, scope_of

pytestmark = pytest.mark.django_db

TEXTS = (
    "From next month on the ferry leaves at half past six.",
    "I always take the aisle seat, my knee needs the room.",
    "Olaf, who runs the kitchen, can't stand coriander.",
    "We moved the archive to the cellar after the flood.",
    "The gate code changed again, ask at the desk.",
    "My sister keeps bees behind the vicarage.",
    "Our standup is on Tuesdays now, not on Mondays.",
    "I write the minutes by hand and scan them later.",
    "The blue van has to go to the garage in spring.",
    "No nuts in the lunch boxes please, Ida is allergic.",
)
UNRELATED = (
    "Explain how a violin makes its sound.",
    "Convert 51 miles to kilometres.",
    "What is the capital of Bolivia?",
    "Write a haiku about autumn fog.",
    "How do I sort a dictionary by value?",
    "Was ist die Quadratwurzel aus 289?",
    "Who discovered penicillin?",
    "yes please",
)


@pytest.fixture
def workspace() -> Workspace:
    workspace = factories.workspace()
    for text in TEXTS:
        remembered(text, workspace=workspace)
    believed("Olaf runs the kitchen.", workspace=workspace)
    believed("Nora takes the aisle seat.", workspace=workspace)
    return workspace


def bring_up(query: str, workspace: Workspace) -> Recollection:
    return recollect(scope=scope_of(workspace=workspace), query=query, now=factories.NOW)


@pytest.mark.parametrize("query", UNRELATED)
def test_nothing_is_said_where_nothing_has_to_do_with_it(workspace: Workspace, query: str) -> None:
    """B16: while recall answers with the nearest there is, and says that it is beside the point."""
    assert bring_up(query, workspace) == Recollection(text="", ids=())
    results = ask(query, workspace=workspace).results
    assert results
    assert not any(result.is_relevant for result in results)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("When does the ferry leave?", "From next month on the ferry"),
        ("what mustn't be in Ida's lunch box", "No nuts in the lunch boxes"),
        ("Who keeps bees?", "My sister keeps bees"),
        ("Which seat do I want on the train?", "aisle seat"),
        ("On what day is our standup?", "Our standup is on Tuesdays"),
    ],
)
def test_what_has_to_do_with_it_is_said(workspace: Workspace, query: str, said: str) -> None:
    """B16."""
    assert said in bring_up(query, workspace).text


def test_a_context_is_for_a_task_that_it_bears_on(workspace: Workspace) -> None:
    """R12, B16: what sets a task is no reason to say less there."""
    scope = scope_of(workspace=workspace)
    told = gather_context(scope=scope, query="Write to everybody that the ferry leaves earlier", now=factories.NOW)
    assert "the ferry leaves at half past six" in told.text
    assert gather_context(scope=scope, query="Who discovered penicillin?", now=factories.NOW).text == ""


def test_without_vectors_words_alone_decide(workspace: Workspace) -> None:
    """B16, B23."""
    told = factories.episode(workspace=workspace, text="Rehearsals of the brass band fill the barn.", language="en")
    assert bring_up("rehearsals of the brass band", workspace).ids == (told.pk,)
    assert bring_up("Who composed the Brandenburg concertos?", workspace).ids == ()


@pytest.mark.parametrize("query", ["When does the ferry leave?", "Who runs the kitchen?", *UNRELATED[:3]])
def test_hooks_and_tools_say_the_same(workspace: Workspace, query: str) -> None:
    """B16: the text before a prompt, which the hooks of Claude Code print as it is, and the lines of memory_recall."""
    hook = caller("read", workspace=workspace).post("/recollections", {"query": query}).json()
    [tool] = [tool for tool in TOOLS if tool.name == "memory_recall"]
    key = factories.key(workspace=workspace)[1]
    told: Any = tool.call(key_text=key, arguments={"query": query})
    assert {line.rpartition(" — ID: ")[2] for line in told.lines} == set(hook["ids"])


@pytest.mark.parametrize(
    "query", ["Wie berechnet man den Umfang eines Kreises?", "Wer hat die Glühbirne erfunden?", "Wie spät ist es?"]
)
def test_a_language_that_the_model_does_not_know_is_no_likeness(workspace: Workspace, query: str) -> None:
    """B16: texts of one such language are all alike to it."""
    remembered("Frau Petersilie ist in der Schule, wie ist das Wetter?", workspace=workspace, language="de")

    assert bring_up(query, workspace).text == ""


def test_german_words_that_are_shared_tell(workspace: Workspace) -> None:
    """B16."""
    remembered("Die neue Lehrerin heißt Petersilie.", workspace=workspace, language="de")

    assert "Petersilie" in bring_up("Wie heißt die neue Lehrerin?", workspace).text


@pytest.mark.parametrize("query", ["go on", "ok, go on", "weiter"])
def test_hardly_any_words_bring_nothing_up(workspace: Workspace, query: str) -> None:
    """B16."""
    remembered("She is going to go on with it.", workspace=workspace, embedded_as="move ahead")

    assert bring_up(query, workspace).text == ""


def test_what_names_but_a_time_is_about_all_of_it(workspace: Workspace) -> None:
    """B16, B17."""
    march = factories.NOW.replace(month=3, day=9) - timedelta(days=365)
    remembered("The boiler burst.", workspace=workspace, occurred_at=march)

    assert bring_up(f"What happened in March {march.year}?", workspace).text == "[Memory flash: The boiler burst.]"
    assert bring_up(f"What happened in June {march.year}?", workspace).text == ""


def test_where_a_colleague_lives_takes_no_place_of_the_own_home(workspace: Workspace) -> None:
    """B16: though it was said later, and of what has one value at a time."""
    for text, sentence, subject, days in (
        ("We live in Leipzig now.", "The user lives in Leipzig.", "The user", 9),
        ("My colleague Tamsin lives in Halle.", "The user's colleague Tamsin lives in Halle.",
         "The user's colleague Tamsin", 2),
    ):  # fmt: skip
        told = remembered(text, workspace=workspace, occurred_at=factories.NOW - timedelta(days=days))
        Claim.objects.create(
            workspace=workspace, episode=told, number=1, sentence=sentence, subject=subject,
            mode=Mode.ASSERTED, reader="rules-1", created_at=factories.NOW,
        )  # fmt: skip

    assert "We live in Leipzig now." in bring_up("Where do I live?", workspace).text
