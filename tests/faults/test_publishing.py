"""P11: what somebody takes away is gone from the agent's file within seconds, whatever happens to the worker."""

import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.faults.record import FaultRecord
from tests.faults.stack import Stack, await_ready, running_stack
from tests.faults.waiting import wait_until

MINE = "# My notes\n"
KEPT = (
    "I drink green tea.", "My manager is Dana.", "We deploy on Tuesdays.", "I live in Leeds.", "My sister is Ina.",
)  # fmt: skip
SAID_TIMES = 4
SOON_SECONDS, AFTER_A_KILL_SECONDS = 5.0, 30.0


@pytest.mark.slow
def test_what_is_forgotten_leaves_the_file_in_seconds_with_the_worker_killed_too(
    tmp_path: Path, record: FaultRecord
) -> None:
    file = tmp_path / "agent" / "MEMORY.md"
    file.parent.mkdir()
    file.write_text(MINE)
    with running_stack(tmp_path, ENGRAM_MEMORY_MD_ROOTS=str(file.parent)) as stack:
        await_ready(stack)
        with httpx.Client(base_url=f"{stack.address}/api/v1", headers=_owner(stack), timeout=30) as api:
            for number in range(SAID_TIMES):
                for text in KEPT:
                    said = {"text": text, "session": f"session {number}", "user": "mia"}
                    api.post("/remember", json=said).raise_for_status()
            stack.manage("write_memory_md", "--workspace", "default", "--enable", "--user", "mia", "--path", str(file))
            # A worker reads what `remember` stored: the last of it may be published after the command has returned.
            last = f"evidence: {SAID_TIMES})"
            wait_until(lambda: file.read_text().count(last) == len(KEPT), what="all that was said to be published")
            beliefs = api.get("/beliefs", params={"user": "mia"}).raise_for_status().json()["results"]
            told = {belief["id"]: belief["statement"] for belief in beliefs if belief["statement"] in file.read_text()}

            (first, said), (second, of_it), (third, wrong), (fourth, erased), _ = told.items()
            assert _take(api, "DELETE", f"/memories/{first}", said, file) < SOON_SECONDS
            no = {"reason": "It was never so."}
            assert _take(api, "POST", f"/beliefs/{third}/correct", wrong, file, json=no) < SOON_SECONDS
            assert _take(api, "DELETE", f"/memories/{fourth}?erase=true", erased, file) < SOON_SECONDS
            found = subprocess.run(["grep", "-rl", erased, str(file.parent)], capture_output=True, check=False)
            assert (found.returncode, found.stdout) == (1, b"")

            record.strike("the worker killed while files are published")
            for process in _workers(stack):
                process.kill()
            taken = _take(api, "DELETE", f"/memories/{second}", of_it, file)
            record.recover(f"a forgotten belief was gone from the file after {taken:.0f} s")
            assert taken < AFTER_A_KILL_SECONDS
    assert file.read_text().endswith(MINE)
    assert file.read_text().count("confidence:") == 1


def _owner(stack: Stack) -> dict[str, str]:
    key = stack.manage("create_api_key", "default", "--permissions", "owner").splitlines()[-1]
    return {"Authorization": f"Bearer {key}"}


def _take(api: httpx.Client, method: str, address: str, statement: str, file: Path, **more: Any) -> float:
    """Take a belief away; return the seconds until the file tells nothing of it."""
    began = time.monotonic()
    api.request(method, address, **more).raise_for_status()
    wait_until(lambda: statement not in file.read_text(), what=f"{statement} to be gone", seconds=60.0, every=0.1)
    return time.monotonic() - began


def _workers(stack: Stack) -> list[psutil.Process]:
    return [process for process in stack.family() if " worker " in " ".join(process.cmdline())]
