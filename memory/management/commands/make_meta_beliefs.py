"""Make beliefs about groups of beliefs (R7)."""

import json
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.meta_beliefs import META_REASON, make_meta_beliefs
from memory.ledger.transactions import Author
from memory.management.command_line import ServiceCommand, command_actor, pluralize
from memory.models import Belief


class Command(ServiceCommand):
    help = (
        "Ask a model what the largest groups of like beliefs come down to, five at most, and make a belief of each on "
        "the united evidence. A group that a belief is about already is left alone; rules make none."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, workspace: str, as_json: bool, **options: Any) -> None:
        author = Author(actor=command_actor("make_meta_beliefs"), reason=META_REASON, now=timezone.now())
        done = make_meta_beliefs(workspace=find_workspace(name=workspace), author=author)
        self._tell(done.made, as_json=as_json)
        if done.unanswered:
            raise CommandError(done.unanswered, returncode=1)

    def _tell(self, made: Sequence[Belief], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps([{"id": belief.pk, "statement": belief.statement} for belief in made]))
            return
        for belief in made:
            self.stdout.write(f"{belief.pk}: {belief.statement}")
        self.stdout.write(f"{pluralize(len(made), 'belief')} made.")
