"""Run every benchmark, one after the other, print what each prints, and say which bars were missed.

    python -m benchmarks [--json FILE] [--conversations "FILE…"] [NAME …]

What consolidation costs, and what is read out of turns, is measured only where conversations are given, as files of
episode lines. Each runs in a process of its own. Exits 1 when a bar was missed or a benchmark failed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

NAMES = (
    "clustering",
    "cycle_overhead",
    "worker_memory",
    "recall",
    "recall_load",
    "turns",
    "hook",
    "strength",
    "ingest",
    "bulk",
    "backlog",
    "pairs",
)
OF_CONVERSATIONS = ("quality.cost", "quality.turns")
DEFAULT_JSON = Path(__file__).resolve().parent.parent / ".data" / "bench" / "results.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one benchmark came to; `figures` is what it wrote itself."""

    name: str
    status: int
    seconds: float
    figures: Any


def main() -> int:
    """Run, print a table, write the figures, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(NAMES)}; all unless named")
    parser.add_argument("--conversations", default="", help="files of episode lines, with spaces between them")
    parser.add_argument("--json", type=Path, default=DEFAULT_JSON, help="where the figures go")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    results = [run(name=name) for name in asked.names or NAMES]
    if files := asked.conversations.split():
        results += [run(name=name, files=files) for name in OF_CONVERSATIONS]
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps([asdict(result) for result in results], indent=2))
    print_table(results=results)
    print(f"figures in {asked.json}")
    return 0 if all(result.status == 0 for result in results) else 1


def run(*, name: str, files: Sequence[str] = ()) -> Result:
    """Run one benchmark in a process of its own, its output shown as it comes."""
    print(f"--- {name}", flush=True)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        status = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *files, "--json", str(path)]).returncode
        figures = json.loads(path.read_text()) if path.exists() else None
    return Result(name=name, status=status, seconds=time.monotonic() - began, figures=figures)


def print_table(*, results: list[Result]) -> None:
    """Print one line a benchmark."""
    print(f"\n{'benchmark':<18}{'seconds':>8}  outcome")
    for result in results:
        outcome = "kept" if result.status == 0 else "failed" if result.figures is None else "MISSED"
        print(f"{result.name:<18}{result.seconds:>8.0f}  {outcome}")


if __name__ == "__main__":
    sys.exit(main())
