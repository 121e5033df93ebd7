"""Closed sets of words, as JSON has it. Written from the API's schema: change that."""

from typing import Literal, TypeAlias

ActionEnum: TypeAlias = Literal["created", "reinforced", "weakened", "superseded"]
BeliefStatus: TypeAlias = Literal[
    "active", "challenged", "revised", "merged", "split", "archived", "invalidated", "pruned", "forgotten"
]
BlankEnum: TypeAlias = Literal[""]
ClaimMode: TypeAlias = Literal[
    "asserted", "change", "advised", "asked", "hypothetical", "wished", "quoted", "ironic", "planned"
]
ContradictionStateEnum: TypeAlias = Literal["open", "contradicts", "compatible", "needs_a_person", "dismissed"]
CycleState: TypeAlias = Literal["queued", "running", "finished", "over_budget", "cancelled", "failed"]
EdgeKind: TypeAlias = Literal["entity", "time", "causal"]
EpisodeCardTypeEnum: TypeAlias = Literal["episode"]
EpisodeKind: TypeAlias = Literal["episode", "note"]
EpisodeState: TypeAlias = Literal["new", "leased", "pooled", "settled", "failed", "held"]
EpisodeStatus: TypeAlias = Literal[
    "active", "challenged", "invalidated", "merged", "superseded", "archived", "forgotten"
]
ExpandedBeliefTypeEnum: TypeAlias = Literal["belief"]
ExtractionEnum: TypeAlias = Literal["queued", "none"]
FactTypeEnum: TypeAlias = Literal["factual", "preference", "procedural", "architectural", "meta", "insight"]
ForgottenStatusEnum: TypeAlias = Literal["forgotten", "erased"]
KnowledgeEnum: TypeAlias = Literal["fact", "procedure", "narrative"]
LifecycleStateEnum: TypeAlias = Literal["candidate", "validated", "active", "stale", "archived"]
LineErrorStatusEnum: TypeAlias = Literal[403, 409, 413, 422]
LineageChangeKindEnum: TypeAlias = Literal["revision", "split", "merge", "supersession", "synthesis", "return"]
MemoryType: TypeAlias = Literal["episode", "belief"]
ModeEnum: TypeAlias = Literal["facts_only", "facts_plus_rules", "full_context"]
ProfileEnum: TypeAlias = Literal["default", "associative"]
ReasonEnum: TypeAlias = Literal["failures", "auth", "billing", "cap"]
RememberAnswerStateEnum: TypeAlias = Literal["done", "queued"]
RoleEnum: TypeAlias = Literal["user", "assistant", "tool", "system"]
ScopeEnum: TypeAlias = Literal["global", "project"]
Signal: TypeAlias = Literal["high", "medium", "low", "none"]
SourceEnum: TypeAlias = Literal["human", "ai", "interaction", "ingest", "dream"]
Tier: TypeAlias = Literal["explicit", "implied", "inferred", "speculative"]
TimeframeEnum: TypeAlias = Literal["current", "past", "always"]
TriggerEnum: TypeAlias = Literal["schedule", "episodes", "person", "replay", "backlog"]
TurnCardTypeEnum: TypeAlias = Literal["turn"]
ValueEnum: TypeAlias = Literal["useful", "wrong"]
VerdictEnum: TypeAlias = Literal["SUPPORTS", "CONTRADICTS", "PARTIAL"]
VerificationEnum: TypeAlias = Literal["unverified", "user_confirmed", "system_inferred", "disputed"]
