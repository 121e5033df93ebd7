"""A cycle's first message leaves when its rows are committed, holds ids alone, and may be lost."""

import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import transaction
from pytest_django import Settings

from beliefsite.celery import app, catch_up
from memory.consolidation.cycle import open_cycle
from memory.consolidation.schedule import sweep
from memory.models import ClusterJob, Cycle, CycleStep, JobKind, Trigger, Workspace
from tests import factories
from tests.faults.windows import broker
from tests.workers.messages import QUEUES, read_messages
from workers import tasks
from workers.health import TASK_NAMES
from workers.schedule import BEAT_SCHEDULE
from workers.tasks import judge_jobs

pytestmark = pytest.mark.usefixtures("queues")
app.loader.import_default_modules()


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return factories.workspace()


def _open(workspace: Workspace) -> Cycle:
    return open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)[0]


def test_nothing_is_sent_before_the_commit(workspace: Workspace) -> None:
    """B7: a worker never looks for a cycle that is not there yet."""
    with transaction.atomic():
        _open(workspace)
        assert read_messages("consolidation") == []
    assert [message.task for message in read_messages("consolidation")] == ["workers.extract"]


def test_a_cycle_that_was_rolled_back_is_never_sent(workspace: Workspace) -> None:
    with transaction.atomic():
        _open(workspace)
        transaction.set_rollback(True)
    assert read_messages("consolidation") == []


def test_a_second_call_for_an_open_cycle_sends_nothing(workspace: Workspace) -> None:
    """B7: one cycle per workspace, one dispatch."""
    first, second = _open(workspace), _open(workspace)
    assert first.pk == second.pk
    assert len(read_messages("consolidation")) == 1


def test_messages_hold_ids_in_json_and_nothing_else(workspace: Workspace) -> None:
    """B8: what has been done is in the rows; a message names a cycle and an attempt."""
    cycle = _open(workspace)
    [message] = read_messages("consolidation")
    assert message.arguments == [cycle.pk, 1]
    assert message.content_type == "application/json"
    assert {step["task"]: list(step["args"]) for step in message.followed_by} == {
        "workers.read": [cycle.pk, 1],
    }


def test_a_message_shows_people_what_it_is_about(workspace: Workspace) -> None:
    """Flower shows this in place of the arguments."""
    cycle = _open(workspace)
    [message] = read_messages("consolidation")
    assert message.about == f"({cycle.pk}, attempt 1)"


def test_the_message_of_a_job_names_its_cycle_and_its_place(workspace: Workspace) -> None:
    """A job's id alone would tell a person nothing."""
    cycle = _open(workspace)
    jobs = [
        ClusterJob.objects.create(workspace=workspace, cycle=cycle, number=number, kind=JobKind.CLUSTER)
        for number in (1, 2)
    ]
    judge_jobs(cycle_id=cycle.pk, attempt=1)
    messages = read_messages("llm")
    assert [message.arguments for message in messages] == [[job.pk, 1] for job in jobs]
    assert [message.about for message in messages] == [f"({cycle.pk}, job {n} of 2, attempt 1)" for n in (1, 2)]


def test_a_lost_message_is_sent_again_by_the_sweep(workspace: Workspace) -> None:
    """B8: when the lease has run out, as the cycle's next attempt."""
    cycle = _open(workspace)
    with broker() as client:
        client.delete(*QUEUES)
    assert sweep() == 0
    Cycle.objects.filter(pk=cycle.pk).update(leased_until=factories.NOW)

    assert sweep() == 1

    [message] = read_messages("consolidation")
    assert message.arguments == [cycle.pk, 2]


def test_clustering_that_comes_again_sends_the_jobs_again(clustered: Cycle) -> None:
    """B8: its worker may have died between the plan's commit and the sending; leases keep two from one job."""
    for _ in range(2):
        tasks.cluster(clustered.pk, 1)
    job = ClusterJob.objects.get(cycle=clustered)
    assert [(sent.task, sent.arguments) for sent in read_messages("llm")] == [("workers.synthesize", [job.pk, 1])] * 2


def test_clustering_for_an_overtaken_attempt_sends_nothing(clustered: Cycle) -> None:
    """B8: the jobs are the next attempt's to send."""
    Cycle.objects.filter(pk=clustered.pk).update(attempt=2)
    tasks.cluster(clustered.pk, 1)
    assert read_messages("llm") == read_messages("consolidation") == []


@pytest.fixture
def clustered(workspace: Workspace) -> Cycle:
    """Store a running cycle whose plan of one job is written down."""
    cycle = Cycle.objects.create(
        workspace=workspace, now=factories.NOW, trigger=Trigger.PERSON, state="running", attempt=1
    )
    CycleStep.objects.create(workspace=workspace, cycle=cycle, name="cluster", finished_at=factories.NOW)
    ClusterJob.objects.create(workspace=workspace, cycle=cycle, number=1, kind=JobKind.CLUSTER, members_hash="")
    return cycle


