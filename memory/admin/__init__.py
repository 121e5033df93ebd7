"""The admin: every row of the project, shown to the members of its workspace and to nobody else."""

from memory.admin import (
    beliefs,
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
