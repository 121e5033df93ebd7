"""Small exports, in the forms that other programs write them."""

from typing import Any

Json = dict[str, Any]


def chatgpt_message(key: str, parent: str | None, role: str, text: str, **more: Any) -> tuple[str, Json]:
    """Return a node of a tree of messages."""
    message = {
        "id": key,
        "author": {"role": role, "name": None},
        "create_time": 1767348000.25,
        "content": {"content_type": "text", "parts": [text]},
        "recipient": "all",
        "metadata": {},
    }
    return key, {"id": key, "message": message | more, "parent": parent, "children": []}


def chatgpt_conversation(*nodes: tuple[str, Json], current: str) -> Json:
    """Return a conversation of these nodes below an empty root."""
    root: Json = {"id": "root", "message": None, "parent": None, "children": []}
    return {
        "title": "Bread",
        "conversation_id": "c-1",
        "current_node": current,
        "mapping": {"root": root} | dict(nodes),
    }


def claude_message(key: str, sender: str, *blocks: Json, text: str = "") -> Json:
    """Return a message with blocks, or with its text alone."""
    return {
        "uuid": key,
        "sender": sender,
        "text": text,
        "content": list(blocks),
        "created_at": "2026-01-02T10:00:00.000000Z",
    }


def claude_conversation(*messages: Json) -> Json:
    """Return a conversation of these messages."""
    return {"uuid": "c-2", "name": "Bread", "created_at": "2026-01-02T10:00:00Z", "chat_messages": list(messages)}


def code_line(key: str, role: str, content: object, **more: Any) -> Json:
    """Return a line of a transcript."""
    return {
        "type": role,
        "uuid": key,
        "sessionId": "s-1",
        "timestamp": "2026-01-02T10:00:00.000Z",
        "message": {"role": role, "content": content},
    } | more


def said(text: str) -> Json:
    """Return a block of text."""
    return {"type": "text", "text": text}
