"""B9: how often a key may call, counted in the broker for all processes together."""

import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings as now_settings
from pytest_django import Settings

from memory.access import CallKind, RateLimited, check_rate
from memory.models import Episode, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.docs.pages import ROOT

pytestmark = pytest.mark.django_db


@pytest.fixture
def rates(settings: Settings) -> Any:
    """Return a way to set rates by kind of call."""

    def change(**per_minute: float) -> None:
        numbers = {f"{usage}_per_minute": rate for usage, rate in per_minute.items()}
        settings.POLICY = replace(settings.POLICY, throttle=replace(settings.POLICY.throttle, **numbers))

    return change


def statuses(who: Caller, count: int) -> list[int]:
    return [who.post("/recall", {"query": "tea"}).status_code for _ in range(count)]


def test_a_key_that_had_its_share_waits(workspace: Workspace, rates: Any) -> None:
    """B9: three at once, then one every 20 s; the answer says when."""
    rates(recall=3)
    who = caller("read", workspace=workspace)
    assert statuses(who, 3) == [200] * 3

    refused = who.post("/recall", {"query": "tea"})

    assert is_problem(refused, 429)
    assert 18 <= int(refused.headers["Retry-After"]) <= 20


def test_the_bucket_fills_in_the_course_of_a_minute(workspace: Workspace, rates: Any) -> None:
    """B9: 600 at once, then ten a second, no more and no less."""
    rates(recall=600)
    key = factories.key("read", workspace=workspace)[0]
    began = time.monotonic()
    granted = _granted(key, 1000)
    time.sleep(0.5)
    granted += _granted(key, 100)
    earned = (time.monotonic() - began) * 10
    assert 600 + 4 <= granted <= 600 + earned + 1


def _granted(key: Any, count: int) -> int:
    granted = 0
    for _ in range(count):
        try:
            check_rate(key=key, usage=CallKind.RECALL)
        except RateLimited:
            continue
        granted += 1
    return granted


def test_each_kind_of_call_and_each_key_has_a_bucket_of_its_own(workspace: Workspace, rates: Any) -> None:
    """B9."""
    rates(recall=1, read=1, write=1, curate=1)
    one, other = caller("curate", workspace=workspace), caller("curate", workspace=workspace)
    belief = factories.belief(workspace=workspace)

    def call_all(who: Caller) -> list[int]:
        return [
            who.post("/recall", {"query": "tea"}).status_code,
            who.get("/status").status_code,
            who.post("/episodes", {"text": "Tea."}).status_code,
            who.post(f"/beliefs/{belief.pk}/pin", {"reason": "x"}).status_code,
        ]

    assert call_all(one) == [200, 200, 201, 200]
    assert call_all(one) == [429] * 4
    assert call_all(other) == [200, 200, 201, 200]


def test_what_is_refused_is_not_done(workspace: Workspace, rates: Any) -> None:
    rates(write=1)
    who = caller("write", workspace=workspace)
    for number in range(3):
        who.post("/episodes", {"text": f"Cup {number}."})
    assert Episode.objects.count() == 1


def test_zero_is_no_limit(workspace: Workspace, rates: Any) -> None:
    rates(recall=0)
    assert statuses(caller("read", workspace=workspace), 5) == [200] * 5


def test_calls_pass_while_the_broker_is_away(workspace: Workspace, rates: Any, settings: Settings) -> None:
    """A memory that cannot be counted is a memory all the same, and at once."""
    rates(recall=1)
    settings.BROKER_URL = "redis://127.0.0.1:9/0"
    who = caller("read", workspace=workspace)
    began = time.monotonic()
    assert statuses(who, 5) == [200] * 5
    assert time.monotonic() - began < 5


_TAKE = """
import django; django.setup()
from django.conf import settings
from memory.access import _RateCounter
counter = _RateCounter(settings.BROKER_URL.replace("redis+socket://", "unix://", 1))
print(sum(counter.take(name="{name}", per_minute=40) == 0 for _ in range(60)))
"""


def test_processes_count_together(workspace: Workspace) -> None:
    """B9: two processes get no more out of a bucket than one."""
    key = factories.key(workspace=workspace)[0]
    environment = {
        "DJANGO_SETTINGS_MODULE": "beliefsite.settings",
        "ENGRAM_DATA_DIR": str(now_settings.DATA_DIR),
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-c", _TAKE.format(name=key.hash[:16])]
    began = time.monotonic()
    running = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    granted = sum(int(process.communicate(timeout=60)[0]) for process in running)

    assert 40 <= granted <= 41 + (time.monotonic() - began) * 40 / 60


def test_counting_costs_a_recall_next_to_nothing(workspace: Workspace) -> None:
    """A count on this machine's broker takes less than a millisecond, where nothing else has the processor."""
    key = factories.key(workspace=workspace)[0]
    costs = []
    for _ in range(200):
        began = time.perf_counter()
        check_rate(key=key, usage=CallKind.RECALL)
        costs.append(time.perf_counter() - began)
    assert sorted(costs)[20] < 0.001
