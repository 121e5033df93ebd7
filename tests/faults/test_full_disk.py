"""A disk that is full takes the database down and refuses requests; once there is room, all is well by itself."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import psutil
import pytest

from tests.faults.stack import Stack, running_stack
from tests.faults.waiting import wait_until

MEGABYTE = 2**20
DISK_MEGABYTES = 256
PATIENCE_SECONDS = 240.0  # a machine that runs a whole suite beside it is slow to start one
POSTS = 20
DOWN_SECONDS = 5.0
PROGRAMS = ("gunicorn", " worker ", " beat ", " flower ", "uvicorn", "beliefsite.embedded")


def test_all_comes_back_by_itself_once_a_full_disk_has_room(tmp_path: Path) -> None:
    disk = tmp_path / "data"
    disk.mkdir()
    with running_stack(tmp_path, within=on_a_small_disk(disk)) as stack:
        wait_until(stack.is_ready, what="the stack to be ready", seconds=PATIENCE_SECONDS, every=1.0)
        key = _first_key(tmp_path)
        filler = Path(f"/proc/{stack.process.pid}/root{disk}/filler")
        with httpx.Client(base_url=stack.address, headers={"Authorization": f"Bearer {key}"}, timeout=60) as web:
            kept = _post(web, 0)
            fill(filler)
            kept += sum(_post(web, number) for number in range(1, POSTS))
            kill_database(stack)
            time.sleep(DOWN_SECONDS)
            assert "database" in web.get("/readyz").json()["detail"], "it was started on a disk without room"
            assert _post(web, POSTS) == 0

            filler.unlink()
            wait_until(stack.is_ready, what="the stack to be ready again", seconds=PATIENCE_SECONDS, every=1.0)

            assert _post(web, POSTS + 1) == 1
            assert web.get("/api/v1/status").json()["episodes"]["active"] == kept + 1
            wait_until(lambda: not _missing(stack), what="every process to run")


def on_a_small_disk(folder: Path) -> Sequence[str]:
    """Return the words that run a command on a disk of its own, without any right beyond ours; skip where none do."""
    mount = f'mount -t tmpfs -o size={DISK_MEGABYTES}m,mode=700 tmpfs {folder} && exec "$@"'
    outer = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    inner = ["unshare", "--user", "--map-user=65534", "--map-group=65534"]  # whom PostgreSQL does not take for root
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare (util-linux), which makes a small disk without root's rights")
    tried = subprocess.run([*outer, *inner, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"this machine lets nobody make a small disk of their own: {tried.stderr.strip()}")
    return [*outer, *inner]


def fill(filler: Path) -> None:
    """Leave not a byte."""
    with filler.open("wb", buffering=0) as file:
        for size in (MEGABYTE, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
        os.fsync(file.fileno())


def kill_database(stack: Stack) -> None:
    """Crash the database: what it has to write before it can answer again has no room."""
    for process in stack.servers():
        if "postgres" in process.name():
            process.kill()


def _post(web: httpx.Client, number: int) -> int:
    """Store an episode, or be told to come back, and never that something is broken; return how many were stored."""
    response = web.post("/api/v1/episodes", json={"text": f"Number {number}: {os.urandom(15_000).hex()}"})
    assert response.status_code in (201, 503), response.text
    assert response.status_code == 201 or 1 <= int(response.headers["Retry-After"]) <= 60
    return int(response.status_code == 201)


def _first_key(folder: Path) -> str:
    """Read the key that `up` shows once, when everything has answered it, too."""
    log = folder / "up.log"
    wait_until(lambda: "API key" in log.read_text(), what="the first key", seconds=PATIENCE_SECONDS, every=1.0)
    return str(re.findall(r"API key +(engram_\S+)", log.read_text())[0])


def _missing(stack: Stack) -> list[str]:
    """Name the processes of the stack that do not run."""
    commands = [" ".join(process.cmdline()) for process in stack.family() if psutil.pid_exists(process.pid)]
    return [program for program in PROGRAMS if not any(program in command for command in commands)]
