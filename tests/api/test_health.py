"""GET /healthz and /readyz."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from memory.consolidation.sweep import SWEEP, sweep
from memory.models import Heartbeat
from tests.api.caller import is_problem

pytestmark = pytest.mark.django_db


def test_a_living_process_says_so(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_ready_with_database_broker_and_a_recent_sweep(client: Client) -> None:
    sweep()
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_not_ready_without_a_sweep_within_three_minutes(client: Client) -> None:
    Heartbeat.objects.create(name=SWEEP, seen_at=Now() - timedelta(minutes=3, seconds=1))
    response = client.get("/readyz")
    assert is_problem(response, 503)
    assert response.json()["detail"] == "Not ready: workers."


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "redis+socket:///nowhere/redis.sock"])
def test_not_ready_without_a_broker(client: Client, settings: object, url: str) -> None:
    sweep()
    settings.BROKER_URL = url  # type: ignore[attr-defined]
    response = client.get("/readyz")
    assert is_problem(response, 503)
    assert response.json()["detail"] == "Not ready: broker."
