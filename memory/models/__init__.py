"""Every row of the project."""

from memory.models.beliefs import (
    Basis,
    Belief,
    BeliefAccess,
    BeliefEmbedding,
    Evidence,
    EvidenceKind,
    Lineage,
    LineageKind,
    Scope,
)
from memory.models.cycles import (
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
from memory.models.ledger import CallOutcome, ModelCall, ModelCallEpisode
from memory.models.tenancy import ApiKey, ConfidenceModel, Membership, Permission, Project, Role, Workspace

__all__ = [
    "DIMENSIONS",
    "ApiKey",
    "Basis",
    "Belief",
    "BeliefAccess",
    "BeliefEmbedding",
    "CallOutcome",
    "ClusterJob",
    "ClusterMember",
    "ConfidenceModel",
    "Cycle",
    "CycleStep",
    "Episode",
    "EpisodeAccess",
    "EpisodeEmbedding",
    "Evidence",
    "EvidenceKind",
    "GateDecision",
    "Heartbeat",
    "JobKind",
    "JobVerdict",
    "Lineage",
    "LineageKind",
    "Membership",
    "ModelCall",
    "ModelCallEpisode",
    "Permission",
    "Project",
    "Role",
    "Scope",
    "Source",
    "Trigger",
    "Workspace",
]
