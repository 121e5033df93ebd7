"""What the client notes for itself from one hook to the next: a small file each, beside its other state."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Mapping  # noqa: UP035 - for 3.9

from memory_server import note as say


def state_file(*named: str) -> Path:
    """Return the file that has the notes on something, of this server under this key."""
    base = os.environ.get("CLAUDE_PLUGIN_DATA") or os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = "\0".join([*named, os.environ.get("ENGRAM_URL", ""), os.environ.get("ENGRAM_API_KEY", "")])
    return Path(base) / "engram-claude-code" / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def write_state(path: Path, values: Mapping[str, Any]) -> None:
    """Put values in the place of a note; one that cannot be written is only said."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        drawn = path.with_suffix(f".{os.getpid()}")
        drawn.write_text(json.dumps(values))
        drawn.replace(path)
    except OSError as error:
        say(f"the client's notes: {error}")
