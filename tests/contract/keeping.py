"""Recorded files: compared with what is there now, in words that name the place, or written anew to record."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded"
SCENES = FOLDER / "scenes"

_MOST_LINES = 60
_WHAT_TO_DO = (
    "This is what others rely on. If the difference is meant, record it (python -m tests.contract), look through "
    "git diff tests/contract, and say in CHANGELOG.md what it means for those who call."
)

# Likenesses and what is made of them: another processor may round the last of their four digits otherwise.
_OF_VECTORS = {"score", "similarity", "surprise", "distance", "vector"}
_WITHIN_VECTORS = ("components", "channels")
_LOOSE, _STRICT = 0.0011, 1e-6
_LABEL = "request"  # an entry that has one is named by it
_LONGEST = 300


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


def differences(recorded: Any, present: Any, place: str = "") -> list[str]:
    """List what of a document is no longer as it was recorded; empty: nothing."""
    return list(_between(recorded, present, place))


def _between(recorded: Any, present: Any, place: str) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(present, dict):
        yield from _between_objects(recorded, present, place)
    elif isinstance(recorded, list) and isinstance(present, list):
        yield from _between_lists(recorded, present, place)
    elif not _is_same(recorded, present, place):
        yield f"{place or 'all'}: recorded {_shown(recorded)}, now {_shown(present)}"


def _between_objects(recorded: dict[str, Any], present: dict[str, Any], place: str) -> Iterator[str]:
    inside = _named(recorded) or place
    for name in sorted(recorded.keys() | present.keys()):
        where = f"{inside}.{name}" if inside else name
        if name not in present:
            yield f"{where}: recorded {_shown(recorded[name])}, now missing"
        elif name not in recorded:
            yield f"{where}: not recorded, now {_shown(present[name])}"
        else:
            yield from _between(recorded[name], present[name], where)


def _between_lists(recorded: list[Any], present: list[Any], place: str) -> Iterator[str]:
    for index, (old, new) in enumerate(zip(recorded, present, strict=False)):
        yield from _between(old, new, f"{place}[{index}]")
    for index, old in enumerate(recorded[len(present) :], len(present)):
        yield f"{place}[{index}]: recorded {_shown(old)}, now missing"
    for index, new in enumerate(present[len(recorded) :], len(recorded)):
        yield f"{place}[{index}]: not recorded, now {_shown(new)}"


def _named(recorded: dict[str, Any]) -> str:
    """Name an entry by the request that it answers."""
    label = recorded.get(_LABEL)
    return label if isinstance(label, str) and "status" in recorded else ""


def _is_same(recorded: Any, present: Any, place: str) -> bool:
    """Tell whether two values are one: numbers of one kind within what rounding may do, all else exactly."""
    if type(recorded) is not type(present):
        return False
    if isinstance(recorded, float):
        return math.isclose(recorded, present, rel_tol=0.0, abs_tol=_tolerance(place))
    return bool(recorded == present)


def _tolerance(place: str) -> float:
    words = place.replace("[", ".").split(".")
    is_loose = words[-1] in _OF_VECTORS or any(word in _WITHIN_VECTORS for word in words)
    return _LOOSE if is_loose else _STRICT


def _shown(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
