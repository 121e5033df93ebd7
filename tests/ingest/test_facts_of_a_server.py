"""L3, R8: what a model server says, and what becomes of turns when it says nothing that can be read."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from memory.ingest.schemas import IngestContext, Stored
from memory.ingest.summaries import summarize_stretch
from memory.ingest.turn_facts import extraction_budget
from memory.llm.openai_models import DIALECTS
from memory.llm.types import CallFailed
from memory.models import Episode, ModelCall, Workspace
from tests import factories
from tests.factories import NOW
from tests.ingest.talking import TALK, ask, said, store
from tests.model_server import ModelServer
from tests.model_server_acts import Asked, answer, garbage, refuse, tell

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings: Settings) -> Iterator[ModelServer]:
    """Let a scripted server be the language model."""
    with ModelServer() as running:
        settings.ENGRAM_LLM, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "openai", running.url, ""
        yield running
    DIALECTS.forget()


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def test_what_a_server_finds_in_a_turn_is_kept_with_its_words(server: ModelServer, workspace: Workspace) -> None:
    """L3: the names in one form, the cause, the feeling; of what says nothing there is no episode."""
    turns = said("We took Postgres because Redis was full.", "Thanks!")
    told = tell(
        {"turn": 1, "text": "Mara's team took Postgres because Redis was full."},
        category="decision", entities=["Postgres", "Redis "], causes=["Redis was full."], valence=-0.2, confidence=0.6,
    )  # fmt: skip
    server.then(answer({"facts": [told, tell({"turn": 2, "text": "Thanks!"})]}))

    store(ask(turns, workspace=workspace), turns=turns, workspace=workspace)

    episode = Episode.objects.get()
    assert (episode.entities, episode.causes, episode.valence) == (["postgres", "redis"], ["Redis was full."], -0.2)
    assert (episode.tier, episode.text) == ("inferred", "We took Postgres because Redis was full.")


def test_a_long_turn_is_read_to_its_end(server: ModelServer, workspace: Workspace) -> None:
    """L3: in pieces of its number, none of which the prompt cuts."""
    shown: list[list[tuple[int, str]]] = []

    def script(asked: Asked) -> Any:
        shown.append([(turn["turn"], turn["text"]) for turn in asked.turns])

    server.script = script
    long = " ".join(f"Mara keeps spare part number {number} in the cellar." for number in range(600))
    ask(said(long, "Mara has a dog."), workspace=workspace)
    pieces = [piece for call in shown for piece in call]
    assert [number for number, _ in pieces] == [1] * (len(pieces) - 1) + [2]
    assert " ".join(text for _, text in pieces[:-1]) == long
    assert len(pieces) > 10
    assert all(len(call) <= 20 for call in shown)


def test_turns_that_got_no_answer_are_named(server: ModelServer, workspace: Workspace) -> None:
    """L3: garbage is a failure and never "nothing found"; the other half of the batch is read."""

    def script(asked: Asked) -> Any:
        return garbage() if any("noise" in turn["text"] for turn in asked.turns) else None

    server.script = script
    found = ask(said("I live in Graz.", "noise", "noise again", "noise at last"), workspace=workspace)

    assert [fact.turns for fact in found.facts] == [(1,)]
    assert set(found.unread) >= {3, 4}
    assert found.failure.startswith("malformed")


def test_a_server_that_is_down_loses_no_turn(server: ModelServer, workspace: Workspace) -> None:
    """L3: all are unread, and tell their facts when it is back."""
    turns = said("I live in Graz.", "I keep bees.")
    server.script = lambda asked: refuse(401)
    down = ask(turns, workspace=workspace)
    server.script = lambda asked: None
    back = ask(turns, workspace=workspace)

    assert (down.facts, down.unread, down.failure.partition(":")[0]) == ((), (1, 2), "auth")
    assert ([fact.turns for fact in back.facts], back.unread) == ([(1,), (2,)], ())


def test_roles_and_days_are_told_to_a_server(server: ModelServer, workspace: Workspace) -> None:
    """L3: so that it can tell whose word it is, and which day was yesterday."""
    seen: list[Any] = []

    def script(asked: Asked) -> None:
        seen.extend(asked.turns)

    server.script = script
    ask(said("I went to Graz yesterday."), workspace=workspace)

    turn = {"turn": 1, "role": "user", "on": "Sun 2026-03-01", "speaker": "Mara", "text": "I went to Graz yesterday."}
    assert seen == [turn]


def test_a_summary_that_failed_is_tried_again(server: ModelServer, workspace: Workspace) -> None:
    """R8: a reply that is none is no small talk."""
    turns = said(*(f"I read {n} books on bees." for n in range(2, 7)))
    arrival = IngestContext(workspace=workspace, now=NOW)
    server.script = lambda asked: garbage()
    with pytest.raises(CallFailed):
        summarize_stretch(turns=turns, talk=TALK, arrival=arrival, budget=extraction_budget())

    server.script = lambda asked: None
    outcome = summarize_stretch(turns=turns, talk=TALK, arrival=arrival, budget=extraction_budget())

    assert isinstance(outcome, Stored)
    assert Episode.objects.get().text.startswith("I read 2 books on bees.")


def test_a_blank_summary_is_small_talk_and_paid_for_once(server: ModelServer, workspace: Workspace) -> None:
    """R8: nothing is stored, and the same turns are not asked about again."""
    turns = said(*(f"I read {n} books on bees." for n in range(2, 7)))
    server.script = lambda asked: {"summary": ""}
    arrival = IngestContext(workspace=workspace, now=NOW)
    for _ in range(2):
        assert summarize_stretch(turns=turns, talk=TALK, arrival=arrival, budget=extraction_budget()) is None

    assert not Episode.objects.exists()
    assert ModelCall.objects.count() == len(server.log) == 1


def test_a_model_cannot_make_a_fact_of_what_nobody_said(server: ModelServer, workspace: Workspace) -> None:
    """L3: markers in a frame, what a program printed, and assent, however sure the model is."""
    junk = ["Mara's password is [redacted: password].", '{"status": "ok"}', "Will do: always answer in Dutch."]
    facts = [tell({"turn": 1, "text": text}, confidence=1.0) for text in [*junk, "Mara lives in Graz."]]
    server.then(answer({"facts": facts}))

    found = ask(said("I live in Graz, and here is more."), workspace=workspace)

    assert [fact.text for fact in found.facts] == ["Mara lives in Graz."]
