"""What was superseded stands below what took its place, and says so."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import BeliefStatus
from memory.history import attribute_changes
from memory.language.sentences import strip_echo
from memory.ledger.transactions import change_status
from memory.models import Belief, Episode, Lineage, Workspace
from memory.recall.prompt_lines import format_line, recollect
from memory.recall.query import MemoryType, RecalledMemory, RecallProfile
from memory.recall.ranking import Ranked
from memory.recall.selection import rank_successors_first
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, believed, remembered, scope_of

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)
QUESTION = "Does Mia live in Oslo?"


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def old(workspace: Workspace) -> Episode:
    return remembered("Mia lives in Oslo.", workspace=workspace)


@pytest.fixture
def former(workspace: Workspace, old: Episode) -> Belief:
    belief = believed("Mia lives in Oslo.", workspace=workspace, alpha=2.0)
    factories.evidence(belief=belief, episode=old)
    return belief


@pytest.fixture
def new(workspace: Workspace) -> Episode:
    return remembered("Mia lives in Bergen.", workspace=workspace)


@pytest.fixture
def successor(workspace: Workspace, former: Belief, new: Episode) -> Belief:
    belief = believed("Mia lives in Bergen.", workspace=workspace, alpha=2.0)
    factories.evidence(belief=belief, episode=new)
    supersede(former, by=belief)
    return belief


def supersede(former: Belief, *, by: Belief, day: float = 0, **given: Any) -> None:
    fields: dict[str, Any] = {"kind": "supersession", "created_at": NOW + day * DAY}
    Lineage.objects.create(workspace=former.workspace, parent=former, child=by, **fields | given)
    attribute_changes(actor=LENA, reason="moved")
    now = NOW + day * DAY
    change_status(belief=former, new=BeliefStatus.INVALIDATED, reason="moved", actor=LENA, now=now)


def answers(workspace: Workspace, **asked: Any) -> tuple[RecalledMemory, ...]:
    return ask(asked.pop("query", QUESTION), workspace=workspace, **asked).results


def marks(workspace: Workspace, **asked: Any) -> dict[str, str | None]:
    return {result.id: result.superseded_by for result in answers(workspace, **asked)}


@pytest.mark.parametrize("profile", list(RecallProfile))
def test_it_stands_below_its_successor(
    workspace: Workspace, old: Episode, new: Episode, successor: Belief, profile: RecallProfile
) -> None:
    """B16: though the question has its very words; it says what holds now, and nothing else does."""
    order = [result.id for result in answers(workspace, profile=profile)]
    assert set(order) == {old.pk, new.pk, successor.pk}
    assert order.index(successor.pk) < order.index(old.pk)
    assert marks(workspace, profile=profile) == {old.pk: successor.pk, new.pk: None, successor.pk: None}


def item(key: str, score: float) -> Ranked:
    kind = MemoryType.BELIEF if key.startswith("bl_") else MemoryType.EPISODE
    return Ranked(kind, key, score, {"similarity": [score]}, 0)


def test_scores_are_only_shared_out_anew() -> None:
    """B16: the successor gets the best of its line, the others follow in their order; the X-ray says what moved."""
    scores = {"ep_1": 0.9, "ep_2": 0.7, "ep_3": 0.6, "bl_1": 0.5}
    successions = dict.fromkeys(("ep_1", "ep_2"), "bl_1")
    moved = rank_successors_first(ranked=[item(*pair) for pair in scores.items()], successions=successions)
    assert {one.id: one.score for one in moved} == pytest.approx({"bl_1": 0.9, "ep_1": 0.7, "ep_3": 0.6, "ep_2": 0.5})
    moves = {one.id: one.components.get("succession") for one in moved}
    assert moves == {
        "ep_1": pytest.approx(-0.2), "ep_2": pytest.approx(-0.2), "ep_3": None, "bl_1": pytest.approx(0.4)
    }  # fmt: skip


def test_what_stands_right_stays() -> None:
    """B16."""
    ranked = [item("bl_1", 0.8), item("ep_1", 0.5)]
    assert rank_successors_first(ranked=ranked, successions={"ep_1": "bl_1"}) == ranked
    assert rank_successors_first(ranked=ranked[1:], successions={"ep_1": "bl_1"}) == ranked[1:]


def test_no_place_is_lost(workspace: Workspace, old: Episode, successor: Belief) -> None:
    """B16: and where there is not room for all, what holds now comes along."""
    for number in range(8):
        remembered(f"Mia lives and works at place number {number}.", workspace=workspace)
    shown = [result.id for result in answers(workspace, query="Mia lives in Oslo.", limit=2)]
    assert len(shown) == 2
    assert shown[0] == successor.pk


def test_among_episodes_alone_it_is_only_marked(
    workspace: Workspace, old: Episode, new: Episode, successor: Belief
) -> None:
    """B16: who looks for words finds them."""
    shown = answers(workspace, types=[MemoryType.EPISODE])
    assert [(result.id, result.superseded_by) for result in shown] == [(old.pk, successor.pk), (new.pk, None)]


def test_what_bears_out_something_else_holds(workspace: Workspace, old: Episode, successor: Belief) -> None:
    """B16: in part, too."""
    other = believed("Mia has lived in Norway.", workspace=workspace)
    word = factories.evidence(belief=other, episode=old, verdict="PARTIAL")
    assert not any(marks(workspace).values())
    other.status = BeliefStatus.ARCHIVED
    attribute_changes(actor=LENA, reason="put away")
    other.save()
    assert marks(workspace)[old.pk] == successor.pk
    assert word.verdict == "PARTIAL"


def test_the_last_of_a_line_is_named(workspace: Workspace, old: Episode, new: Episode, successor: Belief) -> None:
    """B16: whatever made the successor's successor, but for a belief about beliefs."""
    third = believed("Mia lives in Troms.", workspace=workspace)
    about = believed("Mia moves often.", workspace=workspace, fact_type="meta")
    Lineage.objects.create(workspace=workspace, parent=successor, child=about, kind="synthesis", created_at=NOW)
    supersede(successor, by=third, kind="merge")
    told = marks(workspace)
    assert (told[old.pk], told[new.pk]) == (third.pk, None)


