"""Run the whole suite in two halves at once: the tests that mostly wait for processes or the database, and the others.

    python -m tests

Both have a database and a broker of their own. What the first says is shown at the end. Exits with the first status
that is not 0.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("tests/faults", "tests/docs", "tests/workers")


def main() -> int:
    """Run both, print both, and return the exit status."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as told:
        beside = _start(*BESIDE, data=ROOT / ".data" / "test-beside", told=told)
        try:
            others = _pytest(*(f"--ignore={tests}" for tests in BESIDE))
            status = subprocess.run(others, cwd=ROOT, check=False).returncode
            status_beside = beside.wait()
        finally:
            _end(beside)
        told.seek(0)
        sys.stdout.write(told.read())
    return status or status_beside


def _pytest(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", *arguments]


def _start(*tests: str, data: Path, told: IO[str]) -> subprocess.Popen[str]:
    environment = os.environ | {"ENGRAM_DATA_DIR": str(data)}
    command = _pytest(*tests)
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=told, stderr=subprocess.STDOUT, text=True)


def _end(process: subprocess.Popen[str]) -> None:
    """Ask what still runs to clean up after itself, as Ctrl-C would."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
