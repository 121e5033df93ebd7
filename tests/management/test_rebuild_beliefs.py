"""B22, R15: beliefs are rebuilt by a command."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.consolidation.cycle import open_cycle
from memory.models import Belief, Evidence, ModelCall, Trigger, Workspace
from tests import factories
from tests.consolidation.inline import run_to_end
from tests.test_sample_lived_through import live_through, read_history

pytestmark = pytest.mark.django_db


def rebuild(workspace: Workspace, *options: str) -> str:
    out = StringIO()
    call_command("rebuild_beliefs", "--workspace", workspace.name, *options, stdout=out)
    return out.getvalue()


def believed(workspace: Workspace) -> list[dict[str, Any]]:
    return list(Belief.objects.for_workspace(workspace).order_by("pk").values())


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The sample history, lived through by the models of this machine."""
    monkeypatch.setattr("memory.ingest.json_lines.wait_for_cycle", run_to_end)
    return live_through(read_history())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)  # steps commit, as in life: else rows keep all their pasts
def test_the_sample_is_the_same_again(sample: Workspace) -> None:
    """B22: the same ids, statements, α and β, and no call; after damage, too."""
    before, calls = believed(sample), ModelCall.objects.count()
    told = json.loads(rebuild(sample, "--json"))
    assert (told["beliefs"], told["differences"]) == (len(before), [])
    assert believed(sample) == before

    Belief.objects.update(alpha=50, statement="Spoilt.")
    Evidence.objects.all().delete()
    rebuild(sample)

    columns = ("id", "statement", "alpha", "beta", "status")
    again = [{name: row[name] for name in columns} for row in believed(sample)]
    assert again == [{name: row[name] for name in columns} for row in before]
    assert ModelCall.objects.count() == calls


def test_nothing_to_rebuild_is_said_so() -> None:
    assert rebuild(factories.workspace()) == "0 beliefs of 0 cycles, all as recorded\n"


def test_it_refuses_while_a_cycle_is_open() -> None:
    """B22: status 1, and the cycle is named."""
    workspace = factories.workspace()
    cycle, _ = open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    with pytest.raises(CommandError, match=cycle.pk) as refused:
        rebuild(workspace)
    assert refused.value.returncode == 1


def test_an_unknown_workspace_is_bad_usage() -> None:
    with pytest.raises(CommandError) as refused:
        call_command("rebuild_beliefs", "--workspace", "nowhere")
    assert refused.value.returncode == 2


def test_differences_are_told_a_line_each() -> None:
    """A dry run says what it found and leaves it."""
    workspace = factories.workspace()
    belief = factories.belief(workspace=workspace, alpha=3.0)

    assert rebuild(workspace, "--dry-run").splitlines() == [
        f'{belief.pk}: alpha 3.0 → 1.0; additive_confidence null → 0.6; archive_due_at null → "2026-05-30T12:00:00Z"',
        "1 belief of 0 cycles, 1 difference found",
    ]
    assert json.loads(rebuild(workspace, "--json"))["differences"][0]["columns"]["alpha"] == {
        "stands": 3.0,
        "recorded": 1.0,
    }
    assert Belief.objects.get().alpha == 1.0
