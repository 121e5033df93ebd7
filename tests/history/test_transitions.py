"""D3 and R10: every change of a status goes one way, by the table, and leaves a row."""

import ast
from datetime import timedelta
from pathlib import Path

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus, IllegalTransitionError
from memory.ledger.transactions import change_episode_status, change_status
from memory.models import Belief, BeliefEmbedding, Episode, EpisodeEmbedding, Transition, Workspace
from tests import factories

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
LENA = Actor(kind=ActorKind.PERSON, name="lena")
LATER = factories.NOW + timedelta(days=1)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def kept() -> list[tuple[str, str, str, str, object]]:
    return list(Transition.objects.order_by("pk").values_list("old", "new", "reason", "actor", "at"))


def curate(belief: Belief, act: CuratorAction, reason: str = "because") -> Belief:
    curate_belief(belief_id=belief.pk, act=act, reason=reason, actor=LENA, now=LATER)
    belief.refresh_from_db()
    return belief


def test_a_transition_records_old_new_reason_actor_and_time(workspace: Workspace) -> None:
    """R10."""
    belief = factories.belief(workspace=workspace)
    BeliefEmbedding.objects.create(workspace=workspace, belief=belief, model="m", vector=[0.0] * 768)
    change_status(belief=belief, new=BeliefStatus.CHALLENGED, reason="doubtful", actor=LENA, now=LATER)
    belief.refresh_from_db()
    assert (belief.status, belief.status_reason, belief.updated_at) == ("challenged", "doubtful", LATER)
    assert kept() == [("active", "challenged", "doubtful", "person lena", LATER)]
    assert not BeliefEmbedding.objects.get(belief=belief).is_active


def test_an_illegal_transition_names_both_and_changes_nothing(workspace: Workspace) -> None:
    """D3."""
    belief = factories.belief(workspace=workspace, status="forgotten")
    with pytest.raises(IllegalTransitionError, match="forgotten cannot become active"):
        change_status(belief=belief, new=BeliefStatus.ACTIVE, reason="again", actor=LENA, now=LATER)
    belief.refresh_from_db()
    assert (belief.status, kept()) == ("forgotten", [])


def test_episodes_change_all_or_none(workspace: Workspace) -> None:
    """D3, R10."""
    active = factories.episode(workspace=workspace)
    forgotten = factories.episode(workspace=workspace, status="forgotten")
    change = {"new": EpisodeStatus.ARCHIVED, "reason": "stale", "actor": LENA, "now": LATER}
    with pytest.raises(IllegalTransitionError, match="forgotten cannot become archived"):
        change_episode_status(ids=[active.pk, forgotten.pk], **change)  # type: ignore[arg-type]
    assert (Episode.objects.get(pk=active.pk).status, kept()) == ("active", [])
    assert change_episode_status(ids=[active.pk], **change) == [active.pk]  # type: ignore[arg-type]
    assert kept() == [("active", "archived", "stale", "person lena", LATER)]


def test_an_episode_that_has_the_status_is_left_alone(workspace: Workspace) -> None:
    episode = factories.episode(workspace=workspace)
    change = {"new": EpisodeStatus.ACTIVE, "reason": "again", "actor": LENA, "now": LATER}
    assert change_episode_status(ids=[episode.pk], **change) == []  # type: ignore[arg-type]
    assert kept() == []


def test_searches_follow_an_episodes_status(workspace: Workspace) -> None:
    episode = factories.episode(workspace=workspace)
    EpisodeEmbedding.objects.create(workspace=workspace, episode=episode, model="m", vector=[0.0] * 768)
    change_episode_status(ids=[episode.pk], new=EpisodeStatus.ARCHIVED, reason="stale", actor=LENA, now=LATER)
    assert not EpisodeEmbedding.objects.get(episode=episode).is_active


def test_a_person_archives_and_restores(workspace: Workspace) -> None:
    """B14: both times are kept, since gates ask for them."""
    belief = curate(factories.belief(workspace=workspace), CuratorAction.ARCHIVE, "gone")
    assert (belief.status, belief.status_reason, belief.archived_by_person_at) == ("archived", "gone", LATER)
    belief = curate(belief, CuratorAction.RESTORE)
    assert (belief.status, belief.archived_by_person_at, belief.restored_by_person_at) == ("active", None, LATER)
    assert [row[:2] for row in kept()] == [("active", "archived"), ("archived", "active")]


@pytest.mark.parametrize("status", ["revised", "merged", "split", "forgotten", "active"])
def test_what_became_others_is_not_restored_by_hand(workspace: Workspace, status: str) -> None:
    belief = factories.belief(workspace=workspace, status=status)
    with pytest.raises(IllegalTransitionError, match=f"{status} cannot be restored to active"):
        curate(belief, CuratorAction.RESTORE)


@pytest.mark.parametrize("status", ["revised", "merged", "split"])
def test_what_became_others_is_not_archived_by_hand(workspace: Workspace, status: str) -> None:
    """B14: it would come back beside them; only undoing takes it there."""
    belief = factories.belief(workspace=workspace, status=status)
    with pytest.raises(IllegalTransitionError, match=f"{status} cannot become archived"):
        curate(belief, CuratorAction.ARCHIVE)


def test_pinning_twice_is_pinning_once(workspace: Workspace) -> None:
    """D9."""
    belief = curate(factories.belief(workspace=workspace), CuratorAction.PIN)
    assert belief.is_pinned
    curate_belief(belief_id=belief.pk, act=CuratorAction.PIN, reason="again", actor=LENA, now=LATER + timedelta(days=1))
    belief.refresh_from_db()
    assert belief.updated_at == LATER


WRITES_STATUS = {"memory/ledger/transactions.py"}


def writes_of_status(source: str) -> list[int]:
    """List the lines that set a row's status: by attribute, by update() or by naming the column for a save."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign):
            targets = [each for target in node.targets for each in ast.walk(target)]
            found += [each.lineno for each in targets if isinstance(each, ast.Attribute) and each.attr == "status"]
        if isinstance(node, ast.Call):
            is_update = isinstance(node.func, ast.Attribute) and node.func.attr in {"update", "update_or_create"}
            names = {word.arg for word in node.keywords} if is_update else set()
            found += [node.lineno] if "status" in names else []
            found += [
                node.lineno for word in node.keywords if word.arg == "update_fields" and _names_status(word.value)
            ]
    return found


def _names_status(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == "status" for each in ast.walk(node))


def test_no_other_code_writes_a_status() -> None:
    """D3: one function for beliefs, one for episodes."""
    sources = {path.relative_to(ROOT).as_posix(): path for room in ("memory", "workers") for path in
               (ROOT / room).rglob("*.py") if "migrations" not in path.parts}  # fmt: skip
    writers = {name for name, path in sources.items() if writes_of_status(path.read_text())}
    exceptions = {"memory/ingest/schemas.py"}  # an error's HTTP status
    assert writers - exceptions == WRITES_STATUS


@pytest.mark.parametrize(
    "line",
    ["belief.status = new", "a.status, b = 1, 2", "rows.update(status='archived')", "x.save(update_fields=['status'])"],
)
def test_the_search_would_find_a_writer(line: str) -> None:
    assert writes_of_status(line)
