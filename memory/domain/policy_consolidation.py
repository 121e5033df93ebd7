"""The numbers of a cycle: calibration, clustering, what it takes in, and the time and calls that it may use."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Amount, Count, Positive, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPolicy:
    """Where labelled pairs lie on the reference scale of similarity."""

    unrelated_median: Annotated[
        Share, "ENGRAM_CALIBRATION_UNRELATED_MEDIAN", "B8a: reference of the median of unrelated pairs"
    ] = 0.20
    unrelated_top: Annotated[
        Share, "ENGRAM_CALIBRATION_UNRELATED_TOP", "B8a: reference of the upper quantile of unrelated pairs"
    ] = 0.60
    unrelated_top_quantile: Annotated[
        Share, "ENGRAM_CALIBRATION_UNRELATED_TOP_QUANTILE", "B8a: which upper quantile of unrelated pairs"
    ] = 0.99
    related_low: Annotated[
        Share, "ENGRAM_CALIBRATION_RELATED_LOW", "B8a: reference of the lower quantile of related pairs"
    ] = 0.70
    related_low_quantile: Annotated[
        Share, "ENGRAM_CALIBRATION_RELATED_LOW_QUANTILE", "B8a: which lower quantile of related pairs"
    ] = 0.10
    same_median: Annotated[
        Share, "ENGRAM_CALIBRATION_SAME_MEDIAN", "B8a: reference of the median of pairs that say the same"
    ] = 0.92
    crossing_gap: Annotated[
        Positive,
        "ENGRAM_CALIBRATION_CROSSING_GAP",
        "B8a: raw cosine on each side of the mean of two anchors that cross",
    ] = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPolicy:
    """Limits between the exact and the approximate way of clustering."""

    exact_limit: Annotated[Count, "ENGRAM_CLUSTERING_EXACT_LIMIT", "B8.2: most episodes that are clustered exactly"] = (
        20_000
    )
    component_limit: Annotated[
        Count, "ENGRAM_CLUSTERING_COMPONENT_LIMIT", "B8.2: largest connected component that is clustered exactly"
    ] = 1_000
    pairs_per_episode: Annotated[
        Count, "ENGRAM_CLUSTERING_PAIRS_PER_EPISODE", "B8.2: most similar pairs per episode for the exact way"
    ] = 50
    block_rows: Annotated[Count, "ENGRAM_CLUSTERING_BLOCK_ROWS", "B8.2: rows of one block of the similarity matrix"] = (
        1_024
    )
    leader_rows: Annotated[
        Count, "ENGRAM_CLUSTERING_LEADER_ROWS", "B8.2: rows that are compared with leaders at once"
    ] = 256
    leader_columns: Annotated[
        Count, "ENGRAM_CLUSTERING_LEADER_COLUMNS", "B8.2: leaders that such rows are compared with at once"
    ] = 4_096
    leader_passes: Annotated[
        Count,
        "ENGRAM_CLUSTERING_LEADER_PASSES",
        "B8.2: times that every vector may go to its nearest leader's centroid",
    ] = 2
    sketch_width: Annotated[
        Count,
        "ENGRAM_CLUSTERING_SKETCH_WIDTH",
        "B8.2: sums by which vectors over the exact limit are first held against leaders",
    ] = 128
    sketch_margin: Annotated[
        Share,
        "ENGRAM_CLUSTERING_SKETCH_MARGIN",
        "B8.2: how much less like a leader a vector's sketch may be than the vector",
    ] = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPolicy:
    """What one cycle takes in, and how alike things must be."""

    trigger_episodes: Annotated[
        Count, "ENGRAM_CONSOLIDATION_TRIGGER_EPISODES", "B7: new episodes that start a cycle"
    ] = 20
    every_hours: Annotated[Positive, "ENGRAM_CONSOLIDATION_EVERY_HOURS", "B7: hours between scheduled cycles"] = 4.0
    pace_minutes: Annotated[
        Positive,
        "ENGRAM_CONSOLIDATION_PACE_MINUTES",
        "B20: minutes whose ended cycles tell how fast the backlog shrinks",
    ] = 15.0
    archive_check_hours: Annotated[
        Positive, "ENGRAM_CONSOLIDATION_ARCHIVE_CHECK_HOURS", "B7: hours after which overdue archiving starts a cycle"
    ] = 24.0
    pooled_days: Annotated[
        Positive,
        "ENGRAM_CONSOLIDATION_POOLED_DAYS",
        "B7: days that an episode waits pooled before it settles without a belief",
    ] = 90.0
    lease_episodes: Annotated[
        Count, "ENGRAM_CONSOLIDATION_LEASE_EPISODES", "B8.1: most new episodes that one cycle leases"
    ] = 2_000
    cluster_similarity: Annotated[
        Share, "ENGRAM_CONSOLIDATION_CLUSTER_SIMILARITY", "B8.2: similarity from which episodes share a cluster"
    ] = 0.70
    clusters: Annotated[Count, "ENGRAM_CONSOLIDATION_CLUSTERS", "B8.2, B9: most clusters that one cycle takes"] = 10
    cluster_min: Annotated[
        Count, "ENGRAM_CONSOLIDATION_CLUSTER_MIN", "B8.2: fewest episodes that may found a belief"
    ] = 3
    cluster_max: Annotated[
        Count, "ENGRAM_CONSOLIDATION_CLUSTER_MAX", "B8.2: most episodes of one cluster, the rest are pooled"
    ] = 60
    central_episodes: Annotated[
        Count, "ENGRAM_CONSOLIDATION_CENTRAL_EPISODES", "B8.3: most central episodes shown to synthesis"
    ] = 12
    statement_words: Annotated[
        Count, "ENGRAM_CONSOLIDATION_STATEMENT_WORDS", "B8.3, B10: most words of a statement"
    ] = 30
    gathered_calls: Annotated[
        Count,
        "ENGRAM_CONSOLIDATION_GATHERED_CALLS",
        "B8.3: most classification calls a cycle for episodes without a cluster",
    ] = 10
    gathered_beliefs: Annotated[
        Count,
        "ENGRAM_CONSOLIDATION_GATHERED_BELIEFS",
        "B8.3: most beliefs that a model judges such episodes against in one call",
    ] = 8
    match_similarity: Annotated[
        Share,
        "ENGRAM_CONSOLIDATION_MATCH_SIMILARITY",
        "B8.4: similarity above which an episode is held against a belief",
    ] = 0.70
    match_beliefs: Annotated[
        Count, "ENGRAM_CONSOLIDATION_MATCH_BELIEFS", "B8.4, B9: most existing beliefs that one cluster is held against"
    ] = 5
    wordless_similarity: Annotated[
        Share,
        "ENGRAM_CONSOLIDATION_WORDLESS_SIMILARITY",
        "B8.4: similarity below which an episode without a word in common with a belief is not asked about",
    ] = 0.80
    reinforce_similarity: Annotated[
        Share,
        "ENGRAM_CONSOLIDATION_REINFORCE_SIMILARITY",
        "B8.4: similarity above which the pair question alone may support",
    ] = 0.92
    classify_episodes: Annotated[
        Count, "ENGRAM_CONSOLIDATION_CLASSIFY_EPISODES", "B8.4: most episodes of one classification call"
    ] = 12
    classify_statements: Annotated[
        Count,
        "ENGRAM_CONSOLIDATION_CLASSIFY_STATEMENTS",
        "B8.4: most statements that one classification call asks about",
    ] = 5
    birth_supports: Annotated[
        Count, "ENGRAM_CONSOLIDATION_BIRTH_SUPPORTS", "B8.4: fewest supporting episodes of a new belief"
    ] = 3
    birth_confidence: Annotated[
        Share, "ENGRAM_CONSOLIDATION_BIRTH_CONFIDENCE", "B8.4: confidence that a new belief must exceed"
    ] = 0.5
    twin_similarity: Annotated[
        Share,
        "ENGRAM_CONSOLIDATION_TWIN_SIMILARITY",
        "B8.5: similarity above which two new statements of a cycle are one",
    ] = 0.92


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPolicy:
    """Time, attempts and calls that one cycle may use."""

    call_seconds: Annotated[Positive, "ENGRAM_BUDGET_CALL_SECONDS", "B9: longest model call"] = 10.0
    working_seconds: Annotated[Positive, "ENGRAM_BUDGET_WORKING_SECONDS", "B9: working time of one cycle"] = 120.0
    attempt_seconds: Annotated[
        Positive, "ENGRAM_BUDGET_ATTEMPT_SECONDS", "B9: working time that a new attempt has at least"
    ] = 30.0
    margin_seconds: Annotated[
        Amount, "ENGRAM_BUDGET_MARGIN_SECONDS", "B9: time kept free between a call's end and the deadline"
    ] = 1.0
    call_attempts: Annotated[
        Count, "ENGRAM_BUDGET_CALL_ATTEMPTS", "B9: attempts of one model call, over all layers"
    ] = 3
    cycle_attempts: Annotated[
        Count,
        "ENGRAM_BUDGET_CYCLE_ATTEMPTS",
        "B9: attempts of one cycle that workers took up before it counts as failed",
    ] = 10
    job_claims: Annotated[
        Count, "ENGRAM_BUDGET_JOB_CLAIMS", "B9: workers that one job may cost before it counts as poison"
    ] = 5
    cooldown_minutes: Annotated[
        Positive,
        "ENGRAM_BUDGET_COOLDOWN_MINUTES",
        "B9: rest after a cycle that got nothing done; doubles with each in a row",
    ] = 2.0
    cooldown_hours: Annotated[Positive, "ENGRAM_BUDGET_COOLDOWN_HOURS", "B9: longest such rest"] = 4.0
    probe_hours: Annotated[
        Positive, "ENGRAM_BUDGET_PROBE_HOURS", "B9: rest after a model server refused the key or the account"
    ] = 6.0
    episode_failures: Annotated[
        Count, "ENGRAM_BUDGET_EPISODE_FAILURES", "B11: failed cycles after which an episode is a dead letter"
    ] = 3
    reply_tokens: Annotated[
        Count, "ENGRAM_BUDGET_REPLY_TOKENS", "B9: most tokens of a reply, told the server; models that reason need more"
    ] = 400
    reply_bytes: Annotated[
        Count, "ENGRAM_BUDGET_REPLY_BYTES", "B9: longest answer of a model server, decompressed; no more of it is read"
    ] = 2**24
    verdict_tokens: Annotated[
        Count, "ENGRAM_BUDGET_VERDICT_TOKENS", "B9: tokens that a reply may have besides for each verdict"
    ] = 30
    calls_in_flight: Annotated[
        Count, "ENGRAM_BUDGET_CALLS_IN_FLIGHT", "B9: model calls of one workspace at the same time"
    ] = 64
    lease_seconds: Annotated[
        Positive, "ENGRAM_BUDGET_LEASE_SECONDS", "B8: a lease that is not renewed ends after this"
    ] = 20.0
    renew_seconds: Annotated[Positive, "ENGRAM_BUDGET_RENEW_SECONDS", "B8: time between renewals of a lease"] = 5.0
    wait_seconds: Annotated[
        Amount, "ENGRAM_BUDGET_WAIT_SECONDS", "B9: longest wait inside a step; for a longer one it gives its lease back"
    ] = 5.0
    last_call_seconds: Annotated[
        Positive, "ENGRAM_BUDGET_LAST_CALL_SECONDS", "B9: age of a step after which it starts no further call"
    ] = 60.0
    sweep_seconds: Annotated[
        Positive, "ENGRAM_BUDGET_SWEEP_SECONDS", "B8: time between two looks for cycles whose lease ran out"
    ] = 10.0
    outage_seconds: Annotated[
        Positive, "ENGRAM_BUDGET_OUTAGE_SECONDS", "B9: how long a step keeps trying while the database is away"
    ] = 90.0
