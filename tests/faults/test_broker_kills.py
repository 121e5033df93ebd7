"""The broker dies again and again under `manage.py up`; nobody does anything, and the stack works on."""

import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.faults.conftest import TIMEOUTS
from tests.faults.record import FaultRecord
from tests.faults.stack import Stack, await_ready, running_stack
from tests.faults.waiting import wait_until

KILLS = 4
WITHIN_SECONDS = 10.0
MATTER = ["I use tabs, never spaces.", "Tabs for me, as ever.", "My flat is on the second floor."]


@pytest.mark.slow
def test_the_stack_outlives_four_kills_of_its_broker_in_ten_seconds(tmp_path: Path, record: FaultRecord) -> None:
    """B8: a cycle that was opened meanwhile ends, and so does one that begins afterwards."""
    with running_stack(tmp_path, **TIMEOUTS) as stack:
        await_ready(stack)
        with httpx.Client(base_url=f"{stack.address}/api/v1", headers=_owner(stack), timeout=30) as api:
            _tell(api, MATTER)
            began = time.monotonic()
            killed = [_kill_broker(stack, at=began + number * WITHIN_SECONDS / KILLS) for number in range(KILLS - 1)]
            meanwhile = _open_cycle(api)
            killed.append(_kill_broker(stack, at=began + WITHIN_SECONDS * (KILLS - 1) / KILLS))
            record.strike("embedded broker killed four times in ten seconds under `make up`")
            assert time.monotonic() - began < WITHIN_SECONDS
            assert len(set(killed)) == KILLS  # each time another process: somebody had started it again

            await_ready(stack)
            first = _await_end(api, meanwhile)
            record.recover("ready again; the cycle opened meanwhile has ended")
            _tell(api, ["I moved, my flat is on the fifth floor now."])
            second = _await_end(api, _open_cycle(api))
            beliefs = api.get("/beliefs").raise_for_status().json()["results"]

    assert first["state"] == second["state"] == "finished"
    assert first["counts"]["created"] >= 1
    assert "fifth floor" in "".join(belief["statement"] for belief in beliefs if belief["status"] == "active")


def _owner(stack: Stack) -> dict[str, str]:
    key = stack.manage("create_api_key", "default", "--permissions", "owner").splitlines()[-1]
    return {"Authorization": f"Bearer {key}"}


def _tell(api: httpx.Client, texts: list[str]) -> None:
    episodes = [{"text": text, "session": text, "user": "Mara", "source": "human"} for text in texts]
    api.post("/episodes", json={"episodes": episodes}).raise_for_status()


def _open_cycle(api: httpx.Client) -> str:
    opened: str = api.post("/consolidations", json={}).raise_for_status().json()["id"]
    return opened


def _await_end(api: httpx.Client, cycle: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def has_ended() -> bool:
        seen.update(api.get(f"/consolidations/{cycle}").raise_for_status().json())
        return seen["state"] not in {"queued", "running"}

    wait_until(has_ended, what=f"{cycle} to end", every=0.3)
    return seen


def _kill_broker(stack: Stack, *, at: float) -> psutil.Process:
    """Kill the broker at a reading of the clock, as soon as there is one; return what was killed."""
    time.sleep(max(at - time.monotonic(), 0.0))
    wait_until(lambda: stack.broker() is not None, what="a broker to kill", seconds=WITHIN_SECONDS)
    broker = stack.broker()
    assert broker is not None
    broker.kill()
    return broker
