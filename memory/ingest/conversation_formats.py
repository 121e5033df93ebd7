"""Read conversations in the formats of others: exports of ChatGPT and Claude, transcripts of Claude Code.

Each reader yields turns, what is left out of them with the reason, and what cannot be read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from memory.ingest.json_lines import NotJson, read_json, read_lines
from memory.ingest.schemas import Rejected

_TEXT = "text"
_LONGEST_SLUG = 100


class SkipReason(StrEnum):
    """Why something in a file is no turn."""

    NO_TEXT = "without text"
    OTHER_BRANCH = "on a branch that was left"
    TOOL = "of tools"
    THOUGHT = "thoughts"
    ATTACHMENT = "attachments"
    BROKEN_OFF = "still being written"
    SYSTEM = "of the system"
    HIDDEN = "hidden from the person"
    SUBAGENT = "of a helper of the agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTurn:
    """A message as a turn's line has it, not checked yet, of whatever length, and where it stands."""

    place: str
    line: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something that is no turn of a conversation."""

    reason: SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """What stands at a place and cannot be read."""

    place: str
    rejected: Rejected = field(default_factory=lambda: Rejected(status=422, detail="It cannot be read."))


ImportItem = ImportedTurn | Skipped | Unreadable


def imported_turn(
    *, place: str, session: str, role: str, text: str, turn_id: str, occurred_at: str | None
) -> ImportedTurn | Skipped:
    """Make a turn of a message, however long its text is."""
    if not text.strip():
        return Skipped(reason=SkipReason.NO_TEXT)
    line = {"session": session, "role": role, "content": text, "turn_id": turn_id, "occurred_at": occurred_at}
    return ImportedTurn(place=place, line=line)


_SPOKEN = frozenset({"text", "multimodal_text"})
_LEFT_OUT = {"tool": SkipReason.TOOL, "system": SkipReason.SYSTEM}
_NOT_SAID = {"thoughts": SkipReason.THOUGHT, "reasoning_recap": SkipReason.THOUGHT, "code": SkipReason.TOOL}


def is_chatgpt(conversation: object) -> bool:
    """Tell whether a conversation has the form of this export."""
    return isinstance(conversation, dict) and isinstance(conversation.get("mapping"), dict)


def read_chatgpt(*, conversation: Mapping[str, Any], place: str) -> Iterator[ImportItem]:
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
            yield Skipped(reason=SkipReason.OTHER_BRANCH)


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


def _read_message(message: Mapping[str, Any], *, session: str, place: str) -> Iterator[ImportItem]:
    role = _object_field(message, "author").get("role")
    if reason := _why_not_said(message, str(role)):
        yield Skipped(reason=reason)
    elif role not in ("user", "assistant") or not isinstance(message.get("id"), str):
        yield Unreadable(place=place)
    else:
        told = _object_field(message, "content").get("parts")
        parts = told if isinstance(told, list) else []
        text = "\n".join(part for part in parts if isinstance(part, str))
        attached = _attached_to(message, parts)
        yield from (Skipped(reason=SkipReason.ATTACHMENT) for _ in range(attached))
        if attached and not text.strip():
            return
        yield imported_turn(
            place=place,
            session=session,
            role=role,
            text=text,
            turn_id=message["id"],
            occurred_at=_time(message.get("create_time")),
        )


def _object_field(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return what a message has by a name, if that is an object; what has another form is as good as missing."""
    found = message.get(name)
    return found if isinstance(found, dict) else {}


def _why_not_said(message: Mapping[str, Any], role: str) -> SkipReason | None:
    """Name why a message is nothing that person and model said to each other; None for one that is."""
    metadata = _object_field(message, "metadata")
    kind = str(_object_field(message, "content").get("content_type"))
    if reason := _LEFT_OUT.get(role) or _NOT_SAID.get(kind):
        return reason
    if message.get("recipient", "all") != "all":
        return SkipReason.TOOL
    is_hidden = metadata.get("is_visually_hidden_from_conversation") or kind not in _SPOKEN
    return SkipReason.HIDDEN if is_hidden else None


def _attached_to(message: Mapping[str, Any], parts: Sequence[object]) -> int:
    """Count what a message came with: files are named beside it, and pictures also among its parts."""
    named = _object_field(message, "metadata").get("attachments")
    return max(len(named) if isinstance(named, list) else 0, sum(not isinstance(part, str) for part in parts))


