"""Conversations as ChatGPT exports them: each is a tree of messages, of which the branch last shown is read."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memory.ingest.importers.found import Found, LeftOut, Reason, Unreadable, found_turn

_SPOKEN = frozenset({"text", "multimodal_text"})
_LEFT_OUT = {"tool": Reason.TOOL, "system": Reason.SYSTEM}
_NOT_SAID = {"thoughts": Reason.THOUGHT, "reasoning_recap": Reason.THOUGHT, "code": Reason.TOOL}


def is_chatgpt(conversation: object) -> bool:
    """Tell whether a conversation has the form of this export."""
    return isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict)


def read_chatgpt(*, conversation: Mapping[str, Any], place: str) -> Iterator[Found]:
    """Read one conversation, from its beginning to the message last shown."""
    nodes = conversation["mapping"]
    session = conversation.get("conversation_id") or conversation.get("id")
    path = _path_to(conversation.get("current_node"), nodes)
    if not isinstance(session, str) or not path:
        yield Unreadable(place=place)
        return
    for key in path:
        if message := nodes[key].get("message"):
            yield from _read_message(message, session=session, place=f"{place}, message {key}")
    on_path = set(path)
    for key, node in nodes.items():
        if key not in on_path and isinstance(node, dict) and node.get("message"):
            yield LeftOut(reason=Reason.OTHER_BRANCH)


def _path_to(last: object, nodes: Mapping[str, Any]) -> list[str]:
    """List the keys from the root to a node; of a tree that leads in a circle, none."""
    path: list[str] = []
    key = last
    while isinstance(key, str) and isinstance(nodes.get(key), dict):
        if len(path) > len(nodes):
            return []
        path.append(key)
        key = nodes[key].get("parent")
    return path[::-1]


def _read_message(message: Mapping[str, Any], *, session: str, place: str) -> Iterator[Found]:
    role = _object(message, "author").get("role")
    if reason := _why_not_said(message, str(role)):
        yield LeftOut(reason=reason)
    elif role not in ("user", "assistant") or not isinstance(message.get("id"), str):
        yield Unreadable(place=place)
    else:
        told = _object(message, "content").get("parts")
        parts = told if isinstance(told, list) else []
        text = "\n".join(part for part in parts if isinstance(part, str))
        attached = _attached_to(message, parts)
        yield from (LeftOut(reason=Reason.ATTACHMENT) for _ in range(attached))
        if attached and not text.strip():
            return
        yield found_turn(
            place=place,
            session=session,
            role=role,
            text=text,
            turn_id=message["id"],
            occurred_at=_time(message.get("create_time")),
        )


def _object(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return what a message has by a name, if that is an object; what has another form is as good as missing."""
    found = message.get(name)
    return found if isinstance(found, dict) else {}


def _why_not_said(message: Mapping[str, Any], role: str) -> Reason | None:
    """Name why a message is nothing that person and model said to each other; None for one that is."""
    metadata = _object(message, "metadata")
    kind = str(_object(message, "content").get("content_type"))
    if reason := _LEFT_OUT.get(role) or _NOT_SAID.get(kind):
        return reason
    if message.get("recipient", "all") != "all":
        return Reason.TOOL
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or kind not in _SPOKEN
    return Reason.HIDDEN if is_hidden else None


def _attached_to(message: Mapping[str, Any], parts: Sequence[object]) -> int:
    """Count what a message came with: files are named beside it, and pictures also among its parts."""
    named = _object(message, "metadata").get("attachments")
    return max(len(named) if isinstance(named, list) else 0, sum(not isinstance(part, str) for part in parts))


def _time(seconds: object) -> str | None:
    """Return a time that is given in seconds since 1970 as RFC 3339 has it."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None
