"""The numbers of memories: how they come in, are linked and recalled, and what the direct path makes of them.

`policy` gathers these stages with those of beliefs and cycles.
"""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Range:
    """The values that make sense for a setting, both ends included."""

    low: float
    high: float = float("inf")


Share = Annotated[float, Range(0.0, 1.0)]
Amount = Annotated[float, Range(0.0)]
Positive = Annotated[float, Range(1e-9)]
Count = Annotated[int, Range(1)]


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
class ExtractionPolicy:
    """What facts are read out of conversations, and what becomes of them."""

    explicit_confidence: Annotated[Share, "L3: confidence from which a fact was said outright"] = 0.95
    implied_confidence: Annotated[Share, "L3: confidence from which a fact was implied"] = 0.70
    inferred_confidence: Annotated[Share, "L3: confidence from which a fact was inferred; below it is a guess"] = 0.40
    conflict_similarity: Annotated[Share, "L18: similarity from which two notes may be in conflict"] = 0.70
    confirm_similarity: Annotated[Share, "L15: similarity above which a later fact confirms an earlier one"] = 0.92
    turns: Annotated[Count, "L3: most turns of one call"] = 20
    seconds: Annotated[Positive, "L3: time that one extraction may take, all its calls together"] = 45.0
    summary_turns: Annotated[Count, "R8: turns of a conversation that are summed up together"] = 5
    summary_beside: Annotated[Count, "R8: turns before and after a stretch that are shown beside it"] = 3
    summary_least: Annotated[Count, "R8: fewest turns of a conversation that is summed up"] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingPolicy:
    """How many messages a model reads into claims at a time, and with what beside them."""

    messages: Annotated[Count, "E1: most messages that one call reads"] = 12
    characters: Annotated[Count, "E1: most characters of the messages of one call; a longer one is cut"] = 8_000
    before: Annotated[int, Range(0), "E1: messages of its session before one that are shown beside it"] = 3
    after: Annotated[int, Range(0), "E1: messages of its session after one that are shown beside it"] = 1
    context_characters: Annotated[Count, "E1: longest part of a message that is only shown beside others"] = 240
    seconds: Annotated[Positive, "E1: longest call that reads, where the usual limit (B9) is not longer"] = 25.0
    reply_tokens: Annotated[Count, "E1: tokens that a reply may have besides for each message"] = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SurprisePolicy:
    """What a memory's distance to all others does to its importance."""

    neighbours: Annotated[Count, "D5: nearest memories that a new one is compared with"] = 5
    steepness: Annotated[Positive, "D5: steepness of surprise over distance"] = 10.0
    midpoint: Annotated[Share, "D5: mean distance that surprises by half"] = 0.35
    weight: Annotated[Share, "D5: what surprise, less its half, moves importance by"] = 0.6
    empty_boost: Annotated[Share, "D5: what importance gains where nothing is remembered yet"] = 0.15
    duplicate_similarity: Annotated[Share, "D5: similarity from which a neighbour says nearly the same"] = 0.92
    least_importance: Annotated[Share, "D5: least importance that is left"] = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustPolicy:
    """How far a source is trusted."""

    human: Annotated[Share, "D7: trust in what a person said"] = 1.0
    ai: Annotated[Share, "D7: trust in what a model said"] = 0.7
    interaction: Annotated[Share, "D7: trust in what came of an interaction"] = 0.6
    ingest: Annotated[Share, "D7: trust in what was fed in"] = 0.5
    dream: Annotated[Share, "D7: trust in what a dream cycle made"] = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPolicy:
    """How memories are linked, how links fade, and how far recall follows them."""

    entity_neighbours: Annotated[Count, "L19: earlier memories that one is linked with for each name they share"] = 6
    entity_reach: Annotated[Count, "L19: latest memories with a name among which those are chosen"] = 40
    entity_counted: Annotated[Count, "L19: memories with a name up to which they are counted"] = 1_000
    time_neighbours: Annotated[Count, "L19: memories before it in its session, and after, that one is linked with"] = 2
    cause_candidates: Annotated[Count, "L19: latest memories of a session among which a cause is looked for"] = 200
    cause_overlap: Annotated[Share, "L19: share of a cause's words that a memory must have to be it"] = 0.6
    entity_confidence: Annotated[Share, "L19: confidence of a new edge between memories that name the same"] = 0.7
    time_confidence: Annotated[Share, "L19: confidence of a new edge between neighbours in time"] = 0.6
    causal_confidence: Annotated[Share, "L19: confidence of a new edge from a cause"] = 0.8
    reinforcement: Annotated[Share, "L19: confidence that an edge gains when it is seen again"] = 0.05
    cap: Annotated[Share, "L19: greatest confidence of an edge"] = 1.0
    grace_days: Annotated[Amount, "L19: days without being seen that cost an edge nothing"] = 90.0
    window_days: Annotated[Positive, "L19: days of a further window, each of which costs confidence"] = 90.0
    decay: Annotated[Share, "L19: confidence that an edge loses for each such window"] = 0.1
    floor: Annotated[Share, "L19: confidence below which no edge decays"] = 0.1
    cut: Annotated[Share, "L19: confidence below which recall does not follow an edge"] = 0.2
    hops: Annotated[Count, "L19: most edges that recall follows one after another"] = 3
    hop_decay: Annotated[Share, "L19: share that each hop leaves of a contribution"] = 0.7
    rounds: Annotated[Count, "L19: rounds of passing scores along edges"] = 8
    damping: Annotated[Share, "L19: share of a score that is passed on in a round"] = 0.85
    seeds: Annotated[Count, "L19: best episodes of the other channels that recall starts from"] = 8
    fanout: Annotated[Count, "L19: strongest edges that are followed from one memory"] = 12
    frontier: Annotated[Count, "L19: edges that are followed in one hop altogether"] = 120
    found: Annotated[Count, "L19: most memories that the graph adds to the candidates"] = 30
    share: Annotated[Share, "L19, B17: share of what a score lacks to 1 that the graph's best memory gains"] = 0.05
    batch: Annotated[Count, "L19: new memories that are linked in one transaction"] = 500
    seconds: Annotated[Positive, "L19: time that linking takes before others get their turn"] = 20.0
    settle_minutes: Annotated[Positive, "L19: minutes in which whoever stores memories is done at the latest"] = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPolicy:
    """How memories are put into boxes by topic, and boxes on one trace."""

    shift_overlap: Annotated[Share, "L7: overlap of topics below which a memory does not belong in an open box"] = 0.35
    idle_minutes: Annotated[Positive, "L7: minutes without a memory after which a box is sealed"] = 30.0
    memories: Annotated[Count, "L7: memories with which a box is full"] = 50
    trace_overlap: Annotated[Share, "L7: overlap of topics from which two boxes are on one trace"] = 0.4
    trace_days: Annotated[Positive, "L7: days between two boxes of one trace"] = 7.0
    traces: Annotated[Count, "L7: earlier boxes that a sealed one is linked with"] = 3
    trace_reach: Annotated[Count, "L7: latest sealed boxes among which those are looked for"] = 50
    keywords: Annotated[Count, "L7: words that stand for a text that names nobody"] = 8
    topics: Annotated[Count, "L7: latest topics that a box is known by"] = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePolicy:
    """When memories are maintained, and how much of it at once."""

    extractions: Annotated[Count, "L8: extractions after which a workspace is maintained"] = 3
    hours: Annotated[Positive, "L8: hours after which it is maintained in any case, if anything is due"] = 24.0
    look_seconds: Annotated[Positive, "L8: time between two looks which workspaces are due"] = 60.0
    seconds: Annotated[Positive, "L8: time that the steps of one workspace may take together"] = 30.0
    notes: Annotated[Count, "L8: latest settled memories of which notes are compared with older ones"] = 400
    notes_at_once: Annotated[Count, "L8: notes for which these are looked for before the time is looked at"] = 50
    neighbours: Annotated[Count, "L8: nearest older memories that a note is compared with"] = 5
    batch: Annotated[Count, "L8: edges that are looked at in one transaction"] = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberPolicy:
    """What the direct path makes of a text that is to be remembered."""

    facts: Annotated[Count, "R1: most facts that are taken from one text"] = 3
    fact_characters: Annotated[Count, "R1: longest fact"] = 1_000
    importance: Annotated[int, Range(1, 10), "R1: importance of a fact that comes without one"] = 5
    answer_seconds: Annotated[Positive, "R1: time that a caller waits for beliefs; later calls are a worker's"] = 25.0
    slow_tries: Annotated[
        Count, "R1: tries without an answer after which a model that is too slow has a text left to consolidation"
    ] = 5
    resend_seconds: Annotated[Positive, "R1: time after which the sweeper sends what waits once more"] = 60.0
    cap_seconds: Annotated[Positive, "R1: time between two looks whether a cap has room again"] = 300.0
    reinforce_similarity: Annotated[Share, "R2: similarity above which a fact that passes the guard reinforces"] = 0.92
    contradiction_similarity: Annotated[Share, "R2: similarity from which a fact may contradict a belief"] = 0.70
    candidates: Annotated[Count, "R3: most beliefs that one call is asked about"] = 5
    supported_episodes: Annotated[Count, "R3: supporting episodes from which a contradicted belief lives on"] = 3
    links: Annotated[Count, "R4: most neighbours that a new belief is linked to"] = 3
    link_from: Annotated[Share, "R4: similarity from which two beliefs are neighbours"] = 0.40
    link_to: Annotated[Share, "R4: similarity up to which they are; above, they may say the same"] = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """How much of a memory is put before a task."""

    min_similarity: Annotated[Share, "R12: similarity that an episode must exceed"] = 0.30
    beliefs: Annotated[Count, "R12: most beliefs of a context"] = 20
    episodes: Annotated[Count, "R12: most episodes of a context"] = 20
    characters: Annotated[Count, "R12: longest memory of a context"] = 600
    tokens: Annotated[Count, "R12: most tokens of a context, where none are asked for"] = 1_500
    max_tokens: Annotated[Count, "R12: most tokens that a context may be asked for"] = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionPolicy:
    """What is told of beliefs on looking at all of them."""

    duplicate_similarity: Annotated[Share, "R7: similarity from which two beliefs may say the same"] = 0.85
    pairs: Annotated[Count, "R7: most pairs that a command tells of, or that are proposed to a cycle at once"] = 1000
    meta_similarity: Annotated[Share, "R7: similarity from which beliefs are of one group"] = 0.60
    meta_group: Annotated[Count, "R7: fewest beliefs of a group that a belief is made about"] = 3
    meta_groups: Annotated[Count, "R7: most groups that are taken at once"] = 5
    meta_shown: Annotated[Count, "R7: most beliefs of a group that a model is shown"] = 12
    meta_stability: Annotated[Positive, "R7: stability of a belief about beliefs"] = 3.0
    half_life_days: Annotated[Positive, "R7d: days without evidence that halve a confidence, at stability 1"] = 30.0
    full_stability: Annotated[Positive, "R7d: stability beyond which a belief fades no more slowly"] = 5.0
    stale_confidence: Annotated[Share, "R7d: effective confidence below which a belief is stale"] = 0.10
    prune_confidence: Annotated[Share, "R7d: effective confidence below which a belief may be pruned"] = 0.05
    prune_evidence: Annotated[Count, "R7d: rows of evidence from which a belief is never pruned"] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContradictionPolicy:
    """Which beliefs may contradict each other, and how many a model is asked about."""

    from_similarity: Annotated[Share, "R11: similarity from which two beliefs may contradict each other"] = 0.40
    to_similarity: Annotated[Share, "R11: similarity up to which; from there on they may say the same"] = 0.85
    pairs: Annotated[Count, "R11: most new pairs that one look lists, the most similar"] = 100
    batch: Annotated[Count, "R11: most beliefs that one call holds against another"] = 30
    check_seconds: Annotated[Positive, "R11: working time of one check"] = 120.0
