"""Forget episodes and beliefs by their ids (B19)."""

import json
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.domain.errors import EngramError
from memory.forgetting import Forgotten, forget_belief, forget_episode
from memory.management.command_line import ServiceCommand, command_actor, named_memory, pluralize
from memory.models import Belief, Episode


class Command(ServiceCommand):
    help = (
        "Forget episodes or beliefs: they are recalled and counted no more. An id may be cut short as long as it names "
        "one memory only. `erase` removes what is to leave no trace."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("ids", nargs="+", metavar="ID", help="ep_… or bl_…")
        parser.add_argument("--reason", default="", help="kept in the history")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, ids: list[str], reason: str, as_json: bool, **options: Any) -> None:
        now = timezone.now()
        for memory in [named_memory(text) for text in ids]:  # all of them, before the first is gone
            forgotten = _forget(memory, reason, now)
            self.stdout.write(json.dumps(_as_json(forgotten)) if as_json else _told(forgotten))


def _forget(memory: Episode | Belief, reason: str, now: datetime) -> Forgotten:
    told: dict[str, Any] = {"actor": command_actor("forget"), "now": now, "reason": reason}
    try:
        if isinstance(memory, Belief):
            return forget_belief(belief=memory, even_pinned=True, **told)
        return forget_episode(episode=memory, **told)
    except EngramError as error:
        raise CommandError(f"{memory.pk}: {error}", returncode=error.exit_status) from None


def _as_json(forgotten: Forgotten) -> dict[str, Any]:
    return {
        "id": forgotten.id,
        "recomputed": sorted(forgotten.bereft.beliefs),
        "archived": sorted(forgotten.bereft.archived),
        "merged": list(forgotten.along.merged),
        "summaries": list(forgotten.along.summaries),
    }


def _told(forgotten: Forgotten) -> str:
    told = [f"{forgotten.id} forgotten"]
    if merged := forgotten.along.merged:
        told.append(f"with what was merged into it: {', '.join(merged)}")
    if summaries := forgotten.along.summaries:
        told.append(f"with what sums it up: {', '.join(summaries)}")
    if beliefs := forgotten.bereft.beliefs:
        told.append(f"{pluralize(len(beliefs), 'belief')} computed anew")
    if archived := forgotten.bereft.archived:
        told.append(f"{len(archived)} archived without support")
    return ", ".join(told) + "."
