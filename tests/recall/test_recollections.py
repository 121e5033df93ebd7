"""What comes up by itself, and how memories are written into a conversation."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pytest_django import Settings

from memory.domain.identity import is_episode_id
from memory.domain.taxonomy import Knowledge
from memory.language.sentences import strip_echo
from memory.models import BeliefAccess, EpisodeAccess, ShownMemory, Workspace
from memory.recall.prompt_lines import Recollection, format_line, format_short_line, gather_context, recollect, shorten
from memory.recall.query import MemoryType, RecalledMemory
from memory.recall.usage import shown_beliefs
from tests import factories
from tests.recall.memories import ask, believed, remembered, scope_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def memories(workspace: Workspace) -> None:
    for place in ("harbour", "office", "garden", "train", "cellar", "bakery"):
        remembered(f"Mara: I had tea in the {place}.", workspace=workspace)
    for number, kind in enumerate(("oolong", "jasmine", "peppermint", "darjeeling")):
        believed(f"Mara prefers {kind} tea.", workspace=workspace, alpha=6.0 + number)


def bring_up(query: str, workspace: Workspace, **asked: Any) -> Recollection:
    return recollect(scope=scope_of(workspace=workspace), query=query, now=factories.NOW, **asked)


@pytest.fixture
def any_share(settings: Settings) -> None:
    """Have lines told however far they stand behind the best."""
    settings.POLICY = replace(settings.POLICY, recollection=replace(settings.POLICY.recollection, least_share=0.0))


@pytest.mark.usefixtures("memories", "any_share")
def test_three_episodes_and_two_beliefs_come_up(workspace: Workspace) -> None:
    """B16."""
    recollection = bring_up("Mara and her tea", workspace)
    flashes, beliefs = recollection.text.splitlines()[:3], recollection.text.splitlines()[3:]
    assert [line[: len("[Memory flash: Mara: I had ")] for line in flashes] == ["[Memory flash: Mara: I had "] * 3
    assert [line[: len("[Belief (0.")] for line in beliefs] == ["[Belief (0."] * 2
    assert [key[:3] for key in recollection.ids] == ["ep_"] * 3 + ["bl_"] * 2


@pytest.mark.usefixtures("memories")
def test_what_came_up_is_recognised_as_an_echo(workspace: Workspace) -> None:
    """Echo, B16: nothing of it is left of a text that repeats it."""
    assert strip_echo(bring_up("Mara and her tea", workspace).text) == ""


@pytest.mark.usefixtures("memories")
def test_what_came_up_counts_as_accessed_and_nothing_else_does(workspace: Workspace) -> None:
    """B16, B5."""
    shown = set(bring_up("Mara and her tea", workspace).ids)
    counted = EpisodeAccess.objects.values_list("episode", flat=True)
    assert {*counted, *BeliefAccess.objects.values_list("belief", flat=True)} == shown


@pytest.mark.usefixtures("memories")
def test_tokens_bound_a_recollection(workspace: Workspace) -> None:
    """B16: and what finds no room is not counted as accessed."""
    whole, half = (bring_up("Mara and her tea", workspace, max_tokens=tokens) for tokens in (400, 30))
    assert 0 < len(half.ids) < len(whole.ids)
    assert set(half.text.splitlines()) <= set(whole.text.splitlines())
    assert sum(EpisodeAccess.objects.values_list("access_count", flat=True)) <= 3 + len(half.ids)
    assert bring_up("Mara and her tea", workspace, max_tokens=1) == Recollection(text="", ids=())


@pytest.mark.usefixtures("memories")
def test_a_session_is_told_what_it_was_shown(workspace: Workspace) -> None:
    """Echo: once a memory, however often it comes up, by recollection or by recall."""
    shown = bring_up("Mara and her tea", workspace, session="s-1").ids
    bring_up("Mara and her tea", workspace, session="s-1")
    seen = {result.id for result in ask("tea number 0", workspace=workspace, session="s-1", limit=3).results}
    rows = ShownMemory.objects.for_workspace(workspace).values_list("session", "belief", "episode")
    assert {session for session, _, _ in rows} == {"s-1"}
    assert sorted(belief or episode for _, belief, episode in rows) == sorted({*shown, *seen})
    told = shown_beliefs(workspace=workspace, session="s-1")
    assert told == {key for key in {*shown, *seen} if not is_episode_id(key)}


@pytest.mark.usefixtures("memories")
def test_without_a_session_nobody_is_told(workspace: Workspace) -> None:
    """Echo."""
    bring_up("Mara and her tea", workspace)
    assert not ShownMemory.objects.exists()


def test_nothing_comes_up_in_an_empty_memory(workspace: Workspace) -> None:
    """B16, B23."""
    assert bring_up("tea", workspace) == Recollection(text="", ids=())


@pytest.mark.usefixtures("any_share")
@pytest.mark.parametrize("how", [recollect, gather_context])
def test_a_summary_is_not_told_beside_its_facts(workspace: Workspace, how: Callable[..., Recollection]) -> None:
    """R8, B16, R12: and takes no fact's place; one that says more is told."""
    facts = ["Mia moved to Bergen.", "Mia has a dog named Rex."]
    told = [remembered(text, workspace=workspace, session="s-1").pk for text in facts]
    remembered("Mia moved to Bergen. She has a dog, named Rex.", workspace=workspace, session="s-1", is_derived=True)
    shown = how(scope=scope_of(workspace=workspace), query="Mia has a dog in Bergen", now=factories.NOW).ids
    assert set(shown) == set(told)
    more = remembered("Mia moved to Bergen and Tom came with her.", workspace=workspace, session="s-1", is_derived=True)
    shown = how(scope=scope_of(workspace=workspace), query="Mia moved to Bergen with Tom", now=factories.NOW).ids
    assert more.pk in shown


