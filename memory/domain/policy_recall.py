"""The numbers of recall: how results are scored and blended, how much is told, and how often a key may call."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Amount, Count, Positive, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallPolicy:
    """How results are scored and blended."""

    similarity_weight: Annotated[
        Share, "ENGRAM_RECALL_SIMILARITY_WEIGHT", "B17: weight of confidence·similarity in a belief's score"
    ] = 0.5
    strength_weight: Annotated[
        Share, "ENGRAM_RECALL_STRENGTH_WEIGHT", "B17: weight of retrieval strength in a belief's score"
    ] = 0.3
    text_weight: Annotated[Share, "ENGRAM_RECALL_TEXT_WEIGHT", "B17: weight of the text score in a belief's score"] = (
        0.2
    )
    min_confidence: Annotated[
        Share, "ENGRAM_RECALL_MIN_CONFIDENCE", "B17: confidence that a belief must exceed to be recalled"
    ] = 0.4
    belief_blend: Annotated[Share, "ENGRAM_RECALL_BELIEF_BLEND", "B17: factor of a belief's score beside episodes"] = (
        0.8
    )
    belief_floor: Annotated[
        float,
        "ENGRAM_RECALL_BELIEF_FLOOR",
        "B17: fused standard score among the episodes found that a belief must reach",
    ] = 2.0
    belief_rivals: Annotated[
        Count,
        "ENGRAM_RECALL_BELIEF_RIVALS",
        "B17: best episodes that bear a belief out, or of which it matches the last",
    ] = 3
    belief_gap: Annotated[
        Amount, "ENGRAM_RECALL_BELIEF_GAP", "B17: standard score by which a belief may fall short of that episode"
    ] = 0.6
    least_text_weight: Annotated[
        Share, "ENGRAM_RECALL_LEAST_TEXT_WEIGHT", "B17: weight of the text arm where words cover little of the query"
    ] = 0.0
    most_text_weight: Annotated[
        Share, "ENGRAM_RECALL_MOST_TEXT_WEIGHT", "B17: weight of the text arm where words cover enough of the query"
    ] = 0.7
    query_rarity: Annotated[
        Amount,
        "ENGRAM_RECALL_QUERY_RARITY",
        "B17: power of rarity by which a word weighs in a query's vector of weighted words",
    ] = 0.75
    least_coverage: Annotated[
        Share, "ENGRAM_RECALL_LEAST_COVERAGE", "B17: coverage of the query up to which the text arm weighs least"
    ] = 0.125
    enough_coverage: Annotated[
        Share, "ENGRAM_RECALL_ENOUGH_COVERAGE", "B17: coverage of the query from which the text arm weighs most"
    ] = 0.6
    own_turn_prior: Annotated[
        Amount,
        "ENGRAM_RECALL_OWN_TURN_PRIOR",
        "B17: standard scores that what a person said has over what an AI answered",
    ] = 1.0
    asked_time_prior: Annotated[
        Amount, "ENGRAM_RECALL_ASKED_TIME_PRIOR", "B17: standard scores of an episode of the time that is asked about"
    ] = 3.0
    asked_time_beliefs: Annotated[
        Share, "ENGRAM_RECALL_ASKED_TIME_BELIEFS", "B17: factor of a belief's score where a time is asked about"
    ] = 0.7
    occasion_share: Annotated[
        Share,
        "ENGRAM_RECALL_OCCASION_SHARE",
        "B17: share of the best coverage of all that makes an episode an occasion",
    ] = 0.5
    occasions: Annotated[
        Count, "ENGRAM_RECALL_OCCASIONS", "B17: nearest episodes that are occasions where no words tell"
    ] = 5
    named_speaker_prior: Annotated[
        Amount, "ENGRAM_RECALL_NAMED_SPEAKER_PRIOR", "B17: standard scores of an episode whose speaker the query names"
    ] = 0.3
    standing_order_prior: Annotated[
        Amount,
        "ENGRAM_RECALL_STANDING_ORDER_PRIOR",
        "B17: standard scores of an episode that orders what is always done",
    ] = 1.0
    long_text: Annotated[Count, "ENGRAM_RECALL_LONG_TEXT", "B17: different words from which on a text is long"] = 40
    long_text_prior: Annotated[
        Amount,
        "ENGRAM_RECALL_LONG_TEXT_PRIOR",
        "B17: standard scores that a long text lacks, by the log of how much longer",
    ] = 0.7
    session_weight: Annotated[
        Amount, "ENGRAM_RECALL_SESSION_WEIGHT", "B17: weight of how a session answers, beside an episode's own score"
    ] = 1.0
    session_turns: Annotated[
        Count, "ENGRAM_RECALL_SESSION_TURNS", "B17: best episodes of a session that tell how it answers"
    ] = 10
    next_share: Annotated[
        Share, "ENGRAM_RECALL_NEXT_SHARE", "B17: share of a match's text score for the turns next to it"
    ] = 0.4
    answer_share: Annotated[
        Share, "ENGRAM_RECALL_ANSWER_SHARE", "B17: share of a matching question's text score for the turn after it"
    ] = 0.8
    second_share: Annotated[
        Share, "ENGRAM_RECALL_SECOND_SHARE", "B17: share of a match's text score for the turns two away"
    ] = 0.2
    context_matches: Annotated[
        Count, "ENGRAM_RECALL_CONTEXT_MATCHES", "B17: best matches that what stands beside them is looked at of"
    ] = 20
    small_collection: Annotated[
        Count, "ENGRAM_RECALL_SMALL_COLLECTION", "B17: texts of a workspace up to which any word makes a candidate"
    ] = 2_000
    rare_share: Annotated[
        Share, "ENGRAM_RECALL_RARE_SHARE", "B17: share of texts that a word must stay below to choose candidates"
    ] = 0.05
    rare_terms: Annotated[Count, "ENGRAM_RECALL_RARE_TERMS", "B17: most words that choose candidates"] = 4
    matching_texts: Annotated[
        Count, "ENGRAM_RECALL_MATCHING_TEXTS", "B17: most texts with a query's words that one search compares"
    ] = 5_000
    recount_least: Annotated[
        Count, "ENGRAM_RECALL_RECOUNT_LEAST", "B17: new texts after which a workspace's words are counted"
    ] = 100
    recount_share: Annotated[
        Share, "ENGRAM_RECALL_RECOUNT_SHARE", "B17: the same, as a share of those counted, where that is more"
    ] = 0.1
    length_sample: Annotated[
        Count, "ENGRAM_RECALL_LENGTH_SAMPLE", "B17: texts measured for their mean length before they are counted"
    ] = 1_000
    least_deviation: Annotated[
        Positive,
        "ENGRAM_RECALL_LEAST_DEVIATION",
        "B17: deviation of fused scores below which they are not stretched to 1",
    ] = 0.1
    logistic_midpoint: Annotated[
        float, "ENGRAM_RECALL_LOGISTIC_MIDPOINT", "B17: fused standard score that becomes 0.5"
    ] = 5.0
    logistic_slope: Annotated[
        Positive, "ENGRAM_RECALL_LOGISTIC_SLOPE", "B17: steepness of the logistic over fused scores"
    ] = 0.4
    candidates: Annotated[
        Count, "ENGRAM_RECALL_CANDIDATES", "B17: candidates that each channel brings of each kind"
    ] = 50
    successions: Annotated[
        Count, "ENGRAM_RECALL_SUCCESSIONS", "B16: best episodes looked at for a successor; more results: twice as many"
    ] = 20
    near_misses: Annotated[Count, "ENGRAM_RECALL_NEAR_MISSES", "B17: near-misses that an X-ray tells of"] = 5
    query_terms: Annotated[
        Count, "ENGRAM_RECALL_QUERY_TERMS", "B17: most words of a query that the text channel asks for"
    ] = 64
    query_characters: Annotated[Count, "ENGRAM_RECALL_QUERY_CHARACTERS", "B17: longest query"] = 8_000
    daily_tokens: Annotated[
        Count, "ENGRAM_RECALL_DAILY_TOKENS", "B9: tokens of recall's embeddings per workspace and UTC day"
    ] = 5_000_000
    embed_seconds: Annotated[Positive, "ENGRAM_RECALL_EMBED_SECONDS", "B17: longest wait for the query's vector"] = 2.0
    channel_seconds: Annotated[
        Positive, "ENGRAM_RECALL_CHANNEL_SECONDS", "B17: longest time of a channel; over it, recall goes on without"
    ] = 0.3
    exact_vectors: Annotated[
        Count, "ENGRAM_RECALL_EXACT_VECTORS", "B17: vectors up to which all are compared; more are worth an index"
    ] = 5_000
    least_index_share: Annotated[
        Share, "ENGRAM_RECALL_LEAST_INDEX_SHARE", "B17: share of an index's vectors that must be in question to use it"
    ] = 0.01
    own_index_share: Annotated[
        Share,
        "ENGRAM_RECALL_OWN_INDEX_SHARE",
        "B17: share of a model's vectors from which no workspace needs its own index",
    ] = 0.5
    drop_index_share: Annotated[
        Share, "ENGRAM_RECALL_DROP_INDEX_SHARE", "B17: share of what is worth an index below which it is dropped"
    ] = 0.5
    least_own_share: Annotated[
        Share,
        "ENGRAM_RECALL_LEAST_OWN_SHARE",
        "B17: share of all texts from which an index over words finds mostly one's own",
    ] = 0.1
    exact_texts: Annotated[
        Count, "ENGRAM_RECALL_EXACT_TEXTS", "B17: texts of a workspace up to which all are looked at for words"
    ] = 5_000
    search_effort: Annotated[
        Count,
        "ENGRAM_RECALL_SEARCH_EFFORT",
        "B17: vectors in question that an index keeps in view while it searches (ef_search)",
    ] = 64
    index_megabytes: Annotated[
        Count, "ENGRAM_RECALL_INDEX_MEGABYTES", "B17: memory that the making of an index may take"
    ] = 512
    index_seconds: Annotated[
        Positive, "ENGRAM_RECALL_INDEX_SECONDS", "B17: time between two looks at which indexes are needed"
    ] = 60.0
    waiting_turns: Annotated[
        Count, "ENGRAM_RECALL_WAITING_TURNS", "B17: newest turns that wait to be read and that a recall looks at"
    ] = 50
    rerank_candidates: Annotated[
        Count, "ENGRAM_RECALL_RERANK_CANDIDATES", "B17: best candidates that a re-ranker reads, where there is one"
    ] = 50
    rerank_seconds: Annotated[
        Positive, "ENGRAM_RECALL_RERANK_SECONDS", "B17: longest time of a re-ranker; over it, the order stays"
    ] = 1.0
    limit: Annotated[Count, "ENGRAM_RECALL_LIMIT", "B17: results when no limit is asked for"] = 10
    max_limit: Annotated[Count, "ENGRAM_RECALL_MAX_LIMIT", "B17: most results of one recall"] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevancePolicy:
    """What a memory must reach to have to do with a query, on the reference scale of similarity."""

    floor: Annotated[
        float, "ENGRAM_RELEVANCE_FLOOR", "B16: similarity, with all that adds to it, from which a memory stands out"
    ] = 0.71
    words: Annotated[
        Amount, "ENGRAM_RELEVANCE_WORDS", "B16: what is added for telling words that cover all of the query"
    ] = 0.95
    own: Annotated[
        Amount, "ENGRAM_RELEVANCE_OWN", "B16: what is added where the query is about somebody's own matters"
    ] = 0.25
    task: Annotated[Amount, "ENGRAM_RELEVANCE_TASK", "B16: what is taken off where the query sets a task"] = 0.25
    foreign: Annotated[
        Amount,
        "ENGRAM_RELEVANCE_FOREIGN",
        "B16: what is taken off likeness in a language that the model does not know, where no word is shared",
    ] = 0.3
    bare: Annotated[Amount, "ENGRAM_RELEVANCE_BARE", "B16: the same, where the query has but one telling word"] = 0.15
    unknown: Annotated[
        Share, "ENGRAM_RELEVANCE_UNKNOWN", "B16: similarity that a memory without a vector counts as having"
    ] = 0.45


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociativePolicy:
    """How the associative profile scores memories; the five weights together make 1."""

    similarity_weight: Annotated[Share, "ENGRAM_ASSOCIATIVE_SIMILARITY_WEIGHT", "R5: weight of similarity"] = 0.50
    importance_weight: Annotated[Share, "ENGRAM_ASSOCIATIVE_IMPORTANCE_WEIGHT", "R5: weight of importance"] = 0.20
    recency_weight: Annotated[Share, "ENGRAM_ASSOCIATIVE_RECENCY_WEIGHT", "R5, R6: weight of recency"] = 0.10
    recency_decay: Annotated[
        Amount, "ENGRAM_ASSOCIATIVE_RECENCY_DECAY", "R5, R6: decay of recency a day; 0.023 halves it in about 30 days"
    ] = 0.023
    stability_weight: Annotated[Share, "ENGRAM_ASSOCIATIVE_STABILITY_WEIGHT", "R5: weight of stability"] = 0.05
    full_stability: Annotated[Positive, "ENGRAM_ASSOCIATIVE_FULL_STABILITY", "R5: stability that counts in full"] = 5.0
    subject_weight: Annotated[
        Share, "ENGRAM_ASSOCIATIVE_SUBJECT_WEIGHT", "R5, R6: weight of a subject that the query names"
    ] = 0.15
    insight_factor: Annotated[Share, "ENGRAM_ASSOCIATIVE_INSIGHT_FACTOR", "R5: factor of an insight's score"] = 0.5
    min_similarity: Annotated[Share, "ENGRAM_ASSOCIATIVE_MIN_SIMILARITY", "R5: similarity that a memory must reach"] = (
        0.20
    )
    neighbours_of: Annotated[
        Count, "ENGRAM_ASSOCIATIVE_NEIGHBOURS_OF", "R5: best results whose neighbours come along"
    ] = 3
    neighbour_factor: Annotated[
        Share, "ENGRAM_ASSOCIATIVE_NEIGHBOUR_FACTOR", "R5: share of a result's score that its neighbours have"
    ] = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecyclePolicy:
    """What the policy state of an episode adds to its score; one that has none is left alone."""

    enabled: Annotated[bool, "ENGRAM_LIFECYCLE_ENABLED", "L14: the policy state of an episode moves its score"] = True
    hides_stale: Annotated[
        bool, "ENGRAM_LIFECYCLE_HIDES_STALE", "L14: stale and archived states are not recalled at all"
    ] = False
    active_boost: Annotated[float, "ENGRAM_LIFECYCLE_ACTIVE_BOOST", "L14: added for the state active"] = 0.05
    validated_boost: Annotated[float, "ENGRAM_LIFECYCLE_VALIDATED_BOOST", "L14: added for the state validated"] = 0.03
    candidate_boost: Annotated[float, "ENGRAM_LIFECYCLE_CANDIDATE_BOOST", "L14: added for the state candidate"] = -0.01
    stale_boost: Annotated[float, "ENGRAM_LIFECYCLE_STALE_BOOST", "L14: added for the state stale"] = -0.06
    archived_boost: Annotated[float, "ENGRAM_LIFECYCLE_ARCHIVED_BOOST", "L14: added for the state archived"] = -0.08
    disputed_boost: Annotated[
        float, "ENGRAM_LIFECYCLE_DISPUTED_BOOST", "L14: added, besides, for what is disputed"
    ] = -0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackPolicy:
    """How words on the use of a memory add up."""

    step: Annotated[
        Share,
        "ENGRAM_FEEDBACK_STEP",
        "L13: share of the way to 1, useful, or to -1, wrong, that one word of feedback goes",
    ] = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RecollectionPolicy:
    """How much a recollection holds."""

    episodes: Annotated[Count, "ENGRAM_RECOLLECTION_EPISODES", "B16: most episodes of a recollection"] = 3
    beliefs: Annotated[Count, "ENGRAM_RECOLLECTION_BELIEFS", "B16: most beliefs of a recollection"] = 2
    spare: Annotated[
        Count, "ENGRAM_RECOLLECTION_SPARE", "R8: further episodes, to stand in for summaries that say nothing more"
    ] = 3
    least_share: Annotated[
        Share, "ENGRAM_RECOLLECTION_LEAST_SHARE", "B16: share of the best score of its kind that a line must have"
    ] = 0.8
    shared: Annotated[
        Share, "ENGRAM_RECOLLECTION_SHARED", "B16: share of the telling words of the shorter that makes two lines one"
    ] = 0.25
    repeated: Annotated[
        Share,
        "ENGRAM_RECOLLECTION_REPEATED",
        "R8: share of a sentence's words in what is told that makes it a repetition",
    ] = 0.8
    characters: Annotated[Count, "ENGRAM_RECOLLECTION_CHARACTERS", "B16: longest bite of a recollection"] = 240
    tokens: Annotated[
        Count, "ENGRAM_RECOLLECTION_TOKENS", "B16: most tokens of a recollection, where none are asked for"
    ] = 400
    max_tokens: Annotated[
        Count, "ENGRAM_RECOLLECTION_MAX_TOKENS", "B16: most tokens that a recollection may be asked for"
    ] = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """How much of a memory is put before a task."""

    min_similarity: Annotated[Share, "ENGRAM_CONTEXT_MIN_SIMILARITY", "R12: similarity that an episode must exceed"] = (
        0.30
    )
    beliefs: Annotated[Count, "ENGRAM_CONTEXT_BELIEFS", "R12: most beliefs of a context"] = 20
    episodes: Annotated[Count, "ENGRAM_CONTEXT_EPISODES", "R12: most episodes of a context"] = 20
    characters: Annotated[Count, "ENGRAM_CONTEXT_CHARACTERS", "R12: longest memory of a context"] = 600
    tokens: Annotated[Count, "ENGRAM_CONTEXT_TOKENS", "R12: most tokens of a context, where none are asked for"] = 1_500
    max_tokens: Annotated[Count, "ENGRAM_CONTEXT_MAX_TOKENS", "R12: most tokens that a context may be asked for"] = (
        16_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottlePolicy:
    """How often a key may call; so many at once, and as many again in the course of each minute."""

    recall_per_minute: Annotated[
        Amount, "ENGRAM_THROTTLE_RECALL_PER_MINUTE", "B9: recalls of one key a minute; 0 for no limit"
    ] = 60_000.0
    read_per_minute: Annotated[
        Amount, "ENGRAM_THROTTLE_READ_PER_MINUTE", "B9: other readings of one key a minute; 0 for no limit"
    ] = 60_000.0
    write_per_minute: Annotated[
        Amount, "ENGRAM_THROTTLE_WRITE_PER_MINUTE", "B9: writings of one key a minute; 0 for no limit"
    ] = 60_000.0
    curate_per_minute: Annotated[
        Amount, "ENGRAM_THROTTLE_CURATE_PER_MINUTE", "B9: curator's acts of one key a minute; 0 for no limit"
    ] = 6_000.0
    owner_per_minute: Annotated[
        Amount, "ENGRAM_THROTTLE_OWNER_PER_MINUTE", "B9: owner's acts of one key a minute; 0 for no limit"
    ] = 600.0