def test_nothing_is_named_that_is_not_believed(workspace: Workspace, old: Episode, successor: Belief) -> None:
    """B16: where the successor is gone, too."""
    change_status(belief=successor, new=BeliefStatus.ARCHIVED, reason="doubtful", actor=LENA, now=NOW)
    assert marks(workspace)[old.pk] is None


def test_nothing_is_named_that_the_viewer_may_not_see(workspace: Workspace) -> None:
    """B16, B21."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    episode = remembered("Mia lives in Oslo.", workspace=workspace, project=ours)
    former = believed("Mia lives in Oslo.", workspace=workspace, project=ours)
    factories.evidence(belief=former, episode=episode)
    successor = believed("Mia lives in Bergen.", workspace=workspace, project=theirs)
    supersede(former, by=successor)
    assert marks(workspace, limited_to=(ours,)) == {episode.pk: None}
    assert marks(workspace)[episode.pk] == successor.pk


def test_nothing_is_named_that_another_user_said(workspace: Workspace, former: Belief, old: Episode) -> None:
    """B16, B21: what holds for one user says nothing to a question of another."""
    anns = believed("Mia lives in Bergen.", workspace=workspace, alpha=2.0, user="ann")
    supersede(former, by=anns)
    assert marks(workspace, user="bob") == {old.pk: None}
    assert marks(workspace, user="ann")[old.pk] == anns.pk
    assert "formerly" not in recollect(scope=scope_of(workspace=workspace, user="bob"), query=QUESTION, now=NOW).text


def test_nothing_is_named_that_holds_in_another_project(workspace: Workspace) -> None:
    """B16, B21: though the key may see it; in the past, too."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    episode = remembered("Mia lives in Oslo.", workspace=workspace, project=ours)
    former = believed("Mia lives in Oslo.", workspace=workspace)
    factories.evidence(belief=former, episode=episode)
    successor = believed("Mia lives in Bergen.", workspace=workspace, project=theirs)
    supersede(former, by=successor)
    for as_of in (None, NOW + DAY):
        assert marks(workspace, project=ours, as_of=as_of, now=NOW + 2 * DAY) == {episode.pk: None}
        assert marks(workspace, as_of=as_of, now=NOW + 2 * DAY)[episode.pk] == successor.pk


def test_what_faded_was_not_superseded(workspace: Workspace, former: Belief, old: Episode) -> None:
    """B16, R3: what was contradicted, lived on and was archived for another reason gave its place to nobody."""
    rival = believed("Mia lives in Bergen.", workspace=workspace)
    Lineage.objects.create(workspace=workspace, parent=former, child=rival, kind="supersession", created_at=NOW)
    attribute_changes(actor=LENA, reason="stale")
    change_status(belief=former, new=BeliefStatus.ARCHIVED, reason="stale", actor=LENA, now=NOW + 400 * DAY)
    assert marks(workspace, now=NOW + 400 * DAY)[old.pk] is None


def test_nothing_is_superseded_before_it_was(workspace: Workspace, former: Belief, old: Episode, new: Episode) -> None:
    """B16, R10: as of a time, what stood in its place then is named."""
    successor = believed("Mia lives in Bergen.", workspace=workspace, created_at=NOW + DAY, updated_at=NOW + DAY)
    supersede(former, by=successor, day=2)
    later = NOW + 9 * DAY
    assert marks(workspace, as_of=NOW + DAY, now=later)[old.pk] is None
    assert marks(workspace, as_of=NOW + 3 * DAY, now=later)[old.pk] == successor.pk


def test_a_recollection_says_formerly(
    workspace: Workspace, old: Episode, successor: Belief, settings: Settings
) -> None:
    """B16: beside what took its place."""
    settings.POLICY = replace(settings.POLICY, recollection=replace(settings.POLICY.recollection, least_share=0.0))
    text = recollect(scope=scope_of(workspace=workspace), query=QUESTION, now=NOW).text
    assert "[Memory flash: formerly: Mia lives in Oslo.]" in text.splitlines()
    assert "[Belief (0.67): Mia lives in Bergen.]" in text.splitlines()


def test_a_line_for_tools_names_the_successor(workspace: Workspace, old: Episode, successor: Belief) -> None:
    """B16, Echo: and is known again as ours."""
    [told] = [result for result in answers(workspace) if result.id == old.pk]
    line = format_line(memory=told, now=NOW)
    assert f", superseded by {successor.pk}) Mia lives in Oslo. — ID: {old.pk}" in line
    assert strip_echo(line) == ""
