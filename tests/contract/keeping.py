"""Recorded files: read and compared, or written anew where the suite runs to record."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.comparing import differences

FOLDER = Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded"
SCENES = FOLDER / "scenes"

_MOST_LINES = 60
_WHAT_TO_DO = (
    "This is what others rely on. If the difference is meant, record it (python -m tests.contract), look through "
    "git diff tests/contract, and say in CHANGELOG.md what it means for those who call."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Holds what is there now against what was recorded, or records it."""

    is_recording: bool = False
    is_recording_files: bool = False  # those that later releases must be able to read, too

    def keep(self, file: Path, present: Any) -> None:
        """Compare a document with its file; fail with a line for each difference."""
        now = json.loads(as_text(present))
        if self.is_recording:
            file.write_text(as_text(now), encoding="utf-8")
            return
        if not file.exists():
            pytest.fail(f"{file.relative_to(FOLDER)} was never recorded. {_WHAT_TO_DO}", pytrace=False)
        found = differences(json.loads(file.read_text(encoding="utf-8")), now)
        if found:
            pytest.fail(f"{file.relative_to(FOLDER)}\n{told(found)}\n{_WHAT_TO_DO}", pytrace=False)


def told(found: list[str]) -> str:
    """Return differences as lines, the first of them where there are many."""
    more = [f"  … and {len(found) - _MOST_LINES} more"] if len(found) > _MOST_LINES else []
    return "\n".join([*(f"  {line}" for line in found[:_MOST_LINES]), *more])


def as_text(document: Any) -> str:
    """Return a document as it stands in a file: for people to read, with its keys in order."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, default=str) + "\n"
