"""Scenes: what several callers ask of an empty workspace, one after the other, and what they are answered.

A scene is a file of JSON Lines under scenes/. A line that begins with `about` says what the scene shows and, under
`policy`, which numbers hold in it. One with `as` and `do` is a request: who asks (see callers.py), method and address,
and if need be `send` (the body), `type` (its content type, or null for none), and `headers`. `now` moves the clock on,
and `act` has the work done that workers do (see the end of this file). Ids of earlier answers have names: see
placeholders.py.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from django.conf import settings
from django.test import Client, override_settings

from memory.consolidation.cycle import open_cycle
from memory.facts.remember import run_remember_job
from memory.graph.linking import link_memories
from memory.ingest.extract import extract_conversation
from memory.models import Conversation, Cycle, RememberJob, Trigger, Workspace, fields
from memory.search.plan import clear_sizes
from tests.api.caller import PREFIX
from tests.consolidation.inline import run_to_end
from tests.contract.callers import Callers
from tests.contract.keeping import SCENES
from tests.contract.placeholders import Placeholders, literal_ids
from tests.contract.reading import reading_as_laid_down

OPENING = datetime(2026, 3, 2, 9, tzinfo=UTC)  # a Monday
_PAUSE = timedelta(minutes=1)  # between two requests
_PROMISED = ("Content-Type", "WWW-Authenticate", "Retry-After", "ETag", "Allow", "Location")
_OUTSIDE = ("/api/", "/healthz", "/readyz", "/metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A file of requests."""

    file: Path

    @property
    def name(self) -> str:
        return self.file.stem

    @property
    def answers(self) -> Path:
        """Name the file of what was answered."""
        return self.file.with_suffix(".answers.json")

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines() if line.strip()]

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if "do" in line]


def all_scenes() -> list[Scene]:
    """Return all scenes, by name."""
    return [Scene(file=file) for file in sorted(SCENES.glob("*.jsonl"))]


def play(scene: Scene) -> list[dict[str, Any]]:
    """Send a scene's requests and return what they were answered, without what differs on every run."""
    first, *_ = scene.lines
    with override_settings(POLICY=_policy(first.get("policy", {})), ALLOWED_HOSTS=["testserver"]):
        stage = _Stage(scene)
        with stage.deterministic():
            return list(stage.run())


def _policy(changed: dict[str, dict[str, float]]) -> Any:
    stages = {stage: replace(getattr(settings.POLICY, stage), **numbers) for stage, numbers in changed.items()}
    return replace(settings.POLICY, **stages)


class _Stage:
    """One run of a scene: its clock, its ids, its callers."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._now, self._numbers = scene, OPENING, count(1)
        self._client = Client()  # one for all: a new one looks through the admin's files first
        text = scene.file.read_text(encoding="utf-8")
        self._names = Placeholders(began=datetime.now(UTC) - timedelta(hours=1), literal=literal_ids(text))

    @cached_property
    def _callers(self) -> Callers:
        return Callers(now=self._now)

    @contextmanager
    def deterministic(self) -> Iterator[None]:
        """Let time, ids and readings depend on the scene alone; ids rise, so that what is of one moment is in order."""
        drawn = SimpleNamespace(token_hex=lambda _: f"{next(self._numbers):06x}000000")
        with (
            mock.patch.object(fields, "secrets", drawn),
            mock.patch("django.utils.timezone.now", self._tell),
            reading_as_laid_down(),
        ):
            yield

    def _tell(self) -> datetime:
        return self._now

    def run(self) -> Iterator[dict[str, Any]]:
        """Go through the lines, and yield the answers."""
        clear_sizes()
        for line in self._scene.lines:
            if "now" in line:
                self._now = datetime.fromisoformat(line["now"])
            elif "act" in line:
                _ACTS[line["act"]](self._callers.workspace, self._now)
            elif "do" in line:
                yield self._answer(line)
                self._now += _PAUSE

    def _answer(self, line: dict[str, Any]) -> dict[str, Any]:
        response = self._send(self._names.reveal(line))
        headers = {name: response.headers[name] for name in _PROMISED if name in response.headers}
        if "Retry-After" in headers:
            headers["Retry-After"] = "<seconds>" if headers["Retry-After"].isdecimal() else headers["Retry-After"]
        return {
            "request": f"{line['do']} as {line['as']}",
            "status": response.status_code,
            "headers": headers,
            "body": self._names.hide(_body_of(response)),
        }

    def _send(self, line: dict[str, Any]) -> Any:
        method, _, path = line["do"].partition(" ")
        headers = self._callers.headers_of(line["as"]) | line.get("headers", {})
        address = path if path.startswith(_OUTSIDE) else PREFIX + path
        sent = _written(line["send"]) if "send" in line else ""
        content_type = line.get("type", "application/json") or ""
        return self._client.generic(method, address, sent, content_type=content_type, headers=headers)


def _written(sent: Any) -> str:
    """Return a body as it is sent: text as it is, all else as JSON; `{"times": […]}` repeats a text."""
    return sent if isinstance(sent, str) else json.dumps(_spelled_out(sent))


def _spelled_out(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"times"}:
        word, number = value["times"]
        return word * number
    if isinstance(value, dict):
        return {name: _spelled_out(item) for name, item in value.items()}
    return [_spelled_out(item) for item in value] if isinstance(value, list) else value


def _body_of(response: Any) -> Any:
    """Read an answer to its end: JSON, JSON Lines, or text."""
    content = b"".join(response.streaming_content) if response.streaming else response.content
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind.endswith("json") and content:
        if kind.endswith("ndjson"):
            return [json.loads(line) for line in content.splitlines()]
        return json.loads(content)
    return content.decode() or None


def consolidate(workspace: Workspace, now: datetime) -> None:
    """Take the open cycle to its end, or one that is opened now."""
    under_way = Cycle.objects.for_workspace(workspace).open().first()
    cycle = under_way or open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.PERSON)[0]
    run_to_end(cycle.pk)


def read_turns(workspace: Workspace, now: datetime) -> None:
    """Read what waits of all conversations."""
    for conversation in Conversation.objects.for_workspace(workspace).order_by("pk"):
        extract_conversation(conversation_id=conversation.pk, now=now)


def remember(workspace: Workspace, now: datetime) -> None:
    """Let the texts that wait to be remembered meet what is believed."""
    for waiting in RememberJob.objects.queued().filter(episode__workspace=workspace).order_by("pk"):
        run_remember_job(remembrance_id=waiting.pk, now=now)


def link(workspace: Workspace, now: datetime) -> None:
    """Link the memories that wait for it."""
    link_memories(workspace_id=workspace.pk)


_ACTS: dict[str, Callable[[Workspace, datetime], None]] = {
    "consolidate": consolidate,
    "link": link,
    "read turns": read_turns,
    "remember": remember,
}
