"""Say that a belief is wrong, and what is right instead (R7)."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from memory.consolidation.curation import BeliefText
from memory.ingest.corrections import correct_belief
from memory.ledger.transactions import Author
from memory.management.command_line import Report, ReportCommand, command_actor, named_memory, usage_error
from memory.models import Belief


class Command(ReportCommand):
    help = (
        "Correct a belief: the word of whoever runs this weighs as a curator's. With --statement that takes the "
        "belief's place. An id may be cut short as long as it names one belief only."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID", help="bl_…")
        parser.add_argument("--reason", required=True, help="kept in the history")
        parser.add_argument("--statement", help="what is right instead")

    def run(self, *, id: str, reason: str, statement: str | None, now: datetime, **options: Any) -> Report:
        belief = named_memory(id)
        if not isinstance(belief, Belief):
            raise usage_error(f"{id} is an episode: forget it, or correct the belief that came of it.")
        reshaped = correct_belief(
            belief=belief,
            wording=BeliefText(statement=statement) if statement else None,
            author=Author(actor=command_actor("correct"), reason=reason, now=now),
        )
        made, changed = ([one.pk for one in beliefs] for beliefs in (reshaped.made, reshaped.changed))
        told = f"{', '.join(changed)} corrected{f', {made[0]} made' if made else ''}."
        return Report(values={"made": made, "changed": changed}, lines=[told])