def test_a_broker_that_is_away_does_not_fail_the_commit(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: the rows are the truth; the sweep sends what could not be sent."""

    def refuse(**_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr("workers.tasks.start_cycle", refuse)
    cycle = _open(workspace)
    assert Cycle.objects.get(pk=cycle.pk).state == "queued"


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("workers.extract", "consolidation"),
        ("workers.cluster", "consolidation"),
        ("workers.apply", "consolidation"),
        ("workers.gate", "consolidation"),
        ("workers.finish", "consolidation"),
        ("workers.synthesize", "llm"),
        ("workers.restructure", "llm"),
        ("workers.classify", "llm"),
        ("workers.tick", "maintenance"),
        ("workers.catch_up", "maintenance"),
        ("workers.sweep", "maintenance"),
    ],
)
def test_every_task_goes_to_its_queue(task: str, queue: str) -> None:
    """What waits on a model never keeps a step from running, nor the sweeper."""
    assert task in app.tasks
    assert app.amqp.router.route({}, task)["queue"].name == queue


@pytest.mark.parametrize(("is_on", "sent"), [(True, ["workers.catch_up"]), (False, [])])
def test_a_worker_that_starts_asks_for_what_is_overdue(is_on: bool, sent: list[str], settings: Settings) -> None:
    """B7: the schedule counts from the start of its sender, and may be four hours away."""
    settings.ENGRAM_CATCH_UP = is_on
    catch_up()
    assert [message.task for message in read_messages("maintenance")] == sent


def test_the_last_step_opens_the_next_cycle_of_a_backlog(clustered: Cycle, monkeypatch: pytest.MonkeyPatch) -> None:
    """B7: at once, by whoever closed the cycle; a step of an attempt that is over opens none."""
    closed = {"state": "finished", "finished_at": factories.NOW, "has_backlog": True}
    Cycle.objects.filter(pk=clustered.pk).update(**closed)
    tasks.finish(clustered.pk, 1)
    assert not Cycle.objects.open().exists()
    monkeypatch.setattr("workers.tasks.finish_cycle", lambda **_: True)
    tasks.finish(clustered.pk, 1)
    assert Cycle.objects.open().get().trigger == "backlog"
    assert [message.task for message in read_messages("consolidation")] == ["workers.extract"]


def test_the_sweeper_opens_the_next_cycle_that_nobody_opened(clustered: Cycle) -> None:
    """B7: its process may have died between closing the one and opening the other."""
    closed = {"state": "finished", "finished_at": factories.NOW, "has_backlog": True}
    Cycle.objects.filter(pk=clustered.pk).update(**closed)
    tasks.sweep()
    tasks.sweep()
    assert [cycle.trigger for cycle in Cycle.objects.open()] == ["backlog"]


def test_every_task_of_ours_is_routed_on_purpose() -> None:
    ours = {name for name in app.tasks if name.startswith("workers.")}
    assert ours == {f"workers.{name}" for name in TASK_NAMES}


def test_beat_sends_the_tick_the_sweep_and_what_recall_rests_on() -> None:
    """B7, B8, B17, P11: cycles every four hours; lost ones and new words every ten seconds, changed files sooner."""
    assert {entry["task"]: entry["schedule"] for entry in BEAT_SCHEDULE.values()} == {
        "workers.tick": 4 * 3600.0,
        "workers.sweep": 10.0,
        "workers.count_words": 10.0,
        "workers.keep_indexes": 60.0,
        "workers.link_memories": 10.0,
        "workers.maintain_memory": 60.0,
        "workers.publish_beliefs": 2.0,
    }
    app.finalize()
    assert app.conf.beat_schedule == BEAT_SCHEDULE


def test_only_what_a_chord_counts_leaves_a_result() -> None:
    """A sender subscribes to every result that is kept, and would wait for a broker that is gone."""
    kept = {name for name in app.tasks if name.startswith("workers.") and not app.tasks[name].ignore_result}
    assert kept == {"workers.read_messages", "workers.synthesize", "workers.classify", "workers.restructure"}


def test_a_sender_that_runs_no_tasks_asks_for_no_results() -> None:
    """As a web process does: it knows a task's options only once the tasks are imported."""
    program = "; ".join(
        [
            "import django; django.setup()",
            "from django.db import transaction; transaction.on_commit = lambda send, robust: send()",
            "from workers import tasks; tasks.start_cycle = lambda **ids: None",
            "from workers.apps import dispatch_on_commit; dispatch_on_commit(cycle_id='cy_000000000000', attempt=1)",
            "from beliefsite.celery import app; assert app.tasks['workers.extract'].ignore_result",
        ]
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "beliefsite.settings"}
    subprocess.run([sys.executable, "-c", program], cwd=settings.BASE_DIR, env=environment, check=True)
