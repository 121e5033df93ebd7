"""undo_cycle: a cycle taken back by its id, and its episodes released."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memory.models import Belief, Cycle, Episode, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("undo_cycle", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def cycle() -> Cycle:
    """Return an ended cycle that founded a belief."""
    workspace: Workspace = factories.workspace()
    ended = Cycle.objects.create(
        workspace=workspace, trigger="person", now=factories.NOW, state="finished", finished_at=factories.NOW
    )
    factories.belief(workspace=workspace, created_in=ended)
    return ended


def test_a_cycle_is_undone_by_its_id(cycle: Cycle) -> None:
    """B22."""
    told = run(cycle.pk, "--reason", "the wrong file")
    cycle.refresh_from_db()
    assert told == (
        f"{cycle.pk} undone: 0 beliefs as before, 1 invalidated, 0 rows of evidence taken back, 0 episodes held.\n"
    )
    assert cycle.undone_by.startswith("command undo_cycle of ")
    assert Belief.objects.get().status_reason == f"cycle {cycle.pk} undone: the wrong file"


def test_a_machine_reads_the_numbers(cycle: Cycle) -> None:
    assert json.loads(run(cycle.pk, "--json")) == {
        "id": cycle.pk, "restored": 0, "invalidated": 1, "evidence": 0, "lineage": 0, "held": 0,
    }  # fmt: skip


def test_its_episodes_are_released(cycle: Cycle) -> None:
    """B22."""
    run(cycle.pk)
    reason = f"cycle {cycle.pk} undone"
    mine = factories.episode(workspace=cycle.workspace, state="held", state_reason=reason)
    other = factories.episode(workspace=cycle.workspace, state="held", state_reason="cycle cy_000000000000 undone")
    assert run(cycle.pk, "--release") == f"{cycle.pk}: 1 episode released.\n"
    assert {key: Episode.objects.get(pk=key).state for key in (mine.pk, other.pk)} == {mine.pk: "new", other.pk: "held"}


@pytest.mark.parametrize(
    ("arguments", "told"), [(["cy_000000000000"], "no cycle cy_0"), (["cy_000000000000", "--release"], "no cycle cy_0")]
)
def test_a_cycle_that_is_not_there_is_bad_usage(arguments: list[str], told: str) -> None:
    """R15: as for every command that names one."""
    with pytest.raises(CommandError, match=told) as error:
        run(*arguments)
    assert error.value.returncode == 2


def test_what_stands_in_the_way_fails(cycle: Cycle) -> None:
    """B22: one that is undone already, and one that was not when releasing."""
    with pytest.raises(CommandError, match="was not undone") as unreleased:
        run(cycle.pk, "--release")
    run(cycle.pk)
    with pytest.raises(CommandError, match="undone already") as twice:
        run(cycle.pk)
    assert (unreleased.value.returncode, twice.value.returncode) == (1, 1)
