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
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
# What waits, what starts processes, what runs cycles; the first has what none of them names.
PARTS: dict[str, Sequence[str]] = {
    "faults": ["tests/faults", "tests/consolidation/test_evil_servers.py"],
    "stacks": ["tests/docs", "tests/workers", "tests/beliefsite", "tests/integrations", "tests/models", "tests/mcp"],
    "cycles": ["tests/consolidation"],
}
_ENDING_SECONDS = 20


def main() -> int:
    """Run all parts, print what each says, and return the exit status."""
    with ExitStack() as kept:
        told = {name: kept.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for name in PARTS}
        parts = [_start("", None), *(_start(name, told[name]) for name in PARTS)]
        kept.callback(_end, parts)
        statuses = [parts[0].wait()]
        for part, name in zip(parts[1:], PARTS, strict=True):
            statuses.append(part.wait())
            told[name].seek(0)
            sys.stdout.write(f"\n{'=' * 30} {name} {'=' * 30}\n{told[name].read()}")
    return next(filter(None, statuses), 0)


def _pytest(name: str = "") -> list[str]:
    """Return what runs a part: its tests but for those that another names, all others where it has no name."""
    elsewhere = [tests for other, named in PARTS.items() if other != name for tests in named]
    return [sys.executable, "-m", "pytest", *PARTS.get(name, ()), *(f"--ignore={tests}" for tests in elsewhere)]


def _start(name: str, told: IO[str] | None) -> subprocess.Popen[str]:
    environment = os.environ | ({"ENGRAM_DATA_DIR": str(ROOT / ".data" / f"test-{name}")} if name else {})
    return subprocess.Popen(_pytest(name), cwd=ROOT, env=environment, stdout=told, stderr=told, text=True)


def _end(parts: Sequence[subprocess.Popen[str]]) -> None:
    """Ask what still runs to clean up after itself, as Ctrl-C would; what took it for a test's error is asked again."""
    while running := [part for part in parts if part.poll() is None]:
        for part in running:
            part.send_signal(signal.SIGINT)
        for part in running:
            with suppress(subprocess.TimeoutExpired):
                part.wait(timeout=_ENDING_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
