"""What makes up a workspace's memory: its tables, in an order in which ids are told before they are named.

Ids of episodes, beliefs and cycles are known to the outside and stay as they are. Other rows are numbered from 1 in
the order of their keys, and projects are named by their slugs: these keys are the database's own, and elsewhere other
rows may have them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import ForeignKey, Model

from memory.models import (
    Belief,
    BeliefAccess,
    BeliefEmbedding,
    BeliefEvent,
    Box,
    BoxMember,
    ChildVerdict,
    Claim,
    ClaimEmbedding,
    ClusterJob,
    ClusterMember,
    Conversation,
    Cycle,
    CycleStep,
    Edge,
    Entity,
    Episode,
    EpisodeAccess,
    EpisodeEmbedding,
    Erased,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    Link,
    Mention,
    ModelCall,
    ModelCallEpisode,
    Project,
    RememberedFact,
    Remembrance,
    Rival,
    StructuralChild,
    StructuralJob,
    Surfaced,
    Trace,
    Transition,
    Turn,
    TurnEpisode,
    UndoneEvidence,
    UndoneLineage,
)

ROW = "row"  # what the number of a row is called
ORDER_OF_EPISODES = "memory_episode_number"  # the sequence that numbers episodes over all workspaces

_LENGTH = re.compile(r"\([^)]*\)")
_OWN_IDS = (Episode, Belief, Cycle)  # whose ids are the same everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table, and what stands for its value in a file."""

    name: str  # in the file
    column: str  # in the database
    sql_type: str  # in the database, without a length
    is_nullable: bool
    refers_to: type[Model] | None = None
    series: str = ""  # of numbers that stand for keys, or for places in an order, of the database's own
    is_required: bool = True
    default: Any = field(default=None, hash=False)  # in a file from before there was the column


def _default_of(column: Any) -> dict[str, Any]:
    """Tell what a row without the column has; a value that only the database can make is required."""
    default = column.db_default if column.has_db_default() else None
    is_plain = not hasattr(default, "resolve_expression")
    return {"is_required": not (is_plain and (column.null or default is not None)), "default": default}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, under the name that its rows have in a file."""

    kind: str
    model: type[Model]
    is_numbered: bool  # its keys are the database's own
    order: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """Return the table's name in the database."""
        return self.model._meta.db_table

    @property
    def names(self) -> set[str]:
        """Name all that a row of a file may have."""
        return {column.name for column in self.columns} | ({ROW} if self.is_numbered else set())


_KINDS: dict[str, type[Model]] = {
    "project": Project,
    "cycle": Cycle,
    "cycle_step": CycleStep,
    "episode": Episode,
    "episode_vector": EpisodeEmbedding,
    "episode_use": EpisodeAccess,
    "claim": Claim,
    "claim_vector": ClaimEmbedding,
    "conversation": Conversation,
    "turn": Turn,
    "turn_episode": TurnEpisode,
    "belief": Belief,
    "belief_vector": BeliefEmbedding,
    "belief_use": BeliefAccess,
    "belief_change": BeliefEvent,
    "transition": Transition,
    "cluster": ClusterJob,
    "cluster_member": ClusterMember,
    "structural_job": StructuralJob,
    "structural_child": StructuralChild,
    "call": ModelCall,
    "call_episode": ModelCallEpisode,
    "verdict": JobVerdict,
    "child_verdict": ChildVerdict,
    "evidence": Evidence,
    "lineage": Lineage,
    "undone_evidence": UndoneEvidence,
    "undone_lineage": UndoneLineage,
    "decision": GateDecision,
    "remembrance": Remembrance,
    "remembered_fact": RememberedFact,
    "link": Link,
    "rival": Rival,
    "surfaced": Surfaced,
    "entity": Entity,
    "mention": Mention,
    "edge": Edge,
    "box": Box,
    "box_member": BoxMember,
    "trace": Trace,
    "erased": Erased,
}


@cache
def tables() -> tuple[Table, ...]:
    """List the tables in the order of a file."""
    return tuple(_table(kind, model) for kind, model in _KINDS.items())


def _table(kind: str, model: type[Model]) -> Table:
    key: Any = model._meta.pk
    has_own_key = not key.column or key.get_internal_type() != "BigAutoField"
    keys = tuple(field.column for field in getattr(key, "fields", ())) or (key.column,)
    columns = [_column(field) for field in _stored(model) if has_own_key or not field.primary_key]
    return Table(
        kind=kind,
        model=model,
        is_numbered=not has_own_key and model is not Project,
        order=("slug",) if model is Project else keys,
        columns=tuple(columns),
    )


def _stored(model: type[Model]) -> Iterator[Any]:
    """Yield the columns that neither the database fills in nor the place in which a row is."""
    fields: Iterator[Any] = iter(model._meta.concrete_fields)
    return (field for field in fields if field.column and not field.generated and field.name != "workspace")


def _column(field: Any) -> Column:
    target: Any = field.related_model if isinstance(field, ForeignKey) else None
    db_type = field.rel_db_type(connection) if field.primary_key else field.db_type(connection)
    return Column(
        name=field.name,
        column=field.column,
        sql_type=_LENGTH.sub("", str(db_type)),
        is_nullable=field.null,
        refers_to=target,
        series=_series_of(field, target),
        **_default_of(field),
    )


def _series_of(field: Any, target: Any) -> str:
    if target is not None:
        return "" if target in (*_OWN_IDS, Project) else str(target._meta.db_table)
    return ORDER_OF_EPISODES if field.model is Episode and field.name == "number" else ""


def numbered_tables() -> set[str]:
    """Name the tables with keys of the database's own that other rows refer to."""
    return {column.series for table in tables() for column in table.columns if column.refers_to and column.series}
