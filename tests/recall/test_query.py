"""What can be asked beside the query: kinds of knowledge, agents, times, and what is past its validity."""

from datetime import timedelta

import pytest

from memory.domain.taxonomy import Knowledge, RecallMode
from memory.models import Workspace
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def kinds(workspace: Workspace) -> None:
    """Store a memory of every kind of knowledge, episodes and beliefs."""
    for category in ("", "moment", "fact", "decision", "skill", "principle"):
        remembered(f"tea {category}".strip(), workspace=workspace, category=category)
    for fact_type in ("factual", "preference", "insight", "procedural"):
        believed(f"tea is {fact_type}", workspace=workspace, fact_type=fact_type)


FACTS = {"tea fact", "tea decision", "tea is factual", "tea is preference", "tea is insight"}
RULES = {"tea skill", "tea principle", "tea is procedural"}


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (RecallMode.FACTS_ONLY, FACTS),
        (RecallMode.FACTS_PLUS_RULES, FACTS | RULES),
        (RecallMode.FULL_CONTEXT, FACTS | RULES | {"tea", "tea moment"}),
    ],
)
def test_a_mode_asks_for_kinds_of_knowledge(workspace: Workspace, mode: RecallMode, wanted: set[str]) -> None:
    """D2."""
    recalled = ask("tea", workspace=workspace, mode=mode, limit=20)
    assert {result.text for result in recalled.results} == wanted


@pytest.mark.usefixtures("kinds")
def test_every_result_tells_its_kind_of_knowledge(workspace: Workspace) -> None:
    """D2: beliefs about how to do something are procedures, others facts; what happened is told."""
    told = {result.text: result.knowledge for result in ask("tea", workspace=workspace, limit=20).results}
    assert {text for text, knowledge in told.items() if knowledge == Knowledge.FACT} == FACTS
    assert {text for text, knowledge in told.items() if knowledge == Knowledge.PROCEDURE} == RULES


def test_unwanted_kinds_take_no_place_from_wanted_ones(workspace: Workspace) -> None:
    """D2: the mode holds before the best are chosen, not after."""
    for number in range(60):
        remembered(f"tea, tea and tea number {number}", workspace=workspace)
    wanted = remembered("There was something about tea and biscuits.", workspace=workspace, category="fact")
    assert ids(ask("tea", workspace=workspace, mode=RecallMode.FACTS_ONLY)) == {wanted.pk}


def test_an_agent_recalls_its_own_and_nobodys_episodes(workspace: Workspace) -> None:
    """B1: beliefs belong to no agent."""
    for agent in ("scout", "clerk", ""):
        remembered(f"Tea of {agent or 'all'}.", workspace=workspace, agent=agent)
    believed("Tea is good.", workspace=workspace)
    texts = {result.text for result in ask("tea", workspace=workspace, agent="scout").results}
    assert texts == {"Tea of scout.", "Tea of all.", "Tea is good."}


def test_a_time_bounds_what_occurred(workspace: Workspace) -> None:
    """B1: its start is included, its end is not."""
    days = {number: remembered(f"Tea on day {number}.", workspace=workspace, occurred_at=NOW + number * DAY)
            for number in range(4)}  # fmt: skip
    found = ask("tea", workspace=workspace, occurred_from=NOW + DAY, occurred_before=NOW + 3 * DAY)
    assert ids(found) == {days[1].pk, days[2].pk}


def test_a_belief_is_of_the_time_that_its_evidence_is_of(workspace: Workspace) -> None:
    """B1: an echo is no evidence."""
    long_ago = remembered("Tea was served.", workspace=workspace, occurred_at=NOW - 300 * DAY)
    then, now, echoed = (believed(f"Tea {number} is good.", workspace=workspace) for number in range(3))
    factories.evidence(belief=then, episode=long_ago)
    factories.evidence(belief=now, episode=remembered("Tea again.", workspace=workspace))
    factories.evidence(belief=echoed, episode=long_ago, kind="echo", base_weight=0.0)
    assert ids(ask("tea", workspace=workspace, occurred_before=NOW - 200 * DAY)) == {long_ago.pk, then.pk}


def test_what_is_past_its_validity_is_recalled_if_asked_for(workspace: Workspace) -> None:
    """B1."""
    episode = remembered("Mara drinks tea.", workspace=workspace, valid_until=NOW)
    belief = believed("Mara prefers tea.", workspace=workspace, valid_until=NOW)
    assert ids(ask("Mara tea", workspace=workspace)) == set()
    assert ids(ask("Mara tea", workspace=workspace, with_expired=True)) == {episode.pk, belief.pk}
