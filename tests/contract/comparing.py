"""What differs between two documents, in words that name the place."""

import json
import math
from collections.abc import Iterator
from typing import Any

# Likenesses and what is made of them: another processor may round the last of their four digits otherwise.
_OF_VECTORS = {"score", "similarity", "surprise", "distance", "weight", "vector", "text"}
_WITHIN_VECTORS = ("components", "channels")
_LOOSE, _STRICT = 0.0011, 1e-6
_LABEL = "request"  # an entry that has one is named by it
_LONGEST = 300


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
