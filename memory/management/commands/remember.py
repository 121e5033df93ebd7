"""Remember a text at once (R1)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser

from memory.facts.remember import Remembered, remember
from memory.ingest.schemas import IngestContext, Rejected
from memory.management.command_line import Report, WorkspaceCommand, command_actor
from memory.models import Workspace

_FIELDS = ("project", "user", "agent", "session", "speaker", "source", "occurred_at", "idempotency_key")


class Command(WorkspaceCommand):
    help = (
        "Store a text, and let its facts meet what is believed: at once where a model answers, else by a worker. The "
        "same text again tells how far it has come."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("text")
        for field in _FIELDS:
            parser.add_argument(f"--{field.replace('_', '-')}")

    def run(self, *, text: str, workspace: Workspace, now: datetime, **options: Any) -> Report:
        arrival = IngestContext(workspace=workspace, now=now, actor=command_actor("remember"))
        line = {"text": text} | {field: options[field] for field in _FIELDS if options[field] is not None}
        outcome = remember(line=line, arrival=arrival)
        if isinstance(outcome, Rejected):
            raise CommandError(outcome.detail, returncode=1)
        return Report(values=_as_json(outcome), lines=[_told(outcome)])


def _as_json(outcome: Remembered) -> dict[str, Any]:
    return {
        "episode_id": outcome.episode_id,
        "state": outcome.state,
        "reason": outcome.reason,
        "beliefs": [{"id": one.id, "action": one.action} for one in outcome.beliefs],
    }


def _told(outcome: Remembered) -> str:
    actions = [f"{one.id} {one.action}" for one in outcome.beliefs]
    state = f"{outcome.state} ({outcome.reason})" if outcome.reason else outcome.state
    return f"{outcome.episode_id} {state}: {', '.join(actions) or 'no beliefs'}."
