"""consolidate: cycles by hand, until nothing is left to do."""

import json
from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memory.domain.lifecycle import CycleState
from memory.ingest.schemas import IngestContext
from memory.ingest.store import store_raw_episodes
from memory.models import Belief, Cycle, Episode, ModelCall, Workspace
from tests import factories
from tests.consolidation.inline import run_steps

pytestmark = pytest.mark.django_db


@pytest.fixture
def acme() -> Workspace:
    """A workspace whose user said one thing in three sessions."""
    made = factories.workspace(name="acme")
    lines = [{"text": "Mara deploys the shop on Tuesday morning.", "session": str(n)} for n in range(3)]
    store_raw_episodes(raw_lines=lines, arrival=IngestContext(workspace=made, now=factories.NOW))
    return made


def in_process(work: Callable[[Cycle], object]) -> Callable[..., Cycle]:
    """Stand in for waiting: do the work of the cycle here."""

    def wait(cycle_id: str, **_: object) -> Cycle:
        work(Cycle.objects.get(pk=cycle_id))
        return Cycle.objects.get(pk=cycle_id)

    return wait


def consolidate(*options: str) -> list[dict[str, object]]:
    out = StringIO()
    call_command("consolidate", "--workspace", "acme", "--json", *options, stdout=out)
    cycles: list[dict[str, object]] = json.loads(out.getvalue())["cycles"]
    return cycles


def test_without_waiting_a_cycle_is_only_opened(acme: Workspace) -> None:
    """B7: by hand; a second call finds the one that is open."""
    first, second = consolidate(), consolidate()
    assert first[0]["state"] == "queued"
    assert first[0]["id"] == second[0]["id"]


