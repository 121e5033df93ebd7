"""Stop and SessionEnd: the transcript's new turns, in order, to Engram.

How far a transcript was sent is noted beside the client's other state. Where the memory does not answer, or that note
is lost, turns are sent again: each has an id, and adds nothing a second time. What person and agent said is read out of
the transcript, a JSON object a line, by the rules of `manage.py import_claude_code`: a turn's id is the uuid of its
line, so that neither adds what the other has brought in.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, BinaryIO, Iterator, Mapping, Optional, Tuple  # noqa: UP035 - for 3.9

from client_state import state_file, write_state
from memory_server import ask, own, project_of, run_hook, seconds_of
from memory_server import note as say

SECONDS = seconds_of("ENGRAM_TURNS_TIMEOUT_MS", default=2000)
_BATCH = 100
_BATCH_BYTES = 2 * 2**20
_MOST_READ = 16 * 2**20  # bytes of a transcript that are read before it is noted, turns or none
_LONGEST_LINE = 16 * 2**20  # bytes

# Sent again they would be refused again: a turn that is none, one whose id stands for another.
_REFUSED = (202, 409, 413, 422)
Place = Tuple[int, int]  # where a line begins, and how many of its turns were sent  # noqa: UP006 - for 3.9


def keep_turns(event: Mapping[str, Any]) -> Optional[str]:  # noqa: UP045 - for 3.9
    """Send what a transcript has since the last time; print nothing.

    Each batch that was taken is noted: what the time is too short for goes on there, and not where it began.
    """
    path = Path(str(event.get("transcript_path") or "")).expanduser()
    note = state_file(str(path))
    session = str(event.get("session_id") or path.stem)
    whose = {**project_of(event), **own("user")}
    for batch, place in _batches(_read_new(path, _noted(note, path), session), whose):
        status, answer = ask("POST", "/turns", {"turns": batch}, seconds=SECONDS) if batch else (_REFUSED[0], None)
        if status not in _REFUSED or _is_set_up_wrong(answer):
            return None
        write_state(note, {"offset": place[0], "turns": place[1]})
    return None


def _is_set_up_wrong(answer: object) -> bool:
    """Tell whether turns were refused for the project or user of the environment: they wait until that is mended."""
    turns = answer.get("turns") if isinstance(answer, dict) else None
    errors = [one["error"] for one in turns or () if isinstance(one, dict) and isinstance(one.get("error"), dict)]
    return any({"project", "user"} & set(error.get("errors") or ()) for error in errors)


def _read_new(path: Path, place: Place, session: str) -> Iterator[tuple[Optional[dict[str, Any]], Place]]:  # noqa: UP045
    """Yield the turns after a place, each with the place behind it, and the place behind each line."""
    offset, sent = place
    with path.open("rb") as file:
        file.seek(offset)
        for line, end in _lines(file):
            for number, turn in enumerate(read_turns([line], session=session), start=1):
                if number > sent:
                    yield turn, (offset, number)
            yield None, (end, 0)
            offset, sent = end, 0


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, one that is too long as an empty one, and where they end; the last may wait for its end."""
    while True:
        line = part = file.readline(_LONGEST_LINE)
        while part and not part.endswith(b"\n"):
            part = file.readline(_LONGEST_LINE)
        if not part:
            return
        if part is not line:
            say(f"a line of more than {_LONGEST_LINE} bytes is passed over")
        yield line if part is line else b"", file.tell()


def _batches(
    found: Iterator[tuple[Optional[dict[str, Any]], Place]],  # noqa: UP045 - for 3.9
    whose: Mapping[str, str],
) -> Iterator[tuple[list[dict[str, Any]], Place]]:
    """Yield turns, or none out of many lines, with the place behind them."""
    batch: list[dict[str, Any]] = []
    size, began, place = 0, -1, (0, 0)
    for turn, behind in found:
        weight = len(turn["content"].encode("utf-8", "replace")) if turn else 0
        began = behind[0] if began < 0 else began
        if (turn and _is_full(batch, size + weight)) or behind[0] - began > _MOST_READ:
            yield batch, place if turn else behind
            batch, size, began = [], 0, behind[0]
        if turn:
            batch.append({**turn, **whose})
            size += weight
        place = behind
    if place[0] or place[1]:
        yield batch, place


