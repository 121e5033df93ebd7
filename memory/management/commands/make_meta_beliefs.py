"""Make beliefs about groups of beliefs (R7)."""

from datetime import datetime
from typing import Any

from memory.facts.meta_beliefs import META_REASON, make_meta_beliefs
from memory.ledger.transactions import Author
from memory.management.command_line import Report, WorkspaceCommand, command_actor, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = (
        "Ask a model what the largest groups of like beliefs come down to, five at most, and make a belief of each on "
        "the united evidence. A group that a belief is about already is left alone; rules make none."
    )

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        author = Author(actor=command_actor("make_meta_beliefs"), reason=META_REASON, now=now)
        done = make_meta_beliefs(workspace=workspace, author=author)
        return Report(
            values=[{"id": belief.pk, "statement": belief.statement} for belief in done.made],
            lines=[
                *(f"{belief.pk}: {belief.statement}" for belief in done.made),
                f"{pluralize(len(done.made), 'belief')} made.",
            ],
            failure=done.unanswered,
        )
