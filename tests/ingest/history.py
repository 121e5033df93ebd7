"""A small history to import."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
THINGS = ("tabs", "short lines", "green tea", "quiet mornings", "plain words")


def history(count: int) -> list[dict[str, str]]:
    """Make lines, three to an hour, in sessions of five."""
    return [
        {
            "text": f"Mara likes {THINGS[number % len(THINGS)]} in place {number}.",
            "session": f"s{number // 5}",
            "occurred_at": (START + timedelta(minutes=20 * number)).isoformat(),
        }
        for number in range(count)
    ]


def write_history(folder: Path, *, count: int, shuffled: bool = False) -> Path:
    """Write such lines into a file."""
    lines = [json.dumps(line) for line in history(count)]
    if shuffled:
        random.Random(7).shuffle(lines)
    return write_lines(folder, *lines)


def write_lines(folder: Path, *lines: str | bytes) -> Path:
    """Write lines as they are into a file."""
    file = folder / "history.jsonl"
    file.write_bytes(b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + b"\n")
    return file