def _is_full(batch: list[dict[str, Any]], size: int) -> bool:
    return bool(batch) and (len(batch) == _BATCH or size > _BATCH_BYTES)


def _noted(note: Path, path: Path) -> Place:
    """Return how far it was sent; its beginning where nobody knows, or where the transcript is shorter than that."""
    try:
        noted = json.loads(note.read_bytes())
        offset, sent = int(noted["offset"]), int(noted.get("turns", 0))
        return (offset, sent) if 0 <= offset <= path.stat().st_size else (0, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


LONGEST_TURN = 32 * 1024  # bytes of a turn's content; of a longer one each part is a turn

# What the program writes into a person's mouth: commands, their output, and its own remarks.
_PROGRAM_OUTPUT = re.compile(
    r"\s*<(?:command-(?:name|message|args)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|system-reminder|user-prompt-submit-hook)>|\s*(?:Caveat: The messages below|\[Request interrupted by user)"
)

# What this plugin put in: lines of recollections, wherever they turn up.
_RECOLLECTION_LINE = re.compile(r"^[ \t>]*\[(?:Memory flash: |Belief \(\d(?:[.,]\d+)?\): )[^\n]*\n?", re.MULTILINE)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)

_BORDERS = (
    re.compile(r"\n\s*\n"),  # between paragraphs, rather than
    re.compile(r"\n+"),  # between lines, rather than
    re.compile(r"[.!?…][\"'”“’»)\]]*\s+(?=\S)"),  # between sentences, rather than
    re.compile(r"\s+"),  # between words
)


def read_turns(raw_lines: list[bytes], *, session: str) -> Iterator[dict[str, Any]]:
    """Yield the turns of lines, as the API takes them."""
    for raw in raw_lines:
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and _is_said(line):
            yield from _turns_of(line, session)


def _is_said(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is a person's or the agent's own: no helper's, no summary, no remark of the program."""
    left_out = line.get("isSidechain") or line.get("isMeta") or line.get("isCompactSummary")
    return line.get("type") in ("user", "assistant") and not left_out and isinstance(line.get("uuid"), str)


def _turns_of(line: Mapping[str, Any], session: str) -> Iterator[dict[str, Any]]:
    message = line.get("message")
    text = _text_of(message.get("content") if isinstance(message, dict) else None)
    if line["type"] == "user" and _PROGRAM_OUTPUT.match(text):
        return
    given = line.get("sessionId")
    parts = split_text(text=_strip_recollections(text), longest=LONGEST_TURN)
    for number, part in enumerate(filter(str.strip, parts), start=1):  # of what is blank nothing was said
        turn = {
            "session": given if isinstance(given, str) and given else session,
            "role": line["type"],
            "content": part,
            "turn_id": line["uuid"] if number == 1 else f"{line['uuid']}:{number}",
        }
        moment = line.get("timestamp")
        yield {**turn, "occurred_at": moment} if isinstance(moment, str) else turn


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _strip_recollections(text: str) -> str:
    if "[Memory flash: " not in text and "[Belief (" not in text:
        return text
    return _RECOLLECTION_LINE.sub("", _REMINDER.sub("", text)).strip()


def split_text(*, text: str, longest: int) -> list[str]:
    """Split a text into parts of at most so many bytes of UTF-8, which joined again are the text.

    A part ends at the last border of the best kind in the second half of what it may hold. The importer splits by the
    same rule: a part that is another there is another turn.
    """
    parts: list[str] = []
    start = 0
    while True:
        window = text[start : start + longest].encode("utf-8", "replace")
        full = start + len(window[:longest].decode("utf-8", "ignore"))
        if full >= len(text):
            return [*parts, text[start:]]
        end = _find_end(text, start, full)
        parts.append(text[start:end])
        start = end


def _find_end(text: str, start: int, full: int) -> int:
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, start + (full - start) // 2, full)]
        if ends:
            return ends[-1]
    return full


if __name__ == "__main__":
    run_hook(keep_turns, seconds=SECONDS)
