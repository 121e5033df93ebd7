"""The numbers of beliefs: confidence, strength, gates, structure, and what is told of all of them."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Amount, Count, Positive, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidencePolicy:
    """How evidence becomes a confidence."""

    prior_alpha: Annotated[Positive, "ENGRAM_CONFIDENCE_PRIOR_ALPHA", "B4: α of a belief without evidence"] = 1.0
    prior_beta: Annotated[Positive, "ENGRAM_CONFIDENCE_PRIOR_BETA", "B4: β of a belief without evidence"] = 1.0
    partial_share: Annotated[
        Share, "ENGRAM_CONFIDENCE_PARTIAL_SHARE", "B4: share of a PARTIAL verdict that goes to each side"
    ] = 0.5
    ordinary_weight: Annotated[
        Positive, "ENGRAM_CONFIDENCE_ORDINARY_WEIGHT", "B4: base weight of an ordinary evidence row"
    ] = 1.0
    curator_weight: Annotated[
        Positive, "ENGRAM_CONFIDENCE_CURATOR_WEIGHT", "B4: base weight of a curator's correction"
    ] = 5.0
    announced_weight: Annotated[
        Positive, "ENGRAM_CONFIDENCE_ANNOUNCED_WEIGHT", "C1: base weight against a belief of an announced change"
    ] = 3.0
    independence: Annotated[
        bool, "ENGRAM_CONFIDENCE_INDEPENDENCE", "B4: the n-th row of one verdict from one origin weighs 1/n"
    ] = True
    interval_mass: Annotated[
        Share, "ENGRAM_CONFIDENCE_INTERVAL_MASS", "B4: share of the posterior that the shown interval holds"
    ] = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditivePolicy:
    """The additive model of confidence, which a workspace may choose."""

    birth: Annotated[Share, "ENGRAM_ADDITIVE_BIRTH", "R10a: confidence at birth, founding rows included"] = 0.6
    support: Annotated[Amount, "ENGRAM_ADDITIVE_SUPPORT", "R10a: what a supporting row of weight 1 adds"] = 0.1
    contradiction: Annotated[
        Amount, "ENGRAM_ADDITIVE_CONTRADICTION", "R10a: what a contradicting row of weight 1 takes away"
    ] = 0.2
    cap: Annotated[Share, "ENGRAM_ADDITIVE_CAP", "R10a: greatest confidence"] = 1.0
    floor: Annotated[Share, "ENGRAM_ADDITIVE_FLOOR", "R10a: least confidence"] = 0.1
    decimals: Annotated[Count, "ENGRAM_ADDITIVE_DECIMALS", "R10a: decimals to which confidence is rounded"] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthPolicy:
    """How a belief fades when nobody asks for it."""

    decay_days: Annotated[
        Positive, "ENGRAM_STRENGTH_DECAY_DAYS", "B5: days after which strength falls to 1/e, at stability 1"
    ] = 7.0
    unread_strength: Annotated[
        Share, "ENGRAM_STRENGTH_UNREAD_STRENGTH", "B5: strength of a belief just created and never accessed"
    ] = 0.5
    initial_stability: Annotated[Positive, "ENGRAM_STRENGTH_INITIAL_STABILITY", "B5: stability of a new belief"] = 1.0
    stability_growth: Annotated[
        Amount, "ENGRAM_STRENGTH_STABILITY_GROWTH", "B5: growth of stability on access, per log day waited"
    ] = 0.1
    stability_cap: Annotated[Positive, "ENGRAM_STRENGTH_STABILITY_CAP", "B5: greatest stability"] = 365.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DestabilizationPolicy:
    """When contradictions open a belief for revision."""

    threshold_scale: Annotated[
        Amount, "ENGRAM_DESTABILIZATION_THRESHOLD_SCALE", "B6: factor of ln(1+evidence)·ln(1+age in days)"
    ] = 0.3
    threshold_cap: Annotated[
        Positive, "ENGRAM_DESTABILIZATION_THRESHOLD_CAP", "B6: greatest threshold of the prediction error"
    ] = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """When a belief changes its status."""

    archive_confidence: Annotated[
        Share, "ENGRAM_GATE_ARCHIVE_CONFIDENCE", "B14: a belief below this confidence is archived"
    ] = 0.3
    archive_stale_days: Annotated[
        Positive, "ENGRAM_GATE_ARCHIVE_STALE_DAYS", "B14: days without reinforcement that make a weak belief stale"
    ] = 90.0
    archive_told_days: Annotated[
        Positive, "ENGRAM_GATE_ARCHIVE_TOLD_DAYS", "B14, E4: the same for a belief that somebody told plainly"
    ] = 365.0
    archive_stale_evidence: Annotated[
        Count, "ENGRAM_GATE_ARCHIVE_STALE_EVIDENCE", "B14: evidence from which a belief is not weak"
    ] = 5
    archive_doubt_confidence: Annotated[
        Share, "ENGRAM_GATE_ARCHIVE_DOUBT_CONFIDENCE", "B14: confidence below which a belief is doubtful"
    ] = 0.5
    archive_doubt_days: Annotated[
        Positive, "ENGRAM_GATE_ARCHIVE_DOUBT_DAYS", "B14: days without reinforcement that end a doubtful belief"
    ] = 180.0
    archive_restored_days: Annotated[
        Amount, "ENGRAM_GATE_ARCHIVE_RESTORED_DAYS", "B14: days that a person's restoring protects a belief"
    ] = 90.0
    archive_additive_contradictions: Annotated[
        Count,
        "ENGRAM_GATE_ARCHIVE_ADDITIVE_CONTRADICTIONS",
        "B14, R10a: contradicting rows without which the additive model archives nothing for low confidence",
    ] = 5
    return_confidence: Annotated[
        Share, "ENGRAM_GATE_RETURN_CONFIDENCE", "B14: confidence above which an archived belief comes back"
    ] = 0.5
    close_score: Annotated[
        Positive, "ENGRAM_GATE_CLOSE_SCORE", "C1: nats by which a change must be likelier than none"
    ] = 0.75
    close_few_score: Annotated[
        Positive, "ENGRAM_GATE_CLOSE_FEW_SCORE", "C1: the same where no more rows contradict than the fewest that must"
    ] = 1.25
    close_sure_score: Annotated[
        Positive, "ENGRAM_GATE_CLOSE_SURE_SCORE", "C1: nats, counted by origins, from which one origin less is enough"
    ] = 4.0
    close_contradictions: Annotated[
        Count, "ENGRAM_GATE_CLOSE_CONTRADICTIONS", "C1: fewest contradicting rows after a change"
    ] = 3
    close_origins: Annotated[
        Count, "ENGRAM_GATE_CLOSE_ORIGINS", "C1: fewest origins of the contradicting rows after a change"
    ] = 3
    revise_confidence: Annotated[
        Share, "ENGRAM_GATE_REVISE_CONFIDENCE", "B15: a belief below this confidence may be revised"
    ] = 0.4
    revise_peak: Annotated[
        Share, "ENGRAM_GATE_REVISE_PEAK", "B15: confidence that a belief must once have exceeded to be revised"
    ] = 0.5
    revise_contradictions: Annotated[Count, "ENGRAM_GATE_REVISE_CONTRADICTIONS", "B15: fewest contradicting rows"] = 3
    revise_evidence: Annotated[Count, "ENGRAM_GATE_REVISE_EVIDENCE", "B15: fewest rows of evidence"] = 5
    revise_origins: Annotated[Count, "ENGRAM_GATE_REVISE_ORIGINS", "B15: fewest origins of the contradicting rows"] = 2
    revise_depth: Annotated[
        Count, "ENGRAM_GATE_REVISE_DEPTH", "B15: depth of lineage from which a belief is revised no more"
    ] = 5
    split_contradictions: Annotated[
        Count, "ENGRAM_GATE_SPLIT_CONTRADICTIONS", "B12: fewest rows against, PARTIAL ones included"
    ] = 3
    split_supports: Annotated[Count, "ENGRAM_GATE_SPLIT_SUPPORTS", "B12: fewest supporting rows"] = 3
    split_partials: Annotated[Count, "ENGRAM_GATE_SPLIT_PARTIALS", "B12: fewest PARTIAL rows"] = 2
    split_evidence: Annotated[Count, "ENGRAM_GATE_SPLIT_EVIDENCE", "B12: fewest rows of evidence"] = 5
    split_origins: Annotated[Count, "ENGRAM_GATE_SPLIT_ORIGINS", "B12: fewest origins of each side"] = 2
    merge_similarity: Annotated[
        Share, "ENGRAM_GATE_MERGE_SIMILARITY", "B13: similarity that two beliefs must exceed to be one"
    ] = 0.92
    merge_confidence: Annotated[
        Share, "ENGRAM_GATE_MERGE_CONFIDENCE", "B13: confidence that both beliefs must exceed"
    ] = 0.6
    merge_settled_days: Annotated[
        Amount, "ENGRAM_GATE_MERGE_SETTLED_DAYS", "B13: days without a change of structure or statement"
    ] = 7.0
    undone_days: Annotated[
        Amount, "ENGRAM_GATE_UNDONE_DAYS", "B22: days in which no change that was undone is made again"
    ] = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RestructurePolicy:
    """How beliefs are revised, split and merged."""

    shown_episodes: Annotated[
        Count,
        "ENGRAM_RESTRUCTURE_SHOWN_EPISODES",
        "B12, B15: most episodes of evidence shown when a statement is asked for",
    ] = 12
    child_supports: Annotated[
        Count, "ENGRAM_RESTRUCTURE_CHILD_SUPPORTS", "B8.6: fewest supporting episodes of a child"
    ] = 3
    child_confidence: Annotated[
        Share, "ENGRAM_RESTRUCTURE_CHILD_CONFIDENCE", "B8.6: confidence that a child must exceed"
    ] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPolicy:
    """What is told of beliefs on looking at all of them."""

    duplicate_similarity: Annotated[
        Share, "ENGRAM_REFLECTION_DUPLICATE_SIMILARITY", "R7: similarity from which two beliefs may say the same"
    ] = 0.85
    pairs: Annotated[
        Count,
        "ENGRAM_REFLECTION_PAIRS",
        "R7: most pairs that a command tells of, or that are proposed to a cycle at once",
    ] = 1000
    meta_similarity: Annotated[
        Share, "ENGRAM_REFLECTION_META_SIMILARITY", "R7: similarity from which beliefs are of one group"
    ] = 0.60
    meta_group: Annotated[
        Count, "ENGRAM_REFLECTION_META_GROUP", "R7: fewest beliefs of a group that a belief is made about"
    ] = 3
    meta_groups: Annotated[Count, "ENGRAM_REFLECTION_META_GROUPS", "R7: most groups that are taken at once"] = 5
    meta_shown: Annotated[
        Count, "ENGRAM_REFLECTION_META_SHOWN", "R7: most beliefs of a group that a model is shown"
    ] = 12
    meta_stability: Annotated[
        Positive, "ENGRAM_REFLECTION_META_STABILITY", "R7: stability of a belief about beliefs"
    ] = 3.0
    half_life_days: Annotated[
        Positive,
        "ENGRAM_REFLECTION_HALF_LIFE_DAYS",
        "R7d: days without evidence that halve a confidence, at stability 1",
    ] = 30.0
    full_stability: Annotated[
        Positive, "ENGRAM_REFLECTION_FULL_STABILITY", "R7d: stability beyond which a belief fades no more slowly"
    ] = 5.0
    stale_confidence: Annotated[
        Share, "ENGRAM_REFLECTION_STALE_CONFIDENCE", "R7d: effective confidence below which a belief is stale"
    ] = 0.10
    prune_confidence: Annotated[
        Share, "ENGRAM_REFLECTION_PRUNE_CONFIDENCE", "R7d: effective confidence below which a belief may be pruned"
    ] = 0.05
    prune_evidence: Annotated[
        Count, "ENGRAM_REFLECTION_PRUNE_EVIDENCE", "R7d: rows of evidence from which a belief is never pruned"
    ] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContradictionPolicy:
    """Which beliefs may contradict each other, and how many a model is asked about."""

    from_similarity: Annotated[
        Share,
        "ENGRAM_CONTRADICTION_FROM_SIMILARITY",
        "R11: similarity from which two beliefs may contradict each other",
    ] = 0.40
    to_similarity: Annotated[
        Share, "ENGRAM_CONTRADICTION_TO_SIMILARITY", "R11: similarity up to which; from there on they may say the same"
    ] = 0.85
    pairs: Annotated[
        Count, "ENGRAM_CONTRADICTION_PAIRS", "R11: most new pairs that one look lists, the most similar"
    ] = 100
    batch: Annotated[Count, "ENGRAM_CONTRADICTION_BATCH", "R11: most beliefs that one call holds against another"] = 30
    check_seconds: Annotated[Positive, "ENGRAM_CONTRADICTION_CHECK_SECONDS", "R11: working time of one check"] = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishingPolicy:
    """Which beliefs stand in an agent's MEMORY.md, and for how long."""

    confidence: Annotated[
        Share, "ENGRAM_PUBLISHING_CONFIDENCE", "P1: confidence from which a belief is promoted, and stays"
    ] = 0.7
    evidence: Annotated[Count, "ENGRAM_PUBLISHING_EVIDENCE", "P1: fewest evidence rows of a promoted belief"] = 3
    origins: Annotated[Count, "ENGRAM_PUBLISHING_ORIGINS", "P1: fewest origins that bear it out"] = 2
    removal_confidence: Annotated[
        Share, "ENGRAM_PUBLISHING_REMOVAL_CONFIDENCE", "P4: confidence below which a former belief leaves the file"
    ] = 0.5
    former_days: Annotated[
        Positive, "ENGRAM_PUBLISHING_FORMER_DAYS", "P4: days after which a former belief leaves the file"
    ] = 30.0
    beliefs: Annotated[Count, "ENGRAM_PUBLISHING_BELIEFS", "P5: most beliefs in a file"] = 10
    former: Annotated[Count, "ENGRAM_PUBLISHING_FORMER", "P5: most former beliefs in a file"] = 5
    memory_importance: Annotated[
        Share, "ENGRAM_PUBLISHING_MEMORY_IMPORTANCE", "P8: importance from which an episode graduates into a file"
    ] = 0.8
    memory_accesses: Annotated[
        Count, "ENGRAM_PUBLISHING_MEMORY_ACCESSES", "P8: recalls after which it does so before it is old"
    ] = 3
    memory_days: Annotated[
        Positive, "ENGRAM_PUBLISHING_MEMORY_DAYS", "P8: days after which it does so without being recalled"
    ] = 14.0
    memories_per_pass: Annotated[
        Count, "ENGRAM_PUBLISHING_MEMORIES_PER_PASS", "P8: most episodes that graduate into a file in one pass"
    ] = 10
    memory_lines: Annotated[
        Count, "ENGRAM_PUBLISHING_MEMORY_LINES", "P8: most lines of graduated episodes in a file; the rest is archived"
    ] = 200
    archived_memories: Annotated[
        Count, "ENGRAM_PUBLISHING_ARCHIVED_MEMORIES", "P8: most episodes in the archive; the oldest leave it"
    ] = 5_000
    retry_seconds: Annotated[
        Positive, "ENGRAM_PUBLISHING_RETRY_SECONDS", "P11: after which a file that could not be written is tried again"
    ] = 10.0
    lock_seconds: Annotated[
        Positive, "ENGRAM_PUBLISHING_LOCK_SECONDS", "P7: how long a file that somebody else writes is waited for"
    ] = 3.0
