"""Tasks, called as functions: each does one service's work, and none ever raises."""

from unittest.mock import Mock

import pytest
import structlog
from django.db import OperationalError

from memory.models import ClusterJob, Cycle, CycleStep, Heartbeat, JobKind, MetricCounter, Trigger
from tests import factories
from workers import tasks

pytestmark = pytest.mark.django_db

closes_connections = pytest.mark.django_db(transaction=True)  # as a step does that was sent

UNKNOWN = "cy_000000000000"


@pytest.mark.parametrize("name", ["extract", "cluster", "gate", "finish"])
def test_a_step_of_an_overtaken_attempt_does_nothing(name: str) -> None:
    """B8: messages of an attempt that is no longer the cycle's find nothing to do."""
    workspace = factories.workspace()
    cycle = Cycle.objects.create(workspace=workspace, now=factories.NOW, trigger=Trigger.PERSON, attempt=2)
    getattr(tasks, name)(cycle.pk, 1)
    cycle.refresh_from_db()
    assert (cycle.state, cycle.started_at) == ("queued", None)
    assert not CycleStep.objects.filter(cycle=cycle).exists()


@pytest.mark.parametrize("name", ["synthesize", "classify", "restructure"])
def test_a_step_of_a_job_that_is_gone_does_nothing(name: str) -> None:
    """B8: a message may outlive the rows that it names."""
    getattr(tasks, name)(4_711, 1)
    assert not Cycle.objects.exists()


def test_a_step_that_fails_says_so_and_does_not_raise(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """B8: a chord whose header raises would never run its body."""
    monkeypatch.setattr(tasks, "extract_episodes", Mock(side_effect=ZeroDivisionError))
    assert tasks.extract(UNKNOWN, 1) is None
    assert "step_failed" in caplog.text


@closes_connections
def test_a_step_outlives_an_outage_of_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: it is tried again, for longer than a crash recovery takes, and gives up without raising."""
    work = Mock(side_effect=[OperationalError("the database is starting up")] * 2 + [True])
    monkeypatch.setattr(tasks, "extract_episodes", work)
    result = tasks.extract.apply(args=(UNKNOWN, 1))
    assert result.successful()
    assert work.call_count == 3
    assert tasks.Step.max_retries * 3 >= 60


@closes_connections
def test_an_outage_without_end_is_left_to_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: the last retry returns, so that the chord's body runs and the rows show what is missing."""
    work = Mock(side_effect=OperationalError("gone"))
    monkeypatch.setattr(tasks, "extract_episodes", work)
    assert tasks.extract.apply(args=(UNKNOWN, 1)).successful()
    assert work.call_count == tasks.Step.max_retries + 1


def test_nothing_waits_for_a_look_for_surprises_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """L2, B8: whatever else the sweep does is done by then."""
    monkeypatch.setattr(tasks, "flush_surprising", Mock(side_effect=RuntimeError))
    others = {name: Mock() for name in ("wake_conversations", "open_missed_cycles", "send_due_jobs")}
    for name, other in others.items():
        monkeypatch.setattr(tasks, name, other)
    tasks.sweep()
    assert [other.call_count for other in others.values()] == [1, 1, 1]


def test_the_sweep_leaves_a_sign_of_life() -> None:
    """B8: readiness asks when somebody last swept."""
    tasks.sweep()
    assert Heartbeat.objects.filter(name="sweep").exists()


def test_the_tick_opens_a_cycle_where_episodes_wait() -> None:
    """B7: the schedule starts what is due, and only there."""
    waiting, idle = factories.workspace(), factories.workspace()
    factories.episode(workspace=waiting)
    tasks.tick()
    assert Cycle.objects.filter(workspace=waiting, trigger=Trigger.SCHEDULE).count() == 1
    assert not Cycle.objects.filter(workspace=idle).exists()


def test_the_lines_of_a_step_say_which_cycle_and_workspace_they_are_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever logs within a step, in whichever library, and no line after it."""
    cycle = Cycle.objects.create(workspace=factories.workspace(), now=factories.NOW, trigger=Trigger.PERSON)
    fields: list[dict[str, object]] = []
    monkeypatch.setattr(tasks, "extract_episodes", lambda **_: fields.append(structlog.contextvars.get_contextvars()))
    tasks.extract(cycle.pk, 1)
    assert fields == [{"task": "workers.extract", "cycle": cycle.pk, "workspace": cycle.workspace_id}]
    assert structlog.contextvars.get_contextvars() == {}


def test_the_lines_of_a_job_name_its_cycle_too(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = Cycle.objects.create(workspace=factories.workspace(), now=factories.NOW, trigger=Trigger.PERSON)
    job = ClusterJob.objects.create(workspace=cycle.workspace, cycle=cycle, number=1, kind=JobKind.CLUSTER)
    fields: list[dict[str, object]] = []
    monkeypatch.setattr(tasks, "synthesize_cluster", lambda **_: fields.append(structlog.contextvars.get_contextvars()))
    tasks.synthesize(job.pk, 1)
    assert fields == [{"task": "workers.synthesize", "job": job.pk, "cycle": cycle.pk, "workspace": cycle.workspace_id}]


@closes_connections
def test_a_message_that_comes_again_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its task, and by who sent it again: an outage of the database does so itself."""
    work = Mock(side_effect=[OperationalError("the database is starting up"), True])
    monkeypatch.setattr(tasks, "extract_episodes", work)
    tasks.extract.apply(args=(UNKNOWN, 1))
    assert list(MetricCounter.objects.values_list("label", "count")) == [("workers.extract retried", 1)]
