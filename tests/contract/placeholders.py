"""What differs on every run, under names that do not: the first episode that a scene meets is `ep#1`, and so on.

An id has one name throughout a scene, so that it is seen whether answers speak of the same thing. Requests name what
earlier answers told in the same way: `GET /memories/ep#1`. `ep#1:6` is the beginning of an id, six digits of it.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memory import VERSION

_ID = re.compile(r"\b(ep|bl|cy|tn)_[0-9a-f]{12}\b")
_NAME = re.compile(r"\b(ep|bl|cy|tn|pair|cursor)#(\d+)(?::(\d+))?")
_CURSOR = re.compile(r"(?<=[?&]cursor=)[^&]+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_PAIR = re.compile(r"(?<=pair of beliefs )\d+")
_SECONDS = re.compile(r"come back in [\d.]+ s")
_VECTOR = re.compile(r"[A-Za-z0-9+/=]{200,}")  # an export's vectors and keys, which hang on the processor or on chance
# What Python calls a status: since 3.13 by the names of RFC 9110.
_TITLES = {"Content Too Large": "Request Entity Too Large", "Unprocessable Content": "Unprocessable Entity"}
_MEASURED = {"per_minute"}  # by the wall's clock
_PREFIX_LENGTH = len("ep_")


class Placeholders:
    """The names of one scene; `began` is when it was begun by the clock on the wall, `literal` what nobody drew."""

    def __init__(self, *, began: datetime, literal: Iterable[str] = ()) -> None:
        self._began, self._literal = began, frozenset(literal)
        self._named: dict[tuple[str, str], str] = {}
        self._shortened: dict[str, str] = {}

    def hide(self, value: Any, *, name: str = "") -> Any:
        """Return an answer with names in the place of what differs on every run."""
        if isinstance(value, dict):
            return {self._hide_text(key): self.hide(item, name=key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.hide(item) for item in value]
        if isinstance(value, str):
            if name == "version":
                return hide_release(value)
            return _title(value) if name == "title" else self._hide_text(value)
        if isinstance(value, float) and name in _MEASURED:
            return "<measured>"
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return self._name("pair", str(value)) if is_number and name == "id" else value

    def reveal(self, value: Any) -> Any:
        """Return a request with what its names stand for."""
        if isinstance(value, dict):
            return {self.reveal(key): self.reveal(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.reveal(item) for item in value]
        return _NAME.sub(self._meant, value) if isinstance(value, str) else value

    def _hide_text(self, text: str) -> str:
        for short, name in self._shortened.items():
            text = re.sub(rf"\b{short}\b", name, text)
        text = _CURSOR.sub(lambda found: self._name("cursor", found[0]), text)
        text = _ID.sub(lambda found: self._name(found[1], found[0]), text)
        text = _PAIR.sub(lambda found: self._name("pair", found[0]), text)
        text = _TIME.sub(lambda found: self._hide_time(found[0]), text)
        text = _SECONDS.sub("come back in <seconds> s", text)
        return _VECTOR.sub("<bytes>", text)

    def _hide_time(self, text: str) -> str:
        """Leave times of the scene as they are; those that come of the wall's clock are not told."""
        return text if datetime.fromisoformat(text) < self._began else "<wall clock>"

    def _name(self, kind: str, value: str) -> str:
        if value in self._literal:
            return value
        number = 1 + sum(known == kind for known, _ in self._named)
        return self._named.setdefault((kind, value), f"{kind}#{number}")

    def _meant(self, name: re.Match[str]) -> str:
        kind, number, digits = name.groups()
        found = [value for (known, value), held in self._named.items() if held == f"{kind}#{number}"]
        if not found:
            raise LookupError(f"No answer so far told of {kind}#{number}.")
        if digits is None:
            return found[0]
        short = found[0][: _PREFIX_LENGTH + int(digits)]
        self._shortened[short] = name[0]
        return short


def hide_release(version: str) -> str:
    """Return a name for this release, which changes nothing else that is recorded."""
    return "<release>" if version == VERSION else version


def literal_ids(text: str) -> set[str]:
    """Return the ids that a scene's requests spell out: of things that are not there."""
    return {found[0] for found in _ID.finditer(text)}


def with_old_titles(value: Any) -> Any:
    """Return a document with what Python called each status before 3.13."""
    if isinstance(value, dict):
        return {name: _title(item) if name == "title" else with_old_titles(item) for name, item in value.items()}
    return [with_old_titles(item) for item in value] if isinstance(value, list) else value


def _title(text: Any) -> Any:
    return _TITLES.get(text, text) if isinstance(text, str) else with_old_titles(text)
