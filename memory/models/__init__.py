"""Every row of the project."""

from memory.models.beliefs import (
    Basis,
    Belief,
    BeliefAccess,
    BeliefEmbedding,
    Evidence,
    EvidenceKind,
    FactType,
    Lineage,
    LineageKind,
    Scope,
)
from memory.models.boxes import Box, BoxMember, Trace
from memory.models.claims import Claim, ClaimEmbedding
from memory.models.conversations import Conversation, Turn, TurnEpisode
from memory.models.cycles import (
    Blame,
    ClusterJob,
    ClusterMember,
    Cycle,
    CycleStep,
    GateDecision,
    Heartbeat,
    JobKind,
    JobVerdict,
    Trigger,
)
from memory.models.episodes import DIMENSIONS, Episode, EpisodeAccess, EpisodeEmbedding, Source
from memory.models.erased import Erased
from memory.models.graph import Edge, Entity, Mention
from memory.models.history import BeliefEvent, Transition
from memory.models.ledger import CallOutcome, ModelCall, ModelCallEpisode
from memory.models.links import Link, LinkKind
from memory.models.pauses import Pause, PauseReason
from memory.models.redactions import Redaction
from memory.models.remembrances import FactOutcome, RememberedFact, Remembrance, RemembranceState, RivalOutcome
from memory.models.restructuring import ChildVerdict, StructuralChild, StructuralJob, StructuralKind
from memory.models.rivals import Rival, RivalState
from memory.models.surfacing import Surfaced
from memory.models.tallies import Tally
from memory.models.tenancy import ApiKey, ConfidenceModel, Membership, Permission, Project, Role, Workspace
from memory.models.text_statistics import TermFrequency, TextStatistics
from memory.models.undone import UndoneEvidence, UndoneLineage
from memory.models.upkeep import Upkeep
from memory.models.vector_counts import VectorCount

__all__ = [
    "DIMENSIONS",
    "ApiKey",
    "Basis",
    "Belief",
    "BeliefAccess",
    "BeliefEmbedding",
    "BeliefEvent",
    "Blame",
    "Box",
    "BoxMember",
    "CallOutcome",
    "ChildVerdict",
    "Claim",
    "ClaimEmbedding",
    "ClusterJob",
    "ClusterMember",
    "ConfidenceModel",
    "Conversation",
    "Cycle",
    "CycleStep",
    "Edge",
    "Entity",
    "Episode",
    "EpisodeAccess",
    "EpisodeEmbedding",
    "Erased",
    "Evidence",
    "EvidenceKind",
    "FactOutcome",
    "FactType",
    "GateDecision",
    "Heartbeat",
    "JobKind",
    "JobVerdict",
    "Lineage",
    "LineageKind",
    "Link",
    "LinkKind",
    "Membership",
    "Mention",
    "ModelCall",
    "ModelCallEpisode",
    "Pause",
    "PauseReason",
    "Permission",
    "Project",
    "Redaction",
    "RememberedFact",
    "Remembrance",
    "RemembranceState",
    "Rival",
    "RivalOutcome",
    "RivalState",
    "Role",
    "Scope",
    "Source",
    "StructuralChild",
    "StructuralJob",
    "StructuralKind",
    "Surfaced",
    "Tally",
    "TermFrequency",
    "TextStatistics",
    "Trace",
    "Transition",
    "Trigger",
    "Turn",
    "TurnEpisode",
    "UndoneEvidence",
    "UndoneLineage",
    "Upkeep",
    "VectorCount",
    "Workspace",
]
