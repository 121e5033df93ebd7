"""Remember a text at once (R1)."""

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.remember import Remembered, remember
from memory.ingest.schemas import IngestContext, Rejected
from memory.management.command_line import ServiceCommand, command_actor

_FIELDS = ("project", "user", "agent", "session", "speaker", "source", "occurred_at", "idempotency_key")


class Command(ServiceCommand):
    help = (
        "Store a text, and let its facts meet what is believed: at once where a model answers, else by a worker. The "
        "same text again tells how far it has come."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("text")
        parser.add_argument("--workspace", required=True)
        for field in _FIELDS:
            parser.add_argument(f"--{field.replace('_', '-')}")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, text: str, workspace: str, as_json: bool, **options: Any) -> None:
        arrival = IngestContext(
            workspace=find_workspace(name=workspace), now=timezone.now(), actor=command_actor("remember")
        )
        line = {"text": text} | {field: options[field] for field in _FIELDS if options[field] is not None}
        outcome = remember(line=line, arrival=arrival)
        if isinstance(outcome, Rejected):
            raise CommandError(outcome.detail, returncode=1)
        self.stdout.write(json.dumps(_as_json(outcome)) if as_json else _told(outcome))


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
