"""Does the test of random orders find what the ledger once got wrong? Each fault is put back by itself, in a copy.

    python -m tests.ledger.known_faults [NUMBER …] [--orders 150]

The numbers are those of docs/quality.md. Exits 1 where fewer than seven are found.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENOUGH = 7
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".data", ".hypothesis", ".*_cache", "__pycache__")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Words of a file, and those that stood in their place."""

    path: str
    now: str
    then: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What was wrong, and how to have it again."""

    what: str
    edits: tuple[Edit, ...]


FAULTS: dict[int, Fault] = {
    1: Fault(
        what="evidence that no cycle wrote never reaches the gates",
        edits=(
            Edit(
                path="memory/consolidation/apply.py",
                now="for_workspace(cycle.workspace_id).filter(is_due=True)",
                then="for_workspace(cycle.workspace_id).filter(is_due=True, evidence__cycle=cycle).distinct()",
            ),
        ),
    ),
    2: Fault(
        what="what a cycle has read is read again where somebody has it remembered",
        edits=(
            Edit(
                path="memory/facts/remember.py",
                now="answered = None if episode.read_at else ask_for_reading(",
                then="answered = ask_for_reading(",
            ),
            Edit(
                path="memory/reading/apply.py",
                now="        return self.messages[m - 1].read_at is None\n",
                then="        return self.messages[m - 1].pk != ''\n",
            ),
        ),
    ),
    3: Fault(
        what="a cycle that gave an old belief only an echo cannot be undone",
        edits=(
            Edit(
                path="memory/consolidation/undo.py",
                now="    _check_recorded(cycle, touched.older & unknown)\n",
                then="    _check_recorded(cycle, touched.older & (unknown or touched.older))\n",
            ),
        ),
    ),
    4: Fault(
        what="undoing leaves strength and reinforcement as the cycle set them",
        edits=(
            Edit(
                path="memory/consolidation/undo.py",
                now="    unknown = stand_as_recorded(workspace=cycle.workspace, author=author)\n",
                then="    unknown = frozenset()\n",
            ),
        ),
    ),
    5: Fault(
        what="what a message ends is followed by what opens again by it only in a replay",
        edits=(
            Edit(
                path="memory/reading/apply.py",
                now="key=lambda word: (word.m, word.verdict is not BeliefWord.SUPPORTS)",
                then="key=lambda word: word.m",
            ),
        ),
    ),
    6: Fault(
        what="what takes a belief's place may double another",
        edits=(
            Edit(
                path="memory/ledger/beliefs.py",
                now="    if vector is not None:\n        check_embedding_model(",
                then="    if vector is not None and not descent:\n        check_embedding_model(",
            ),
        ),
    ),
    7: Fault(
        what="a released message keeps what its undone reading claimed",
        edits=(
            Edit(
                path="memory/consolidation/undone.py",
                now='    Claim.objects.filter(episode__in=episodes.values("pk")).delete()\n',
                then="",
            ),
        ),
    ),
    9: Fault(
        what="a summary that is remembered bears a belief out",
        edits=(
            Edit(
                path="memory/ledger/evidence.py",
                now="WHERE NOT e.is_derived AND e.status NOT IN",
                then="WHERE e.status NOT IN",
            ),
        ),
    ),
}


def main() -> int:
    """Put faults back one at a time, and say which of them are found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", type=int, nargs="*", default=list(FAULTS))
    parser.add_argument("--orders", type=int, default=150, help="random orders that are tried of each")
    asked = parser.parse_args()
    found = []
    for number in asked.numbers:
        by = find_fault(FAULTS[number], orders=asked.orders)
        found += [number] if by else []
        print(f"({number}) {FAULTS[number].what}: {by or 'NOT FOUND'}", flush=True)
    print(f"{len(found)} of {len(asked.numbers)} found")
    return 0 if len(found) >= min(ENOUGH, len(asked.numbers)) else 1


def find_fault(fault: Fault, *, orders: int) -> str:
    """Return where in the machine a fault that was put back is found, "" if it is not."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_LEFT_OUT)
        for edit in fault.edits:
            file = copy / edit.path
            file.write_text(put_back(edit, file.read_text()))
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--show-capture=no", "-p", "no:cacheprovider"]
        command += ["--timeout=0"]  # orders without a fault take longer than a test may
        told = {"ENGRAM_DATA_DIR": f"{folder}/data", "ENGRAM_TEST_ORDERS": str(orders)}
        ran = subprocess.run(
            [*command, "tests/ledger/test_anything.py", "-k", "whatever_order"],
            cwd=copy,
            env=os.environ | told,
            capture_output=True,
            text=True,
            check=False,
        )
    if ran.returncode not in (0, 1):
        raise RuntimeError(ran.stdout[-2000:] + ran.stderr[-2000:])
    at = [line for line in ran.stdout.splitlines() if line.startswith("tests/ledger/anything.py:")]
    return at[-1].rpartition(" in ")[2] if ran.returncode else ""


def put_back(edit: Edit, text: str) -> str:
    """Return a file's text with what once stood in it; raise ValueError where the words of now are not there once."""
    if text.count(edit.now) != 1:
        raise ValueError(f"{edit.path} has {text.count(edit.now)} times: {edit.now}")
    return text.replace(edit.now, edit.then)


if __name__ == "__main__":
    sys.exit(main())