def _time(seconds: object) -> str | None:
    """Return a time that is given in seconds since 1970 as RFC 3339 has it."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


_CLAUDE_ROLES = {"human": "user", "assistant": "assistant"}


def is_claude(conversation: object) -> bool:
    """Tell whether a conversation has the form of this export."""
    return isinstance(conversation, dict) and isinstance(conversation.get("chat_messages"), list)


def read_claude(*, conversation: Mapping[str, Any], place: str) -> Iterator[ImportItem]:
    """Read one conversation; what a model thought or had from tools, and what was attached, is counted."""
    session = conversation.get("uuid")
    if not isinstance(session, str):
        yield Unreadable(place=place)
        return
    for number, message in enumerate(conversation["chat_messages"], start=1):
        where = f"{place}, message {number}"
        role = _CLAUDE_ROLES.get(str(message.get("sender"))) if isinstance(message, dict) else None
        if role is None or not isinstance(message.get("uuid"), str):
            yield Unreadable(place=where)
            continue
        beside = [*skipped_blocks(message.get("content")), *_files_of(message)]
        yield from beside
        text = text_of_blocks(message.get("content")) or str(message.get("text") or "")
        if beside and not text.strip():
            continue
        moment = message.get("created_at")
        yield imported_turn(
            place=where,
            session=session,
            role=role,
            text=text,
            turn_id=message["uuid"],
            occurred_at=moment if isinstance(moment, str) else None,
        )


def _files_of(message: Mapping[str, Any]) -> Iterator[Skipped]:
    """Count what was attached to a message."""
    for name in ("attachments", "files"):
        given = message.get(name)
        yield from (Skipped(reason=SkipReason.ATTACHMENT) for _ in (given if isinstance(given, list) else ()))


_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_ATTACHMENTS = frozenset({"image", "document", "file", "audio"})


def text_of_blocks(content: object) -> str:
    """Join the blocks of text."""
    said = [block["text"] for block in _content_blocks(content) if block.get("type") == _TEXT]
    return "\n\n".join(text for text in said if isinstance(text, str))


def skipped_blocks(content: object) -> Iterator[Skipped]:
    """Count each block that is no text: thoughts, calls of tools and their results, attachments."""
    for block in _content_blocks(content):
        kind = str(block.get("type"))
        if kind != _TEXT:
            yield Skipped(reason=_reason_of(kind))


def _content_blocks(content: object) -> list[dict[str, object]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _reason_of(kind: str) -> SkipReason:
    if kind in _THOUGHTS:
        return SkipReason.THOUGHT
    if kind in _ATTACHMENTS:
        return SkipReason.ATTACHMENT
    return SkipReason.TOOL if "tool" in kind else SkipReason.SYSTEM


_CLAUDE_CODE_ROLES = frozenset({"user", "assistant"})

# What the program writes into a person's mouth: commands, their output, and its own remarks.
_PROGRAM_TEXT = re.compile(
    r"\s*<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|system-reminder|user-prompt-submit-hook)>|\s*(?:Caveat: The messages below|\[Request interrupted by user)"
)

# What the plugin put in: lines of recollections, wherever they turn up.
_RECALLED_LINES = re.compile(r"^[ \t>]*\[(?:Memory flash: |Belief \(\d(?:[.,]\d+)?\): )[^\n]*\n?", re.MULTILINE)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)


def list_transcripts(*, folder: Path) -> list[Path]:
    """List the transcripts in a folder and below it, in the order of their names."""
    return sorted(path for path in folder.rglob("*.jsonl") if path.is_file())


def project_of_folder(folder: object) -> str:
    """Return the project that a folder's name stands for, as the plugin names it; "" for what has no name."""
    name = re.split(r"[\\/]+", folder.rstrip("\\/"))[-1] if isinstance(folder, str) else ""
    return re.sub(r"[^-\w]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG]


def read_transcript(
    *,
    stream: IO[bytes],
    place: str,
    on_read: Callable[[int], object] = lambda _: None,
    by_folder: bool = False,
) -> Iterator[ImportItem]:
    """Read what person and agent said to each other; tools, thoughts, attachments and helpers are left out.

    With `by_folder` it is of the project that the folder is named by in which the session began.
    """
    project = ""
    for number, raw in enumerate(read_lines(stream), start=1):
        on_read(len(raw))
        if not raw.strip():
            continue
        where = f"{place}, line {number}"
        try:
            line = read_json(raw)
        except NotJson as error:
            yield _unread(raw, error, place=where)
            continue
        if by_folder and not project and isinstance(line, dict):
            project = project_of_folder(line.get("cwd"))
        for found in _read_line(line, place=where):
            yield _of_project(found, project)


def _unread(raw: bytes, error: NotJson, *, place: str) -> ImportItem:
    """Tell a line that cannot be read from the last one, whose end is not written yet."""
    if not raw.endswith(b"\n"):
        return Skipped(reason=SkipReason.BROKEN_OFF)
    return Unreadable(place=place, rejected=Rejected(status=400, detail=f"The line is not JSON; {error}."))


def _of_project(found: ImportItem, project: str) -> ImportItem:
    if not project or not isinstance(found, ImportedTurn):
        return found
    return replace(found, line={**found.line, "project": project})


def _read_line(line: object, *, place: str) -> Iterator[ImportItem]:
    if not isinstance(line, dict) or line.get("type") not in _CLAUDE_CODE_ROLES:
        yield Skipped(reason=SkipReason.SYSTEM)
    elif line.get("isSidechain"):
        yield Skipped(reason=SkipReason.SUBAGENT)
    elif line.get("isMeta") or line.get("isCompactSummary"):
        yield Skipped(reason=SkipReason.SYSTEM)
    elif not isinstance(line.get("uuid"), str) or not isinstance(line.get("sessionId"), str):
        yield Unreadable(place=place)
    else:
        yield from _read_said(line, place=place)


def _read_said(line: Mapping[str, Any], *, place: str) -> Iterator[ImportItem]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    text = content if isinstance(content, str) else text_of_blocks(content)
    beside = list(skipped_blocks(content))
    yield from beside
    if beside and not text:
        return
    if line["type"] == "user" and _PROGRAM_TEXT.match(text):
        yield Skipped(reason=SkipReason.SYSTEM)
    else:
        moment = line.get("timestamp")
        yield imported_turn(
            place=place,
            session=line["sessionId"],
            role=line["type"],
            text=_strip_recalled_lines(text),
            turn_id=line["uuid"],
            occurred_at=moment if isinstance(moment, str) else None,
        )


def _strip_recalled_lines(text: str) -> str:
    """Leave out recollections, as the plugin does before it sends a turn under the same id."""
    if "[Memory flash: " not in text and "[Belief (" not in text:
        return text
    return _RECALLED_LINES.sub("", _REMINDER.sub("", text)).strip()
