"""Run the whole suite in four parts at once: what waits for processes leaves time for what computes.

    python -m tests

Each has a database and a broker of its own. What the others say is shown after what the first says. Exits with the
first status that is not 0.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
# Of about the same length each where all four share two processors; what none of them names is the first's.
PARTS: dict[str, Sequence[str]] = {
    "faults": ["tests/faults", "tests/consolidation/test_evil_servers.py"],
    "stacks": ["tests/docs", "tests/workers", "tests/beliefsite", "tests/integrations", "tests/models", "tests/mcp"],
    "cycles": ["tests/consolidation"],
}


def main() -> int:
    """Run all parts, print what each says, and return the exit status."""
    with ExitStack() as running:
        told = {name: running.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for name in PARTS}
        started = {name: _start(name, told[name]) for name in PARTS}
        for process in started.values():
            running.callback(_end, process)
        statuses = [subprocess.run(_pytest(), cwd=ROOT, check=False).returncode]
        for name, process in started.items():
            statuses.append(process.wait())
            told[name].seek(0)
            sys.stdout.write(f"\n{'=' * 30} {name} {'=' * 30}\n{told[name].read()}")
    return next(filter(None, statuses), 0)


def _pytest(name: str = "") -> list[str]:
    """Return what runs a part: its tests but for those that another names, all others where it has no name."""
    elsewhere = [tests for other, named in PARTS.items() if other != name for tests in named]
    return [sys.executable, "-m", "pytest", *PARTS.get(name, ()), *(f"--ignore={tests}" for tests in elsewhere)]


def _start(name: str, told: IO[str]) -> subprocess.Popen[str]:
    environment = os.environ | {"ENGRAM_DATA_DIR": str(ROOT / ".data" / f"test-{name}")}
    return subprocess.Popen(_pytest(name), cwd=ROOT, env=environment, stdout=told, stderr=subprocess.STDOUT, text=True)


def _end(process: subprocess.Popen[str]) -> None:
    """Ask what still runs to clean up after itself, as Ctrl-C would."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
