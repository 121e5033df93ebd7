"""The command `erase`."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from memory.models import Belief, Cycle, Episode, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(db: None) -> Workspace:
    return factories.workspace(name="mill")


def test_memories_are_erased_by_their_ids(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """B19: of several workspaces at once."""
    other = factories.workspace()
    episodes = [factories.episode(workspace=place) for place in (workspace, other, other)]
    belief = factories.belief(workspace=other)
    call_command("erase", episodes[0].pk, episodes[1].pk, belief.pk[:-1])
    assert capsys.readouterr().out == "2 episodes and 1 belief erased.\n"
    assert (Episode.objects.get(), Belief.objects.exists()) == (episodes[2], False)


def test_a_user_is_erased(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    factories.episode(workspace=workspace, user="mara")
    left = factories.episode(workspace=workspace, user="toma")
    gone = factories.belief(workspace=workspace, user="mara")
    call_command("erase", "--workspace", "mill", "--user", "mara", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "episodes": 1, "beliefs": 1, "turns": 0, "calls": 0, "released": 0, "recomputed": 0, "archived": 0,
        "scrubbed": False,
        "belief_ids": {"recomputed": [], "archived": [], "erased": [gone.pk]},
    }  # fmt: skip
    assert Episode.objects.get() == left


def test_a_workspace_is_erased(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    factories.episode(workspace=workspace)
    elsewhere = factories.episode(workspace=factories.workspace())
    call_command("erase", "--workspace", "mill", "--all")
    assert capsys.readouterr().out == "1 episode and 0 beliefs erased.\n"
    assert Episode.objects.get() == elsewhere


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Name what is to be erased"),
        (["--workspace", "mill"], "--workspace goes with"),
        (["--user", "mara"], "--workspace goes with"),
        (["--workspace", "mill", "--user", ""], "not one user's"),
        (["--workspace", "mine", "--all"], "There is no workspace 'mine'"),
        (["ep_0", "--workspace", "mill", "--all"], "not both"),
        (["ep_0"], "There is no ep_0"),
    ],
)
def test_bad_usage_erases_nothing(workspace: Workspace, words: list[str], message: str) -> None:
    factories.episode(workspace=workspace, id="ep_100000000000")
    with pytest.raises(CommandError, match=message) as failed:
        call_command("erase", *words)
    assert failed.value.returncode == 2
    assert Episode.objects.exists()


def test_an_open_cycle_fails_it(workspace: Workspace) -> None:
    """B19: the message names the cycle."""
    episode = factories.episode(workspace=workspace)
    cycle = Cycle.objects.create(workspace=workspace, trigger="person", now=Now())
    with pytest.raises(CommandError, match=cycle.pk) as failed:
        call_command("erase", episode.pk)
    assert failed.value.returncode == 1
    assert Episode.objects.exists()
