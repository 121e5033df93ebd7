"""Sessions as Claude Code keeps them: a file a session, a JSON object a line.

A turn's id is the line's own, as the plugin sends it, so that what came in while it was said is not there twice.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from memory.ingest.importers.found import Found, LeftOut, Reason, Unreadable, found_turn

_ROLES = frozenset({"user", "assistant"})
# What the program writes into a person's mouth: commands, their output, and its own remarks.
_WRITTEN_BY_THE_PROGRAM = re.compile(
    r"\s*<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|system-reminder|user-prompt-submit-hook)>|\s*(?:Caveat: The messages below|\[Request interrupted by user)"
)
# What the plugin put in: lines of recollections, wherever they turn up.
_OURS = re.compile(r"^[ \t>]*\[(?:Memory flash: |Belief \(\d(?:[.,]\d+)?\): )[^\n]*\n?", re.MULTILINE)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)


def list_transcripts(*, folder: Path) -> list[Path]:
    """List the transcripts in a folder and below it, in the order of their names."""
    return sorted(path for path in folder.rglob("*.jsonl") if path.is_file())


def read_transcript(
    *, stream: IO[bytes], place: str, longest: int, on_read: Callable[[int], object] = lambda _: None
) -> Iterator[Found]:
    """Read what person and agent said to each other; tools, thoughts and helpers are left out."""
    for number, raw in enumerate(stream, start=1):
        on_read(len(raw))
        if raw.strip():
            yield from _read_line(raw, place=f"{place}, line {number}", longest=longest)


def _read_line(raw: bytes, *, place: str, longest: int) -> Iterator[Found]:
    try:
        line = json.loads(raw.decode())
    except (ValueError, RecursionError):
        yield Unreadable(place=place)
        return
    if not isinstance(line, dict) or line.get("type") not in _ROLES:
        yield LeftOut(reason=Reason.SYSTEM)
    elif line.get("isSidechain"):
        yield LeftOut(reason=Reason.SUBAGENT)
    elif line.get("isMeta") or line.get("isCompactSummary"):
        yield LeftOut(reason=Reason.SYSTEM)
    elif not isinstance(line.get("uuid"), str) or not isinstance(line.get("sessionId"), str):
        yield Unreadable(place=place)
    else:
        yield from _read_said(line, place=place, longest=longest)


def _read_said(line: Mapping[str, Any], *, place: str, longest: int) -> Iterator[Found]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    text = _text_of(content)
    if not text and _is_of_tools(content):
        yield LeftOut(reason=Reason.TOOL)
    elif line["type"] == "user" and _WRITTEN_BY_THE_PROGRAM.match(text):
        yield LeftOut(reason=Reason.SYSTEM)
    else:
        moment = line.get("timestamp")
        yield from found_turn(
            place=place,
            session=line["sessionId"],
            role=line["type"],
            text=_without_ours(text),
            turn_id=line["uuid"],
            occurred_at=moment if isinstance(moment, str) else None,
            longest=longest,
        )


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _without_ours(text: str) -> str:
    """Leave out recollections, as the plugin does before it sends a turn under the same id."""
    if "[Memory flash: " not in text and "[Belief (" not in text:
        return text
    return _OURS.sub("", _REMINDER.sub("", text)).strip()


def _is_of_tools(content: object) -> bool:
    """Tell whether blocks are calls of tools, their results or thoughts: nothing said."""
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") != "text" for block in content
    )
