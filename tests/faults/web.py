"""The web process as the Procfile has it, on the suite's own database and broker."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
from django.conf import settings

from tests.faults.stack import free_ports
from tests.faults.waiting import wait_until


@contextmanager
def served(*, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run gunicorn until the body ends; yield its address."""
    [port] = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "gunicorn", "beliefsite.wsgi", "--bind", f"127.0.0.1:{port}", "--threads", "4"]
    with (folder / "web.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--no-control-socket"], cwd=settings.BASE_DIR, env=dict(environment), stdout=log, stderr=log
        )
    try:
        wait_until(lambda: _answers(address), what="the web process to answer", every=0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", timeout=10).is_success
    except httpx.TransportError:
        return False