@pytest.mark.parametrize(("tokens", "is_told"), [(400, True), (16, False), (40, True)])
def test_a_summary_of_facts_that_have_no_room_is_told(workspace: Workspace, tokens: int, is_told: bool) -> None:
    """R8: what was found and is not told takes no summary's place; where a summary has no room, it is not told."""
    summary = remembered(
        "The harbour fee of Bergen is 40 crowns. Tom bakes rye at the mill.", embedded_as="harbour fee Bergen",
        workspace=workspace, session="s-1", is_derived=True,
    )  # fmt: skip
    for number, asked in enumerate(("lawyers", "sailors", "painters")):
        remembered(f"Harbour fee Bergen: {asked}.", workspace=workspace, session=f"o-{number}")
    facts = [
        remembered(text, workspace=workspace, session="s-1", embedded_as=text + " at some other place entirely")
        for text in ("The harbour fee of Bergen is 40 crowns.", "Tom bakes rye at the mill.")
    ]
    shown = bring_up("harbour fee Bergen", workspace, max_tokens=tokens).ids
    assert not {fact.pk for fact in facts} <= set(shown)
    assert (summary.pk in shown) is is_told


def memory(text: str, **given: Any) -> RecalledMemory:
    fields: dict[str, Any] = {
        "type": MemoryType.BELIEF,
        "id": "bl_0c4e1f6a92d3",
        "knowledge": Knowledge.FACT,
        "score": 0.5,
        "dated": datetime(2026, 2, 24, 23, 30, tzinfo=UTC),
        "confidence": 0.854,
    }
    return RecalledMemory(text=text, **fields | given)


EPISODE: dict[str, Any] = {"type": MemoryType.EPISODE, "id": "ep_3f9a1c0b77de", "confidence": None}
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_line_tells_kind_day_confidence_and_id() -> None:
    """B16."""
    belief = format_line(memory=memory("Mara prefers\ntea."), now=NOW)
    episode = format_line(memory=memory("Mara: tea!", **EPISODE), now=NOW.replace(year=2027))
    assert belief == "[B] (Feb 24, confidence: 0.85) Mara prefers tea. — ID: bl_0c4e1f6a92d3"
    assert episode == "[E] (Feb 24, 2026) Mara: tea! — ID: ep_3f9a1c0b77de"
    assert strip_echo(f"{belief}\n{episode}") == ""


@pytest.mark.parametrize("text", ["array[i[j]] = ]", "a]b[c", "one\n\ntwo [three", "x" * 500, "word " * 100])
@pytest.mark.parametrize("given", [{}, EPISODE])
def test_a_bite_is_whole_whatever_it_holds(text: str, given: dict[str, Any]) -> None:
    """B16, Echo: one line, at most so long, and nothing of it passes for somebody's own words."""
    bite = format_short_line(memory=memory(text, **given), characters=240, now=NOW)
    assert bite.startswith(("[Memory flash: ", "[Belief (0.85): "))
    assert bite.endswith("]")
    assert "\n" not in bite
    assert len(bite) <= 240 + len("[Belief (0.85): ]")
    assert strip_echo(f"{bite} Really?") == "Really?"


def test_a_bite_says_since_and_until_when_a_belief_holds() -> None:
    """B16, C2: and all of it is echo."""
    held = memory("Mara prefers tea.", valid_from=NOW.replace(day=3), valid_until=NOW.replace(year=2027))
    bite = format_short_line(memory=held, characters=240, now=NOW)
    assert bite == "[Belief (0.85): Mara prefers tea. (since Mar 3, until Mar 1, 2027)]"
    assert strip_echo(bite) == ""


@pytest.mark.parametrize(
    ("text", "short"),
    [("tea for two", "tea for two"), ("tea for three", "tea for…"), ("teapots-and-cups", "teapots-an…")],
)
def test_a_text_is_cut_between_words(text: str, short: str) -> None:
    """B16."""
    assert shorten(text=text, characters=11) == short
