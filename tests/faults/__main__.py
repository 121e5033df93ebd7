"""Run the fault suite several times at the time-outs of production, print what came of each fault, and keep it.

    python -m tests.faults [--rounds 3] [--page docs/faults.md]

Each round runs in an order of its own. The page is written only when every test of every round has passed. Exits 1
otherwise.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.record import LOG_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "faults.md"
_HEAD = """\
# Faults

What was done to running processes, what came of it, and how many seconds after the fault all was well again: median
and worst of {rounds} in random order, at the time-outs of production. `make faults` runs the suite and writes this
page; the suite itself is `tests/faults`. In the cycle that the faults befall one belief is founded, two gain evidence,
one is revised, one split, and two are merged; *restructure* names the phase of these changes. After each fault the test
asserts that the cycle ended, or a later one took up its work, that every belief is what it would have been without the
fault, that α and β equal the evidence, that each change was made once, that no episode was lost or counted twice, and
how many calls were made. With a lease of 20 s and a sweep every 10 s, work whose process died without a word is taken
up within half a minute; the rest of a recovery is the work itself, and waiting for a new process to start.
Conversations that are read, and texts that are remembered at once, have faults of their own: each is stored and
counted once.

What a model server does to a single call, on the wire, in its status, in its JSON, is not in the table: a suite of its
own, `tests/consolidation/test_evil_servers.py`, runs cycles and recalls against more than a hundred modes of an evil
one. After each mode no call is left open, the cycle has ended, little memory was taken, no more was read of an answer
than may be, and the next cycle makes of the episodes what it would have made of them at once.

Nothing is published yet: what a full disk does to a published file is not in the table, and comes with publishing.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What all rounds saw of one fault; `happened` lists what differed between them."""

    name: str
    happened: str
    seconds: Sequence[float]

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Return its row of the table."""
        median = f"{statistics.median(self.seconds):.1f}"
        return self.name, self.happened, median, f"{max(self.seconds):.1f}"


def main() -> int:
    """Run the rounds, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table is kept")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "faults.jsonl"
        failed = sum(run_round(log=log) != 0 for _ in range(asked.rounds))
        faults = read_log(log=log)
    table = render_table(faults=faults)
    print(table)  # noqa: T201  (what the command is for)
    if failed:
        print(f"{failed} of {asked.rounds} rounds failed")  # noqa: T201
        return 1
    asked.page.write_text(_HEAD.format(rounds=name_rounds(asked.rounds)) + table, encoding="utf-8")
    return 0


def name_rounds(count: int) -> str:
    """Spell how many rounds there were."""
    return "one round" if count == 1 else f"{count} rounds"


def run_round(*, log: Path) -> int:
    """Run the suite once, in an order that is printed and can be repeated; return pytest's status."""
    seed = random.SystemRandom().randrange(2**32)
    command = [sys.executable, "-m", "pytest", "tests/faults", f"--randomly-seed={seed}"]
    environment: Mapping[str, str] = os.environ | {"ENGRAM_REAL_TIMEOUTS": "1", LOG_VARIABLE: str(log)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def read_log(*, log: Path) -> list[Fault]:
    """Read what the rounds wrote down, by fault, in the order of their names."""
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    by_fault: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        by_fault[row["fault"]].append(row)
    return [_gather(name, by_fault[name]) for name in sorted(by_fault)]


def _gather(name: str, rows: Sequence[Mapping[str, str]]) -> Fault:
    happened = list(dict.fromkeys(row["happened"] for row in rows))
    return Fault(name=name, happened=", or ".join(happened), seconds=[float(row["seconds"]) for row in rows])


def render_table(*, faults: Sequence[Fault]) -> str:
    """Render the faults as a table in Markdown."""
    lines = ["| fault | what happened | median, s | worst, s |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(fault.cells)} |" for fault in faults]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
