"""Every number of the domain, one frozen dataclass per stage.

A field's annotation says all there is to know about it: its type, its sane range, and one line with the id of the rule
it belongs to. `.env.example` and `policy_settings`, which reads the environment, take them from there (B24).
"""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_conversations import ExtractionPolicy, ReadingPolicy, SurprisePolicy, TrustPolicy
from memory.domain.policy_graph import BoxPolicy, GraphPolicy, MaintenancePolicy
from memory.domain.policy_ranges import Amount, Count, Positive, Share
from memory.domain.policy_remembering import ContextPolicy, ReflectionPolicy, RememberPolicy, RivalPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidencePolicy:
    """How evidence becomes a confidence."""

    prior_alpha: Annotated[Positive, "B4: α of a belief without evidence"] = 1.0
    prior_beta: Annotated[Positive, "B4: β of a belief without evidence"] = 1.0
    partial_share: Annotated[Share, "B4: share of a PARTIAL verdict that goes to each side"] = 0.5
    ordinary_weight: Annotated[Positive, "B4: base weight of an ordinary evidence row"] = 1.0
    curator_weight: Annotated[Positive, "B4: base weight of a curator's correction"] = 5.0
    announced_weight: Annotated[Positive, "C1: base weight against a belief of an announced change"] = 3.0
    independence: Annotated[bool, "B4: the n-th row of one verdict from one origin weighs 1/n"] = True
    interval_mass: Annotated[Share, "B4: share of the posterior that the shown interval holds"] = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalPolicy:
    """How a belief fades when nobody asks for it."""

    decay_days: Annotated[Positive, "B5: days after which strength falls to 1/e, at stability 1"] = 7.0
    unread_strength: Annotated[Share, "B5: strength of a belief just created and never accessed"] = 0.5
    initial_stability: Annotated[Positive, "B5: stability of a new belief"] = 1.0
    stability_growth: Annotated[Amount, "B5: growth of stability on access, per log day waited"] = 0.1
    stability_cap: Annotated[Positive, "B5: greatest stability"] = 365.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DestabilizationPolicy:
    """When contradictions open a belief for revision."""

    threshold_scale: Annotated[Amount, "B6: factor of ln(1+evidence)·ln(1+age in days)"] = 0.3
    threshold_cap: Annotated[Positive, "B6: greatest threshold of the prediction error"] = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPolicy:
    """Where labelled pairs lie on the reference scale of similarity."""

    unrelated_median: Annotated[Share, "B8a: reference of the median of unrelated pairs"] = 0.20
    unrelated_top: Annotated[Share, "B8a: reference of the upper quantile of unrelated pairs"] = 0.60
    unrelated_top_quantile: Annotated[Share, "B8a: which upper quantile of unrelated pairs"] = 0.99
    related_low: Annotated[Share, "B8a: reference of the lower quantile of related pairs"] = 0.70
    related_low_quantile: Annotated[Share, "B8a: which lower quantile of related pairs"] = 0.10
    same_median: Annotated[Share, "B8a: reference of the median of pairs that say the same"] = 0.92
    crossing_gap: Annotated[Positive, "B8a: raw cosine on each side of the mean of two anchors that cross"] = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteringPolicy:
    """Limits between the exact and the approximate way of clustering."""

    exact_limit: Annotated[Count, "B8.2: most episodes that are clustered exactly"] = 20_000
    component_limit: Annotated[Count, "B8.2: largest connected component that is clustered exactly"] = 1_000
    pairs_per_episode: Annotated[Count, "B8.2: most similar pairs per episode for the exact way"] = 50
    block_rows: Annotated[Count, "B8.2: rows of one block of the similarity matrix"] = 1_024
    leader_rows: Annotated[Count, "B8.2: rows that are compared with leaders at once"] = 256
    leader_columns: Annotated[Count, "B8.2: leaders that such rows are compared with at once"] = 4_096
    leader_passes: Annotated[Count, "B8.2: times that every vector may go to its nearest leader's centroid"] = 2
    sketch_width: Annotated[
        Count, "B8.2: sums by which vectors over the exact limit are first held against leaders"
    ] = 128
    sketch_margin: Annotated[Share, "B8.2: how much less like a leader a vector's sketch may be than the vector"] = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPolicy:
    """What one cycle takes in, and how alike things must be."""

    trigger_episodes: Annotated[Count, "B7: new episodes that start a cycle"] = 20
    every_hours: Annotated[Positive, "B7: hours between scheduled cycles"] = 4.0
    pace_minutes: Annotated[Positive, "B20: minutes whose ended cycles tell how fast the backlog shrinks"] = 15.0
    archive_check_hours: Annotated[Positive, "B7: hours after which overdue archiving starts a cycle"] = 24.0
    pooled_days: Annotated[Positive, "B7: days that an episode waits pooled before it settles without a belief"] = 90.0
    lease_episodes: Annotated[Count, "B8.1: most new episodes that one cycle leases"] = 2_000
    cluster_similarity: Annotated[Share, "B8.2: similarity from which episodes share a cluster"] = 0.70
    clusters: Annotated[Count, "B8.2, B9: most clusters that one cycle takes"] = 10
    cluster_min: Annotated[Count, "B8.2: fewest episodes that may found a belief"] = 3
    cluster_max: Annotated[Count, "B8.2: most episodes of one cluster, the rest are pooled"] = 60
    central_episodes: Annotated[Count, "B8.3: most central episodes shown to synthesis"] = 12
    statement_words: Annotated[Count, "B8.3, B10: most words of a statement"] = 30
    gathered_calls: Annotated[Count, "B8.3: most classification calls a cycle for episodes without a cluster"] = 10
    gathered_beliefs: Annotated[Count, "B8.3: most beliefs that a model judges such episodes against in one call"] = 8
    match_similarity: Annotated[Share, "B8.4: similarity above which an episode is held against a belief"] = 0.70
    match_beliefs: Annotated[Count, "B8.4, B9: most existing beliefs that one cluster is held against"] = 5
    wordless_similarity: Annotated[
        Share, "B8.4: similarity below which an episode without a word in common with a belief is not asked about"
    ] = 0.80
    reinforce_similarity: Annotated[Share, "B8.4: similarity above which the guard alone may support"] = 0.92
    classify_episodes: Annotated[Count, "B8.4: most episodes of one classification call"] = 12
    classify_statements: Annotated[Count, "B8.4: most statements that one classification call asks about"] = 5
    birth_supports: Annotated[Count, "B8.4: fewest supporting episodes of a new belief"] = 3
    birth_confidence: Annotated[Share, "B8.4: confidence that a new belief must exceed"] = 0.5
    twin_similarity: Annotated[Share, "B8.5: similarity above which two new statements of a cycle are one"] = 0.92


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPolicy:
    """Time, attempts and calls that one cycle may use."""

    call_seconds: Annotated[Positive, "B9: longest model call"] = 10.0
    working_seconds: Annotated[Positive, "B9: working time of one cycle"] = 120.0
    attempt_seconds: Annotated[Positive, "B9: working time that a new attempt has at least"] = 30.0
    margin_seconds: Annotated[Amount, "B9: time kept free between a call's end and the deadline"] = 1.0
    call_attempts: Annotated[Count, "B9: attempts of one model call, over all layers"] = 3
    cycle_attempts: Annotated[Count, "B9: attempts of one cycle that workers took up before it counts as failed"] = 10
    job_claims: Annotated[Count, "B9: workers that one job may cost before it counts as poison"] = 5
    cooldown_minutes: Annotated[
        Positive, "B9: rest after a cycle that got nothing done; doubles with each in a row"
    ] = 2.0
    cooldown_hours: Annotated[Positive, "B9: longest such rest"] = 4.0
    probe_hours: Annotated[Positive, "B9: rest after a model server refused the key or the account"] = 6.0
    episode_failures: Annotated[Count, "B11: failed cycles after which an episode is a dead letter"] = 3
    reply_tokens: Annotated[Count, "B9: most tokens of a reply, told the server; models that reason need more"] = 400
    reply_bytes: Annotated[Count, "B9: longest answer of a model server, decompressed; no more of it is read"] = 2**24
    verdict_tokens: Annotated[Count, "B9: tokens that a reply may have besides for each verdict"] = 30
    fact_tokens: Annotated[Count, "B9: tokens that a reply may have besides for each turn whose facts are asked"] = 200
    calls_in_flight: Annotated[Count, "B9: model calls of one workspace at the same time"] = 64
    lease_seconds: Annotated[Positive, "B8: a lease that is not renewed ends after this"] = 20.0
    renew_seconds: Annotated[Positive, "B8: time between renewals of a lease"] = 5.0
    wait_seconds: Annotated[Amount, "B9: longest wait inside a step; for a longer one it gives its lease back"] = 5.0
    last_call_seconds: Annotated[Positive, "B9: age of a step after which it starts no further call"] = 60.0
    sweep_seconds: Annotated[Positive, "B8: time between two looks for cycles whose lease ran out"] = 10.0
    outage_seconds: Annotated[Positive, "B9: how long a step keeps trying while the database is away"] = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """When a belief changes its status."""

    archive_confidence: Annotated[Share, "B14: a belief below this confidence is archived"] = 0.3
    archive_stale_days: Annotated[Positive, "B14: days without reinforcement that make a weak belief stale"] = 90.0
    archive_told_days: Annotated[Positive, "B14, E4: the same for a belief that somebody told plainly"] = 365.0
    archive_stale_evidence: Annotated[Count, "B14: evidence from which a belief is not weak"] = 5
    archive_doubt_confidence: Annotated[Share, "B14: confidence below which a belief is doubtful"] = 0.5
    archive_doubt_days: Annotated[Positive, "B14: days without reinforcement that end a doubtful belief"] = 180.0
    archive_restored_days: Annotated[Amount, "B14: days that a person's restoring protects a belief"] = 90.0
    archive_additive_contradictions: Annotated[
        Count, "B14, R10a: contradicting rows without which the additive model archives nothing for low confidence"
    ] = 5
    return_confidence: Annotated[Share, "B14: confidence above which an archived belief comes back"] = 0.5
    close_score: Annotated[Positive, "C1: nats by which a change must be likelier than none"] = 0.75
    close_few_score: Annotated[Positive, "C1: the same where no more rows contradict than the fewest that must"] = 1.25
    close_sure_score: Annotated[Positive, "C1: nats, counted by origins, from which one origin less is enough"] = 4.0
    overturn_score: Annotated[
        Positive, "E4: nats from which another value may be believed beside one that holds the slot"
    ] = 0.7
    close_contradictions: Annotated[Count, "C1: fewest contradicting rows after a change"] = 3
    close_origins: Annotated[Count, "C1: fewest origins of the contradicting rows after a change"] = 3
    revise_confidence: Annotated[Share, "B15: a belief below this confidence may be revised"] = 0.4
    revise_peak: Annotated[Share, "B15: confidence that a belief must once have exceeded to be revised"] = 0.5
    revise_contradictions: Annotated[Count, "B15: fewest contradicting rows"] = 3
    revise_evidence: Annotated[Count, "B15: fewest rows of evidence"] = 5
    revise_origins: Annotated[Count, "B15: fewest origins of the contradicting rows"] = 2
    revise_depth: Annotated[Count, "B15: depth of lineage from which a belief is revised no more"] = 5
    split_contradictions: Annotated[Count, "B12: fewest rows against, PARTIAL ones included"] = 3
    split_supports: Annotated[Count, "B12: fewest supporting rows"] = 3
    split_partials: Annotated[Count, "B12: fewest PARTIAL rows"] = 2
    split_evidence: Annotated[Count, "B12: fewest rows of evidence"] = 5
    split_origins: Annotated[Count, "B12: fewest origins of each side"] = 2
    merge_similarity: Annotated[Share, "B13: similarity that two beliefs must exceed to be one"] = 0.92
    merge_confidence: Annotated[Share, "B13: confidence that both beliefs must exceed"] = 0.6
    merge_settled_days: Annotated[Amount, "B13: days without a change of structure or statement"] = 7.0
    undone_days: Annotated[Amount, "B22: days in which no change that was undone is made again"] = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditivePolicy:
    """The additive model of confidence, which a workspace may choose."""

    birth: Annotated[Share, "R10a: confidence at birth, founding rows included"] = 0.6
    support: Annotated[Amount, "R10a: what a supporting row of weight 1 adds"] = 0.1
    contradiction: Annotated[Amount, "R10a: what a contradicting row of weight 1 takes away"] = 0.2
    cap: Annotated[Share, "R10a: greatest confidence"] = 1.0
    floor: Annotated[Share, "R10a: least confidence"] = 0.1
    decimals: Annotated[Count, "R10a: decimals to which confidence is rounded"] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RestructurePolicy:
    """How beliefs are revised, split and merged."""

    shown_episodes: Annotated[Count, "B12, B15: most episodes of evidence shown when a statement is asked for"] = 12
    circumstance_episodes: Annotated[
        Count, "B12: fewest episodes of a side that name a circumstance before rules divide a belief by it"
    ] = 2
    child_supports: Annotated[Count, "B8.6: fewest supporting episodes of a child"] = 3
    child_confidence: Annotated[Share, "B8.6: confidence that a child must exceed"] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestPolicy:
    """What an episode may look like."""

    text_bytes: Annotated[Count, "B1: longest text of an episode, in bytes of UTF-8"] = 32 * 1024
    body_bytes: Annotated[Count, "B1: longest body of a request"] = 8 * 1024 * 1024
    import_bytes: Annotated[Count, "R14: longest file that a request brings to be imported"] = 1024**3
    entities: Annotated[Count, "B1: most entities of an episode"] = 32
    tags: Annotated[Count, "B1: most tags of an episode"] = 32
    bulk_items: Annotated[Count, "B1: most episodes of one request"] = 1_000
    future_days: Annotated[Amount, "B1: how far in the future an episode may have occurred"] = 1.0
    importance: Annotated[Share, "B1: importance of an episode that comes without one"] = 0.5
    speaker_characters: Annotated[Count, "B1: longest speaker's name read from the text"] = 40
    speaker_turns: Annotated[Count, "B1: turns of a session that a name must open to be its speaker"] = 2
    replay_gap_days: Annotated[Positive, "B7: pause of a replayed history after which a cycle runs"] = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPolicy:
    """When the turns of a conversation are read, and how many at once."""

    buffer: Annotated[Count, "L2: buffered turns of a conversation that are read together"] = 5
    age_minutes: Annotated[Positive, "L2: minutes since the last extraction after which what is buffered is read"] = (
        15.0
    )
    surprise: Annotated[Share, "L2: 1 - mean similarity above which a turn has its buffer read early"] = 0.35
    surprise_neighbours: Annotated[Count, "L2: nearest episodes whose mean similarity tells"] = 5
    surprise_words: Annotated[Count, "L2: fewest words of a turn that can surprise"] = 5
    surprise_turns: Annotated[Count, "L2: most turns that one look compares"] = 256
    surprise_seconds: Annotated[Positive, "L2: time that one such look may take"] = 2.0
    soft_cues: Annotated[Count, "L1: different soft cues that make a signal medium"] = 2
    scan_characters: Annotated[Count, "L1: most characters of a text that are scanned, half of them at each end"] = (
        8_000
    )
    erased_words: Annotated[Count, "L4: fewest words by which an erased turn without id and time is refused"] = 4
    batch: Annotated[Count, "L2: most turns of one extraction"] = 20
    batch_bytes: Annotated[Count, "L2: most text of one extraction, in bytes of UTF-8, but for a single turn"] = 65_536
    resend_seconds: Annotated[Positive, "L2: time after which a worker is told again that turns are due"] = 60.0
    cap_minutes: Annotated[Positive, "L2: rest of a conversation whose workspace may spend no more today"] = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    """How results are scored and blended."""

    similarity_weight: Annotated[Share, "B17: weight of confidence·similarity in a belief's score"] = 0.5
    strength_weight: Annotated[Share, "B17: weight of retrieval strength in a belief's score"] = 0.3
    text_weight: Annotated[Share, "B17: weight of the text score in a belief's score"] = 0.2
    min_confidence: Annotated[Share, "B17: confidence that a belief must exceed to be recalled"] = 0.4
    belief_blend: Annotated[Share, "B17: factor of a belief's score beside episodes"] = 0.8
    belief_floor: Annotated[float, "B17: fused standard score among the episodes found that a belief must reach"] = 2.0
    belief_rivals: Annotated[Count, "B17: best episodes that bear a belief out, or of which it matches the last"] = 3
    belief_gap: Annotated[Amount, "B17: standard score by which a belief may fall short of that episode"] = 0.6
    least_text_weight: Annotated[Share, "B17: weight of the text arm where words cover little of the query"] = 0.0
    most_text_weight: Annotated[Share, "B17: weight of the text arm where words cover enough of the query"] = 0.7
    query_rarity: Annotated[
        Amount, "B17: power of rarity by which a word weighs in a query's vector of weighted words"
    ] = 0.75
    least_coverage: Annotated[Share, "B17: coverage of the query up to which the text arm weighs least"] = 0.125
    enough_coverage: Annotated[Share, "B17: coverage of the query from which the text arm weighs most"] = 0.6
    own_turn_prior: Annotated[Amount, "B17: standard scores that what a person said has over what an AI answered"] = 1.0
    asked_slot_prior: Annotated[Amount, "B17: standard scores of an episode that asserts what the query asks about"] = (
        2.0
    )
    newest_answer: Annotated[Amount, "B17: share of that prior for what was said last of what has one value"] = 1.5
    oldest_answer: Annotated[Amount, "B17: least share of that prior for what was said before"] = 0.5
    answer_step: Annotated[Amount, "B17: what of that share is lost with each later answer"] = 0.2
    asked_time_prior: Annotated[Amount, "B17: standard scores of an episode of the time that is asked about"] = 3.0
    asked_time_beliefs: Annotated[Share, "B17: factor of a belief's score where a time is asked about"] = 0.7
    unasked_beliefs: Annotated[
        Share, "B17: factor of a belief's score that does not say what is asked for, where another memory does"
    ] = 0.7
    occasion_share: Annotated[Share, "B17: share of the best coverage of all that makes an episode an occasion"] = 0.5
    occasions: Annotated[Count, "B17: nearest episodes that are occasions where no words tell"] = 5
    named_speaker_prior: Annotated[Amount, "B17: standard scores of an episode whose speaker the query names"] = 0.3
    standing_order_prior: Annotated[Amount, "B17: standard scores of an episode that orders what is always done"] = 1.0
    long_text: Annotated[Count, "B17: different words from which on a text is long"] = 40
    long_text_prior: Annotated[Amount, "B17: standard scores that a long text lacks, by the log of how much longer"] = (
        0.7
    )
    session_weight: Annotated[Amount, "B17: weight of how a session answers, beside an episode's own score"] = 1.0
    session_turns: Annotated[Count, "B17: best episodes of a session that tell how it answers"] = 10
    next_share: Annotated[Share, "B17: share of a match's text score for the turns next to it"] = 0.4
    answer_share: Annotated[Share, "B17: share of a matching question's text score for the turn after it"] = 0.8
    second_share: Annotated[Share, "B17: share of a match's text score for the turns two away"] = 0.2
    context_matches: Annotated[Count, "B17: best matches that what stands beside them is looked at of"] = 20
    small_collection: Annotated[Count, "B17: texts of a workspace up to which any word makes a candidate"] = 2_000
    rare_share: Annotated[Share, "B17: share of texts that a word must stay below to choose candidates"] = 0.05
    rare_terms: Annotated[Count, "B17: most words that choose candidates"] = 4
    matching_texts: Annotated[Count, "B17: most texts with a query's words that one search compares"] = 5_000
    recount_least: Annotated[Count, "B17: new texts after which a workspace's words are counted"] = 100
    recount_share: Annotated[Share, "B17: the same, as a share of those counted, where that is more"] = 0.1
    length_sample: Annotated[Count, "B17: texts measured for their mean length before they are counted"] = 1_000
    least_deviation: Annotated[Positive, "B17: deviation of fused scores below which they are not stretched to 1"] = 0.1
    logistic_midpoint: Annotated[float, "B17: fused standard score that becomes 0.5"] = 5.0
    logistic_slope: Annotated[Positive, "B17: steepness of the logistic over fused scores"] = 0.4
    candidates: Annotated[Count, "B17: candidates that each channel brings of each kind"] = 50
    successions: Annotated[Count, "B16: best episodes looked at for a successor; more results: twice as many"] = 20
    near_misses: Annotated[Count, "B17: near-misses that an X-ray tells of"] = 5
    query_terms: Annotated[Count, "B17: most words of a query that the text channel asks for"] = 64
    query_characters: Annotated[Count, "B17: longest query"] = 8_000
    daily_tokens: Annotated[Count, "B9: tokens of recall's embeddings per workspace and UTC day"] = 5_000_000
    embed_seconds: Annotated[Positive, "B17: longest wait for the query's vector"] = 2.0
    channel_seconds: Annotated[Positive, "B17: longest time of a channel; over it, recall goes on without"] = 0.3
    exact_vectors: Annotated[Count, "B17: vectors up to which all are compared; more are worth an index"] = 5_000
    least_index_share: Annotated[Share, "B17: share of an index's vectors that must be in question to use it"] = 0.01
    own_index_share: Annotated[Share, "B17: share of a model's vectors from which no workspace needs its own index"] = (
        0.5
    )
    drop_index_share: Annotated[Share, "B17: share of what is worth an index below which it is dropped"] = 0.5
    least_own_share: Annotated[
        Share, "B17: share of all texts from which an index over words finds mostly one's own"
    ] = 0.1
    exact_texts: Annotated[Count, "B17: texts of a workspace up to which all are looked at for words"] = 5_000
    search_effort: Annotated[
        Count, "B17: vectors in question that an index keeps in view while it searches (ef_search)"
    ] = 64
    index_megabytes: Annotated[Count, "B17: memory that the making of an index may take"] = 512
    index_seconds: Annotated[Positive, "B17: time between two looks at which indexes are needed"] = 60.0
    waiting_turns: Annotated[Count, "B17: newest turns that wait to be read and that a recall looks at"] = 50
    rerank_candidates: Annotated[Count, "B17: best candidates that a re-ranker reads, where there is one"] = 50
    rerank_seconds: Annotated[Positive, "B17: longest time of a re-ranker; over it, the order stays"] = 1.0
    limit: Annotated[Count, "B17: results when no limit is asked for"] = 10
    max_limit: Annotated[Count, "B17: most results of one recall"] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevancePolicy:
    """What a memory must reach to have to do with a query, on the reference scale of similarity."""

    floor: Annotated[float, "B16: similarity, with all that adds to it, from which a memory stands out"] = 0.71
    words: Annotated[Amount, "B16: what is added for telling words that cover all of the query"] = 0.95
    asked: Annotated[Amount, "B16: what is added for asserting what the query asks about"] = 0.90
    own: Annotated[Amount, "B16: what is added where the query is about somebody's own matters"] = 0.25
    task: Annotated[Amount, "B16: what is taken off where the query sets a task"] = 0.25
    foreign: Annotated[
        Amount, "B16: what is taken off likeness in a language that the model does not know, where no word is shared"
    ] = 0.3
    bare: Annotated[Amount, "B16: the same, where the query has but one telling word"] = 0.15
    unknown: Annotated[Share, "B16: similarity that a memory without a vector counts as having"] = 0.45


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottlePolicy:
    """How often a key may call; so many at once, and as many again in the course of each minute."""

    recall_per_minute: Annotated[Amount, "B9: recalls of one key a minute; 0 for no limit"] = 60_000.0
    read_per_minute: Annotated[Amount, "B9: other readings of one key a minute; 0 for no limit"] = 60_000.0
    write_per_minute: Annotated[Amount, "B9: writings of one key a minute; 0 for no limit"] = 60_000.0
    curate_per_minute: Annotated[Amount, "B9: curator's acts of one key a minute; 0 for no limit"] = 6_000.0
    owner_per_minute: Annotated[Amount, "B9: owner's acts of one key a minute; 0 for no limit"] = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociativePolicy:
    """How the associative profile scores memories; the five weights together make 1."""

    similarity_weight: Annotated[Share, "R5: weight of similarity"] = 0.50
    importance_weight: Annotated[Share, "R5: weight of importance"] = 0.20
    recency_weight: Annotated[Share, "R5, R6: weight of recency"] = 0.10
    recency_decay: Annotated[Amount, "R5, R6: decay of recency a day; 0.023 halves it in about 30 days"] = 0.023
    stability_weight: Annotated[Share, "R5: weight of stability"] = 0.05
    full_stability: Annotated[Positive, "R5: stability that counts in full"] = 5.0
    subject_weight: Annotated[Share, "R5, R6: weight of a subject that the query names"] = 0.15
    insight_factor: Annotated[Share, "R5: factor of an insight's score"] = 0.5
    min_similarity: Annotated[Share, "R5: similarity that a memory must reach"] = 0.20
    neighbours_of: Annotated[Count, "R5: best results whose neighbours come along"] = 3
    neighbour_factor: Annotated[Share, "R5: share of a result's score that its neighbours have"] = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecyclePolicy:
    """What the policy state of an episode adds to its score; one that has none is left alone."""

    enabled: Annotated[bool, "L14: the policy state of an episode moves its score"] = True
    hides_stale: Annotated[bool, "L14: stale and archived states are not recalled at all"] = False
    active_boost: Annotated[float, "L14: added for the state active"] = 0.05
    validated_boost: Annotated[float, "L14: added for the state validated"] = 0.03
    candidate_boost: Annotated[float, "L14: added for the state candidate"] = -0.01
    stale_boost: Annotated[float, "L14: added for the state stale"] = -0.06
    archived_boost: Annotated[float, "L14: added for the state archived"] = -0.08
    disputed_boost: Annotated[float, "L14: added, besides, for what is disputed"] = -0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackPolicy:
    """How words on the use of a memory add up."""

    step: Annotated[Share, "L13: share of the way to 1, useful, or to -1, wrong, that one word of feedback goes"] = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecollectionPolicy:
    """How much a recollection holds."""

    episodes: Annotated[Count, "B16: most episodes of a recollection"] = 3
    beliefs: Annotated[Count, "B16: most beliefs of a recollection"] = 2
    spare: Annotated[Count, "R8: further episodes, to stand in for summaries that say nothing more"] = 3
    least_share: Annotated[Share, "B16: share of the best score of its kind that a line must have"] = 0.8
    shared: Annotated[Share, "B16: share of the telling words of the shorter that makes two lines one"] = 0.25
    repeated: Annotated[Share, "R8: share of a sentence's words in what is told that makes it a repetition"] = 0.8
    characters: Annotated[Count, "B16: longest bite of a recollection"] = 240
    tokens: Annotated[Count, "B16: most tokens of a recollection, where none are asked for"] = 400
    max_tokens: Annotated[Count, "B16: most tokens that a recollection may be asked for"] = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All stages together; `Policy()` holds the defaults."""

    confidence: ConfidencePolicy = ConfidencePolicy()
    retrieval: RetrievalPolicy = RetrievalPolicy()
    destabilization: DestabilizationPolicy = DestabilizationPolicy()
    calibration: CalibrationPolicy = CalibrationPolicy()
    clustering: ClusteringPolicy = ClusteringPolicy()
    consolidation: ConsolidationPolicy = ConsolidationPolicy()
    budget: BudgetPolicy = BudgetPolicy()
    gate: GatePolicy = GatePolicy()
    additive: AdditivePolicy = AdditivePolicy()
    restructure: RestructurePolicy = RestructurePolicy()
    ingest: IngestPolicy = IngestPolicy()
    extraction: ExtractionPolicy = ExtractionPolicy()
    reading: ReadingPolicy = ReadingPolicy()
    surprise: SurprisePolicy = SurprisePolicy()
    trust: TrustPolicy = TrustPolicy()
    turns: TurnsPolicy = TurnsPolicy()
    recall: RecallPolicy = RecallPolicy()
    throttle: ThrottlePolicy = ThrottlePolicy()
    associative: AssociativePolicy = AssociativePolicy()
    lifecycle: LifecyclePolicy = LifecyclePolicy()
    feedback: FeedbackPolicy = FeedbackPolicy()
    relevance: RelevancePolicy = RelevancePolicy()
    recollection: RecollectionPolicy = RecollectionPolicy()
    graph: GraphPolicy = GraphPolicy()
    box: BoxPolicy = BoxPolicy()
    maintenance: MaintenancePolicy = MaintenancePolicy()
    remember: RememberPolicy = RememberPolicy()
    context: ContextPolicy = ContextPolicy()
    reflection: ReflectionPolicy = ReflectionPolicy()
    rivals: RivalPolicy = RivalPolicy()
