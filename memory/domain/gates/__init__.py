"""The gates: pure rules that decide over a belief's structure and status, each with its reason and its facts.

They are walked in the order of `GATES`; a further gate is an entry here.
"""

from collections.abc import Mapping, Sequence

from memory.domain.gates.archive import ArchiveGate, archive_due_after, returns_from_archive
from memory.domain.gates.close import CloseGate
from memory.domain.gates.decisions import BeliefFacts, Gate, GateDecision, GateName, Reason, TwinFacts
from memory.domain.gates.merge import MergeGate
from memory.domain.gates.revise import ReviseGate
from memory.domain.gates.split import SplitGate

__all__ = [
    "GATES",
    "STRUCTURAL_GATES",
    "ArchiveGate",
    "BeliefFacts",
    "CloseGate",
    "Gate",
    "GateDecision",
    "GateName",
    "MergeGate",
    "Reason",
    "ReviseGate",
    "SplitGate",
    "TwinFacts",
    "archive_due_after",
    "returns_from_archive",
]

# Those that cannot act by themselves: what they decide waits for a model's words.
STRUCTURAL_GATES: Mapping[GateName, Gate] = {gate.name: gate for gate in (ReviseGate(), SplitGate(), MergeGate())}

GATES: Sequence[Gate] = (CloseGate(), *STRUCTURAL_GATES.values(), ArchiveGate())
