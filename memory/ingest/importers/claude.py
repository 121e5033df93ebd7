"""Conversations as Claude's apps export them: each is a list of messages, with its text whole and in blocks."""

from collections.abc import Iterator, Mapping
from typing import Any

from memory.ingest.importers.blocks import left_out_of_blocks, text_of_blocks
from memory.ingest.importers.found import Found, LeftOut, Reason, Unreadable, found_turn

_ROLES = {"human": "user", "assistant": "assistant"}


def is_claude(conversation: object) -> bool:
    """Tell whether a conversation has the form of this export."""
    return isinstance(conversation, dict) and isinstance(conversation.get("chat_messages"), list)


def read_claude(*, conversation: Mapping[str, Any], place: str) -> Iterator[Found]:
    """Read one conversation; what a model thought or had from tools, and what was attached, is counted."""
    session = conversation.get("uuid")
    if not isinstance(session, str):
        yield Unreadable(place=place)
        return
    for number, message in enumerate(conversation["chat_messages"], start=1):
        where = f"{place}, message {number}"
        role = _ROLES.get(str(message.get("sender"))) if isinstance(message, dict) else None
        if role is None or not isinstance(message.get("uuid"), str):
            yield Unreadable(place=where)
            continue
        beside = [*left_out_of_blocks(message.get("content")), *_files_of(message)]
        yield from beside
        text = _text_of(message)
        if beside and not text.strip():
            continue
        moment = message.get("created_at")
        yield found_turn(
            place=where,
            session=session,
            role=role,
            text=text,
            turn_id=message["uuid"],
            occurred_at=moment if isinstance(moment, str) else None,
        )


def _text_of(message: Mapping[str, Any]) -> str:
    """Join the blocks of text; older exports have the text alone."""
    return text_of_blocks(message.get("content")) or str(message.get("text") or "")


def _files_of(message: Mapping[str, Any]) -> Iterator[LeftOut]:
    """Count what was attached to a message."""
    for name in ("attachments", "files"):
        given = message.get(name)
        yield from (LeftOut(reason=Reason.ATTACHMENT) for _ in (given if isinstance(given, list) else ()))
