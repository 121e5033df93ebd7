"""The admin: every row of the project, shown to the members of its workspace and to nobody else."""

from memory.admin import (
    beliefs,
    claims,
    conversations,
    cycles,
    episodes,
    frame,
    graph,
    ledger,
    people,
    remembrances,
    restructuring,
    rivals,
    tenancy,
)

__all__ = [
    "beliefs",
    "claims",
    "conversations",
    "cycles",
    "episodes",
    "frame",
    "graph",
    "ledger",
    "people",
    "remembrances",
    "restructuring",
    "rivals",
    "tenancy",
]
