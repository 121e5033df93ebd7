"""GET /healthz and /readyz."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from memory.consolidation.schedule import SWEEP_HEARTBEAT, sweep
from memory.models import Heartbeat
from tests.api.caller import is_problem
from workers import health
from workers.health import record_heartbeat, remove_heartbeat

pytestmark = pytest.mark.django_db


def test_a_living_process_says_so(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.fixture
def worker() -> Iterator[None]:
    """Let a worker have been seen just now."""
    record_heartbeat("test@here")
    yield
    remove_heartbeat("test@here")


@pytest.mark.usefixtures("worker")
def test_ready_with_database_broker_worker_and_a_recent_sweep(client: Client) -> None:
    sweep()
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.usefixtures("worker")
def test_not_ready_without_a_sweep_within_three_minutes(client: Client) -> None:
    Heartbeat.objects.create(name=SWEEP_HEARTBEAT, seen_at=Now() - timedelta(minutes=3, seconds=1))
    response = client.get("/readyz")
    assert is_problem(response, 503)
    assert response.json()["detail"] == "Not ready: sweep."


def test_not_ready_without_a_worker_that_lives(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of a minute ago says nothing about now: a killed worker is missed after twenty seconds."""
    sweep()
    record_heartbeat("killed@here")
    monkeypatch.setattr(health, "_GONE_AFTER_SECONDS", -1.0)
    response = client.get("/readyz")
    assert is_problem(response, 503)
    assert response.json()["detail"] == "Not ready: worker."


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "redis+socket:///nowhere/redis.sock"])
def test_not_ready_without_a_broker(client: Client, settings: object, url: str) -> None:
    sweep()
    settings.BROKER_URL = url  # type: ignore[attr-defined]
    response = client.get("/readyz")
    assert is_problem(response, 503)
    assert response.json()["detail"] == "Not ready: broker, worker."
