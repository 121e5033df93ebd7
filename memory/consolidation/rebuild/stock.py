"""How beliefs, evidence and lineage stand, and in what two such states differ."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EVIDENCE_COLUMNS
from memory.models import Belief, Evidence, Lineage

Row = dict[str, Any]

# All that a replay says of a belief. Whose it is, its kind of fact and its use it cannot know.
TOLD = (
    "statement", "statement_hash", "subject", "predicate", "context", "timeframe", "language", "status",
    "alpha", "beta", "additive_confidence", "evidence_count", "peak_confidence", "prediction_error",
    "storage_strength", "lineage_depth", "is_pinned", "valid_from", "valid_until",
    "restored_by_person_at", "archived_by_person_at", "created_at", "statement_changed_at",
    "last_reinforced_at", "archive_due_at",
)  # fmt: skip
_LINEAGE = ("workspace_id", "parent_id", "child_id", "kind", "reason", "cycle_id", "created_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """Beliefs by id, evidence by belief and episode, lineage by parent, child and kind."""

    beliefs: Mapping[str, Row]
    evidence: Mapping[tuple[str, ...], Row]
    lineage: Mapping[tuple[str, ...], Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of one table that a belief has too many, and those that it lacks; one that changed is both."""

    surplus: list[Row] = field(default_factory=list)
    missing: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.surplus or self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """In what a belief differs from what was recorded of it."""

    id: str
    statement: str
    is_lost: bool = False  # it could not be made again
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # as it stands, as it was recorded
    status_reason: str = ""  # that goes with a status which differs
    evidence: Rows = field(default_factory=Rows)
    lineage: Rows = field(default_factory=Rows)  # towards its parents


def take_stock(*, beliefs: Collection[str]) -> Stock:
    """Read how beliefs stand, their evidence that counts, and what they came from."""
    ids = list(beliefs)
    rows = Evidence.objects.filter(belief__in=ids).exclude(episode__status__in=WITHDRAWN_STATUSES)
    came_from = Lineage.objects.filter(child__in=ids)
    return Stock(
        beliefs={row["id"]: row for row in Belief.objects.filter(pk__in=ids).values("id", "status_reason", *TOLD)},
        evidence={(row["belief_id"], row["episode_id"]): row for row in rows.values(*EVIDENCE_COLUMNS)},
        lineage={(row["child_id"], row["parent_id"], row["kind"]): row for row in came_from.values(*_LINEAGE)},
    )


def compare(*, stands: Stock, recorded: Stock, tombstones: Collection[str]) -> list[Difference]:
    """List the beliefs that do not stand as was recorded, by id.

    A tombstone that cannot be made again is no difference: what a person had forgotten must not come back for it.
    """
    evidence = _rows_apart(stands.evidence, recorded.evidence)
    lineage = _rows_apart(stands.lineage, recorded.lineage)
    found = []
    for key, row in sorted(stands.beliefs.items()):
        if key not in recorded.beliefs:
            lost = Difference(id=key, statement=row["statement"], is_lost=True)
            found += [] if key in tombstones else [lost]
            continue
        was = recorded.beliefs[key]
        difference = Difference(
            id=key,
            statement=row["statement"],
            columns={name: (row[name], was[name]) for name in TOLD if row[name] != was[name]},
            status_reason=was["status_reason"],
            evidence=evidence.get(key, Rows()),
            lineage=lineage.get(key, Rows()),
        )
        if difference.columns or difference.evidence or difference.lineage:
            found.append(difference)
    return found


def _rows_apart(stand: Mapping[tuple[str, ...], Row], recorded: Mapping[tuple[str, ...], Row]) -> dict[str, Rows]:
    """Return the rows that differ, by the belief that their keys begin with."""
    apart: dict[str, Rows] = {}
    for key in stand.keys() | recorded.keys():
        here, there = stand.get(key), recorded.get(key)
        if here == there:
            continue
        rows = apart.setdefault(key[0], Rows())
        rows.surplus.extend([here] if here else [])
        rows.missing.extend([there] if there else [])
    return apart