def test_until_idle_ends_when_a_cycle_finds_nothing_to_do(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: idle is nothing pending and nothing eligible."""
    monkeypatch.setattr(
        "memory.management.commands.consolidate.wait_for_cycle", in_process(lambda cycle: run_steps(cycle=cycle))
    )
    cycles = consolidate("--until-idle")
    assert [cycle["state"] for cycle in cycles] == ["finished", "finished"]
    assert Belief.objects.for_workspace(acme).get().alpha == 4.0


def test_a_cycle_that_fails_is_exit_status_1(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until idle does not go round for ever where nothing gets done."""

    def fail(cycle: Cycle) -> None:
        Cycle.objects.filter(pk=cycle.pk).update(state=CycleState.FAILED, finished_at=factories.NOW)

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", in_process(fail))
    with pytest.raises(CommandError, match="stay pending") as error:
        consolidate("--until-idle")
    assert error.value.returncode == 1


def test_episodes_left_as_failed_are_exit_status_1(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B11: an embedding server that refuses fails episodes before there is any job to count."""

    def fail_to_embed(cycle: Cycle) -> None:
        Episode.objects.filter(workspace=acme).update(state="failed", state_reason="embedding: server")
        Cycle.objects.filter(pk=cycle.pk).update(state=CycleState.FINISHED, finished_at=factories.NOW)

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", in_process(fail_to_embed))
    with pytest.raises(CommandError, match="stay pending"):
        consolidate("--wait")


def test_a_budget_that_is_spent_before_all_is_done_is_exit_status_1(
    acme: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B9: until idle stops where a day's cap lets nothing more be done, and says that it is not done."""

    def run_out(cycle: Cycle) -> None:
        Cycle.objects.filter(pk=cycle.pk).update(state=CycleState.OVER_BUDGET, finished_at=factories.NOW)

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", in_process(run_out))
    with pytest.raises(CommandError, match="stay pending"):
        consolidate("--until-idle")


def test_what_stood_in_the_way_is_named(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B9: as the status names it, whichever way one waits."""

    def fail(cycle: Cycle) -> None:
        ModelCall.objects.create(
            workspace=acme, cycle=cycle, purpose="synthesize", outcome="connection", error="Connection error.",
            started_at=factories.NOW,
        )  # fmt: skip
        Cycle.objects.filter(pk=cycle.pk).update(state=CycleState.FAILED, finished_at=factories.NOW)

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", in_process(fail))
    for option in ("--wait", "--until-idle"):
        with pytest.raises(CommandError, match=r"they stay pending: Connection error\.$"):
            call_command("consolidate", "--workspace", "acme", option, stdout=StringIO())


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--wait", "3 episodes still wait for a cycle; --until-idle runs as many as it takes."),
        ("--until-idle", "3 episodes still wait for a cycle; another one would get no further."),
    ],
)
def test_nobody_is_told_to_do_what_they_did(
    acme: Workspace, monkeypatch: pytest.MonkeyPatch, option: str, told: str
) -> None:
    def end(cycle: Cycle) -> None:
        Cycle.objects.filter(pk=cycle.pk).update(state=CycleState.FINISHED, finished_at=factories.NOW)

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", in_process(end))
    out = StringIO()
    call_command("consolidate", "--workspace", "acme", option, stdout=out)
    assert out.getvalue().splitlines()[-1] == told


def test_what_comes_meanwhile_gets_a_cycle_of_its_own(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: even after one that got nothing out of the way; what workers read from conversations comes like that."""
    ended: list[Cycle] = []

    def end(cycle: Cycle) -> None:
        if not ended:
            factories.episode(workspace=acme, created_at=timezone.now())
        ended.append(cycle)
        Cycle.objects.filter(pk=cycle.pk).update(state=CycleState.FINISHED, finished_at=factories.NOW)

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", in_process(end))
    call_command("consolidate", "--workspace", "acme", "--until-idle", stdout=StringIO())
    assert len(ended) == 2


def test_what_a_cycle_did_is_said_in_order_and_in_the_right_number(
    acme: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "memory.management.commands.consolidate.wait_for_cycle", in_process(lambda cycle: run_steps(cycle=cycle))
    )
    out = StringIO()
    call_command("consolidate", "--workspace", "acme", "--wait", stdout=out)
    assert out.getvalue() == f"{Cycle.objects.get().pk} finished: 3 episodes, 1 cluster, 1 belief created\n"


@pytest.mark.parametrize(("state", "becomes"), [("queued", "waits for a worker"), ("running", "goes on in the worker")])
def test_an_interrupted_wait_says_what_becomes_of_the_cycle(
    acme: Workspace, monkeypatch: pytest.MonkeyPatch, state: str, becomes: str
) -> None:
    """Ctrl-C ends the waiting alone: exit status 130, one line, no trace."""

    def interrupt(cycle_id: str, *, on_look: Callable[[Cycle], None]) -> Cycle:
        Cycle.objects.filter(pk=cycle_id).update(state=state)
        on_look(Cycle.objects.get(pk=cycle_id))
        raise KeyboardInterrupt

    monkeypatch.setattr("memory.management.commands.consolidate.wait_for_cycle", interrupt)
    err = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("consolidate", "--workspace", "acme", "--wait", stderr=err)
    assert end.value.code == 130
    assert err.getvalue() == f"Stopped waiting; cycle {Cycle.objects.get().pk} {becomes}.\n"
    assert Cycle.objects.open().exists()


def test_a_dry_run_opens_nothing(acme: Workspace) -> None:
    """B22: the plan as JSON, with what it would cost."""
    out = StringIO()
    call_command("consolidate", "--workspace", "acme", "--dry-run", "--json", stdout=out)
    shown = json.loads(out.getvalue())
    assert (shown["dry_run"], shown["episodes"], len(shown["jobs"])) == (True, 3, 1)
    assert shown["estimate"]["cost_usd"] == 0.0
    assert not Cycle.objects.exists()


def test_a_dry_run_reads_as_sentences(acme: Workspace) -> None:
    """B22."""
    out = StringIO()
    call_command("consolidate", "--workspace", "acme", "--dry-run", stdout=out)
    assert out.getvalue().splitlines() == [
        "A cycle would take up 3 episodes.",
        "  3 episodes alike: about 2 calls",
        "Calls: about 1 to synthesize, 1 to classify; about 0 tokens, $0.0000.",
    ]


def test_without_beliefs_it_says_so(acme: Workspace) -> None:
    """B22."""
    Workspace.objects.filter(pk=acme.pk).update(beliefs_enabled=False)
    with pytest.raises(CommandError, match="episodes only") as error:
        consolidate()
    assert error.value.returncode == 1


def test_a_cycle_is_cancelled_by_its_id(acme: Workspace) -> None:
    """B22."""
    [cycle] = consolidate()
    out = StringIO()
    call_command("cancel_cycle", str(cycle["id"]), stdout=out)
    assert out.getvalue() == f"{cycle['id']} cancelled.\n"
    assert Cycle.objects.get().cancelled_by.startswith("command cancel_cycle of ")
    with pytest.raises(CommandError, match="has ended as cancelled"):
        call_command("cancel_cycle", str(cycle["id"]))


def test_a_cycle_that_is_not_there_is_bad_usage() -> None:
    with pytest.raises(CommandError) as error:
        call_command("cancel_cycle", "cy_000000000000")
    assert error.value.returncode == 2
