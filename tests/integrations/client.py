"""Claude Code's side of the plugin: it runs the commands of hooks.json with an event on their standard input."""

import importlib.util
import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from memory.models import Turn
from tests.docs.pages import ROOT

PLUGIN = ROOT / "integrations" / "claude_code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a hook printed, how it ended, and the seconds that it took."""

    printed: str
    complained: str
    status: int
    seconds: float

    @property
    def context(self) -> str:
        """Return what the client adds to the model's context."""
        told = json.loads(self.printed)
        return str(told["hookSpecificOutput"]["additionalContext"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCode:
    """A client with a folder for its transcripts, and the environment of its hooks."""

    folder: Path
    environment: Mapping[str, str]

    def fire(self, event: str, **given: Any) -> Done:
        """Run the hooks of an event as the client does, at once; `raw` is sent in the place of an event."""
        raw = given.pop("raw", None)
        content = json.dumps({"hook_event_name": event, "cwd": str(self.folder), "permission_mode": "default", **given})
        began = time.monotonic()
        with ThreadPoolExecutor() as pool:
            done = list(pool.map(partial(self._run, content=content if raw is None else raw), _commands(event)))
        return Done(
            printed="".join(one.stdout for one in done),
            complained="".join(one.stderr for one in done),
            status=max((one.returncode for one in done), key=abs),
            seconds=time.monotonic() - began,
        )

    def _run(self, command: Sequence[str], *, content: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(PLUGIN), **self.environment}
        return subprocess.run(
            command, input=content, capture_output=True, text=True, check=False, env=environment, timeout=30
        )

    def elsewhere(self, **environment: str) -> "ClaudeCode":
        """Return the same client with other values in its environment."""
        return replace(self, environment={**self.environment, **environment})

    def write(self, session: str, *lines: Mapping[str, Any]) -> Path:
        """Add lines to a session's transcript."""
        path = self.folder / f"{session}.jsonl"
        with path.open("a") as file:
            file.writelines(json.dumps({"sessionId": session, **line}) + "\n" for line in lines)
        return path


def plugin_module(name: str) -> ModuleType:
    """Load a script of the plugin as a module."""
    found = importlib.util.spec_from_file_location(f"plugin_{name}", PLUGIN / "hooks" / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _commands(event: str) -> Iterator[Sequence[str]]:
    for group in json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"][event]:
        for hook in group["hooks"]:
            words = shlex.split(hook["command"].replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)))
            yield [sys.executable if word == "python3" else word for word in words]


def said(role: str, content: object, uuid: str, **given: Any) -> dict[str, Any]:
    """Return a line of a transcript."""
    message = {"role": role, "content": content}
    return {"type": role, "uuid": uuid, "timestamp": "2026-03-01T12:00:00.000Z", "message": message, **given}


TALK = (
    said("user", "No, never deploy on a Friday.", "u1"),
    said("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Understood."}], "a1"),
    said("assistant", [{"type": "tool_use", "name": "Bash", "input": {}, "id": "t"}], "a2"),
    said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}], "u2"),
    {"type": "attachment", "uuid": "x1", "attachment": {"content": "[Memory flash: Never on a Friday.]"}},
    said("user", "<command-name>/compact</command-name>", "u3"),
    said("user", "helper", "u4", isSidechain=True),
    said("user", "meta", "u5", isMeta=True),
    said("assistant", [{"type": "text", "text": "It listens on 8443."}], "a3"),
)


def kept() -> list[tuple[str, str, str]]:
    """Return id, role and content of the turns that were kept."""
    return list(Turn.objects.order_by("number").values_list("turn_id", "role", "content"))


@contextmanager
def silent_port() -> Iterator[int]:
    """Listen and never answer."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]
