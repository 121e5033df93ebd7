"""Sessions as Claude Code keeps them: a file a session, a JSON object a line.

A turn's id is the line's own, as the plugin sends it, so that what came in while it was said is not there twice.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from memory.ingest.arrival import Rejected
from memory.ingest.importers.blocks import left_out_of_blocks, text_of_blocks
from memory.ingest.importers.found import Found, FoundTurn, LeftOut, Reason, Unreadable, found_turn
from memory.ingest.json_text import NotJson, read_json, read_lines

_ROLES = frozenset({"user", "assistant"})
_LONGEST_SLUG = 100
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
) -> Iterator[Found]:
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


def _unread(raw: bytes, error: NotJson, *, place: str) -> Found:
    """Tell a line that cannot be read from the last one, whose end is not written yet."""
    if not raw.endswith(b"\n"):
        return LeftOut(reason=Reason.BROKEN_OFF)
    return Unreadable(place=place, rejected=Rejected(status=400, detail=f"The line is not JSON; {error}."))


def _of_project(found: Found, project: str) -> Found:
    if not project or not isinstance(found, FoundTurn):
        return found
    return replace(found, line={**found.line, "project": project})


def _read_line(line: object, *, place: str) -> Iterator[Found]:
    if not isinstance(line, dict) or line.get("type") not in _ROLES:
        yield LeftOut(reason=Reason.SYSTEM)
    elif line.get("isSidechain"):
        yield LeftOut(reason=Reason.SUBAGENT)
    elif line.get("isMeta") or line.get("isCompactSummary"):
        yield LeftOut(reason=Reason.SYSTEM)
    elif not isinstance(line.get("uuid"), str) or not isinstance(line.get("sessionId"), str):
        yield Unreadable(place=place)
    else:
        yield from _read_said(line, place=place)


def _read_said(line: Mapping[str, Any], *, place: str) -> Iterator[Found]:
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    text = content if isinstance(content, str) else text_of_blocks(content)
    beside = list(left_out_of_blocks(content))
    yield from beside
    if beside and not text:
        return
    if line["type"] == "user" and _WRITTEN_BY_THE_PROGRAM.match(text):
        yield LeftOut(reason=Reason.SYSTEM)
    else:
        moment = line.get("timestamp")
        yield found_turn(
            place=place,
            session=line["sessionId"],
            role=line["type"],
            text=_without_ours(text),
            turn_id=line["uuid"],
            occurred_at=moment if isinstance(moment, str) else None,
        )


def _without_ours(text: str) -> str:
    """Leave out recollections, as the plugin does before it sends a turn under the same id."""
    if "[Memory flash: " not in text and "[Belief (" not in text:
        return text
    return _OURS.sub("", _REMINDER.sub("", text)).strip()
