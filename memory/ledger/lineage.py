"""Which belief came of which."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory.ledger.author import Author
from memory.models import Belief, Lineage, LineageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Of which beliefs another comes, in what way and why."""

    parents: Sequence[Belief]
    kind: LineageKind
    reason: str


def record_lineage(*, child: Belief, descent: Descent, author: Author) -> None:
    """State of which beliefs another came, once."""
    Lineage.objects.bulk_create(
        [
            Lineage(
                workspace_id=child.workspace_id,
                parent=parent,
                child=child,
                kind=descent.kind,
                reason=descent.reason,
                cycle=author.cycle,
                created_at=author.now,
            )
            for parent in descent.parents
        ],
        ignore_conflicts=True,
    )
