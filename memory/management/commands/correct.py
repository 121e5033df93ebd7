"""Say that a belief is wrong, and what is right instead (R7)."""

import json
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.consolidation.curation import BeliefText
from memory.ingest.corrections import correct_belief
from memory.ledger.transactions import Author
from memory.management.command_line import ServiceCommand, command_actor, named_memory, usage_error
from memory.models import Belief


class Command(ServiceCommand):
    help = (
        "Correct a belief: the word of whoever runs this weighs as a curator's. With --statement that takes the "
        "belief's place. An id may be cut short as long as it names one belief only."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("id", metavar="ID", help="bl_…")
        parser.add_argument("--reason", required=True, help="kept in the history")
        parser.add_argument("--statement", help="what is right instead")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, id: str, reason: str, statement: str | None, as_json: bool, **options: Any) -> None:
        belief = named_memory(id)
        if not isinstance(belief, Belief):
            raise usage_error(f"{id} is an episode: forget it, or correct the belief that came of it.")
        wording = BeliefText(statement=statement) if statement else None
        author = Author(actor=command_actor("correct"), reason=reason, now=timezone.now())
        reshaped = correct_belief(belief=belief, wording=wording, author=author)
        made, changed = ([one.pk for one in beliefs] for beliefs in (reshaped.made, reshaped.changed))
        if as_json:
            self.stdout.write(json.dumps({"made": made, "changed": changed}))
        else:
            self.stdout.write(f"{', '.join(changed)} corrected{f', {made[0]} made' if made else ''}.")
