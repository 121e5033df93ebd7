"""The life that the demo tells, and the message in it that announces a change."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import memory

_LIFE = Path(memory.__file__).with_name("samples") / "lives" / "retired-bookbinder.json"
_CHANGE_AT = "2026-03-12T09:20:00+00:00"  # her choir meets on another evening from now on
_SOURCES = {"user": "human", "assistant": "ai"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What somebody and an assistant said to each other, in the order of time."""

    user: str
    messages: tuple[Mapping[str, str], ...]
    change: Mapping[str, str]  # the message that announces it

    @property
    def changed_at(self) -> datetime:
        """Return when the change was announced."""
        return datetime.fromisoformat(self.change["occurred_at"])

    def to_lines(self) -> str:
        """Write all messages as lines of a file to import."""
        return "".join(f"{json.dumps(self._to_episode(message))}\n" for message in self.messages)

    def _to_episode(self, message: Mapping[str, str]) -> dict[str, str]:
        told = {name: message[name] for name in ("text", "session", "occurred_at")}
        return {**told, "user": self.user, "source": _SOURCES[message["role"]]}


def read_life() -> Life:
    """Read the life that the demo tells."""
    told = json.loads(_LIFE.read_text(encoding="utf-8"))
    messages = tuple(told["episodes"])
    change = next(message for message in messages if message["occurred_at"] == _CHANGE_AT)
    return Life(user=told["user"], messages=messages, change=change)
