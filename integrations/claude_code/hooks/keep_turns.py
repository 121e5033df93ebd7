"""Stop and SessionEnd: the transcript's new turns, in order, to Engram.

How far a transcript was sent is noted beside the client's other state. Where the memory does not answer, or that note
is lost, turns are sent again: each has an id, and adds nothing a second time.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional  # noqa: UP035 - for 3.9

from memory_server import ask, own, run_hook, seconds_of
from memory_server import note as say
from transcript import read_turns

SECONDS = seconds_of("ENGRAM_TURNS_TIMEOUT_MS", default=2000)
_BATCH = 100
_BATCH_BYTES = 2 * 2**20
_MOST_READ = 16 * 2**20  # bytes of a transcript at a time: the rest waits for the next turn
# Sent again they would be refused again: a turn that is none, one whose id stands for another.
_REFUSED = (202, 409, 413, 422)


def keep_turns(event: Mapping[str, Any]) -> Optional[str]:  # noqa: UP045 - for 3.9
    """Send what a transcript has since the last time; print nothing."""
    path = Path(str(event.get("transcript_path") or "")).expanduser()
    note = _note_for(path)
    offset, lines = _read_new(path, _noted(note, path))
    for batch in _batches(read_turns(lines, session=str(event.get("session_id") or path.stem))):
        status, _ = ask("POST", "/turns", {"turns": batch}, seconds=SECONDS)
        if status not in _REFUSED:
            return None
    _write_note(note, offset)
    return None


def _read_new(path: Path, offset: int) -> tuple[int, list[bytes]]:
    """Return the whole lines after an offset, and where they end; a line that is still being written waits."""
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read(_MOST_READ)
    end = content.rfind(b"\n") + 1
    return offset + end, content[:end].splitlines()


def _batches(turns: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for turn in turns:
        turn.update({**own("project"), **own("user")})
        weight = len(turn["content"].encode("utf-8", "replace"))
        if batch and (len(batch) == _BATCH or size + weight > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(turn)
        size += weight
    if batch:
        yield batch


def _note_for(path: Path) -> Path:
    """Return the file that notes how far a transcript was sent to this server under this key."""
    base = os.environ.get("CLAUDE_PLUGIN_DATA") or os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    named = "\0".join([str(path), os.environ.get("ENGRAM_URL", ""), os.environ.get("ENGRAM_API_KEY", "")])
    return Path(base) / "engram-claude-code" / f"{hashlib.sha256(named.encode()).hexdigest()[:32]}.json"


def _noted(note: Path, path: Path) -> int:
    """Return how far it was sent; 0 where nobody knows, or where the transcript is shorter than that."""
    try:
        offset = int(json.loads(note.read_bytes())["offset"])
        return offset if 0 <= offset <= path.stat().st_size else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _write_note(note: Path, offset: int) -> None:
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        drawn = note.with_suffix(f".{os.getpid()}")
        drawn.write_text(json.dumps({"offset": offset}))
        drawn.replace(note)
    except OSError as error:
        say(f"the note of what was sent: {error}")


if __name__ == "__main__":
    run_hook(keep_turns, seconds=SECONDS)
