"""The command `forget`."""

import json

import pytest
from django.core.management import CommandError, call_command

from memory.models import Belief, Episode, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(db: None) -> Workspace:
    return factories.workspace()


def test_memories_are_forgotten_by_the_beginning_of_their_ids(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """R7, B19."""
    episode = factories.episode(workspace=workspace, id="ep_aa0000000000")
    belief = factories.belief(workspace=workspace, id="bl_bb0000000000", is_pinned=True)
    factories.evidence(belief=belief, episode=episode)
    call_command("forget", "ep_aa", "bl_b", "--reason", "private")
    assert capsys.readouterr().out == "ep_aa0000000000 forgotten, 1 belief computed anew.\nbl_bb0000000000 forgotten.\n"
    assert (Episode.objects.get().status, Belief.objects.get().status) == ("forgotten", "forgotten")
    assert Belief.objects.get().status_reason == "private"


def test_it_tells_machines_what_it_did(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    belief = factories.belief(workspace=workspace)
    episode = factories.episode(workspace=workspace)
    factories.evidence(belief=belief, episode=episode)
    call_command("forget", episode.pk, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told == {"id": episode.pk, "recomputed": [belief.pk], "archived": [belief.pk], "merged": [], "summaries": []}


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["ep_c"], "There is no ep_c."),
        (["ep_a"], "ep_a fits several: ep_aa0000000000, ep_ab0000000000."),
        (["cy_a"], "'cy_a' names no memory"),
        (["ep_aa", "ep_c"], "There is no ep_c."),
    ],
)
def test_what_cannot_be_named_is_bad_usage(workspace: Workspace, ids: list[str], message: str) -> None:
    """Nothing is forgotten then."""
    for key in ("ep_aa0000000000", "ep_ab0000000000"):
        factories.episode(workspace=workspace, id=key)
    with pytest.raises(CommandError, match=message) as failed:
        call_command("forget", *ids)
    assert failed.value.returncode == 2
    assert set(Episode.objects.values_list("status", flat=True)) == {"active"}


def test_a_belief_is_forgotten_once(workspace: Workspace) -> None:
    belief = factories.belief(workspace=workspace, status="forgotten")
    with pytest.raises(CommandError, match="forgotten cannot become forgotten") as failed:
        call_command("forget", belief.pk)
    assert failed.value.returncode == 1
