"""What waits in the broker's queues."""

import base64
import json
from dataclasses import dataclass
from typing import Any

from tests.faults.windows import broker

QUEUES = ("consolidation", "llm", "maintenance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A task as it was sent: its name, its arguments, what people see of them, and what is to be sent after it."""

    task: str
    about: str
    arguments: list[Any]
    content_type: str
    followed_by: list[dict[str, Any]]


def read_messages(queue: str) -> list[Message]:
    """Read the messages of a queue without taking them, oldest first."""
    with broker() as client:
        return [_read(json.loads(raw)) for raw in reversed(client.lrange(queue, 0, -1))]


def _read(raw: dict[str, Any]) -> Message:
    arguments, _, embedded = json.loads(base64.b64decode(raw["body"]))
    return Message(
        task=raw["headers"]["task"],
        about=raw["headers"]["argsrepr"],
        arguments=arguments,
        content_type=raw["content-type"],
        followed_by=embedded["chain"] or [],
    )
