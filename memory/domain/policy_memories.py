"""The numbers of memories: how they come in, are read and linked, and what is made of a text at once."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Amount, Count, Positive, Range, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestPolicy:
    """What an episode may look like."""

    text_bytes: Annotated[Count, "ENGRAM_INGEST_TEXT_BYTES", "B1: longest text of an episode, in bytes of UTF-8"] = (
        32 * 1024
    )
    body_bytes: Annotated[Count, "ENGRAM_INGEST_BODY_BYTES", "B1: longest body of a request"] = 8 * 1024 * 1024
    import_bytes: Annotated[
        Count, "ENGRAM_INGEST_IMPORT_BYTES", "R14: longest file that a request brings to be imported"
    ] = 1024**3
    entities: Annotated[Count, "ENGRAM_INGEST_ENTITIES", "B1: most entities of an episode"] = 32
    tags: Annotated[Count, "ENGRAM_INGEST_TAGS", "B1: most tags of an episode"] = 32
    bulk_items: Annotated[Count, "ENGRAM_INGEST_BULK_ITEMS", "B1: most episodes of one request"] = 1_000
    future_days: Annotated[
        Amount, "ENGRAM_INGEST_FUTURE_DAYS", "B1: how far in the future an episode may have occurred"
    ] = 1.0
    importance: Annotated[Share, "ENGRAM_INGEST_IMPORTANCE", "B1: importance of an episode that comes without one"] = (
        0.5
    )
    speaker_characters: Annotated[
        Count, "ENGRAM_INGEST_SPEAKER_CHARACTERS", "B1: longest speaker's name read from the text"
    ] = 40
    speaker_turns: Annotated[
        Count, "ENGRAM_INGEST_SPEAKER_TURNS", "B1: turns of a session that a name must open to be its speaker"
    ] = 2
    replay_gap_days: Annotated[
        Positive, "ENGRAM_INGEST_REPLAY_GAP_DAYS", "B7: pause of a replayed history after which a cycle runs"
    ] = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsPolicy:
    """When the turns of a conversation are read, and how many at once."""

    buffer: Annotated[Count, "ENGRAM_TURNS_BUFFER", "L2: buffered turns of a conversation that are read together"] = 5
    age_minutes: Annotated[
        Positive,
        "ENGRAM_TURNS_AGE_MINUTES",
        "L2: minutes since the last extraction after which what is buffered is read",
    ] = 15.0
    surprise: Annotated[
        Share, "ENGRAM_TURNS_SURPRISE", "L2: 1 - mean similarity above which a turn has its buffer read early"
    ] = 0.35
    surprise_neighbours: Annotated[
        Count, "ENGRAM_TURNS_SURPRISE_NEIGHBOURS", "L2: nearest episodes whose mean similarity tells"
    ] = 5
    surprise_words: Annotated[Count, "ENGRAM_TURNS_SURPRISE_WORDS", "L2: fewest words of a turn that can surprise"] = 5
    surprise_turns: Annotated[Count, "ENGRAM_TURNS_SURPRISE_TURNS", "L2: most turns that one look compares"] = 256
    surprise_seconds: Annotated[Positive, "ENGRAM_TURNS_SURPRISE_SECONDS", "L2: time that one such look may take"] = 2.0
    soft_cues: Annotated[Count, "ENGRAM_TURNS_SOFT_CUES", "L1: different soft cues that make a signal medium"] = 2
    scan_characters: Annotated[
        Count,
        "ENGRAM_TURNS_SCAN_CHARACTERS",
        "L1: most characters of a text that are scanned, half of them at each end",
    ] = 8_000
    erased_words: Annotated[
        Count, "ENGRAM_TURNS_ERASED_WORDS", "L4: fewest words by which an erased turn without id and time is refused"
    ] = 4
    batch: Annotated[Count, "ENGRAM_TURNS_BATCH", "L2: most turns of one extraction"] = 20
    batch_bytes: Annotated[
        Count, "ENGRAM_TURNS_BATCH_BYTES", "L2: most text of one extraction, in bytes of UTF-8, but for a single turn"
    ] = 65_536
    resend_seconds: Annotated[
        Positive, "ENGRAM_TURNS_RESEND_SECONDS", "L2: time after which a worker is told again that turns are due"
    ] = 60.0
    cap_minutes: Annotated[
        Positive, "ENGRAM_TURNS_CAP_MINUTES", "L2: rest of a conversation whose workspace may spend no more today"
    ] = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionPolicy:
    """How sure what is said counts as, how long a conversation is read at a time, and how it is summed up."""

    explicit_confidence: Annotated[
        Share, "ENGRAM_EXTRACTION_EXPLICIT_CONFIDENCE", "L3: confidence from which a fact was said outright"
    ] = 0.95
    implied_confidence: Annotated[
        Share, "ENGRAM_EXTRACTION_IMPLIED_CONFIDENCE", "L3: confidence from which a fact was implied"
    ] = 0.70
    inferred_confidence: Annotated[
        Share,
        "ENGRAM_EXTRACTION_INFERRED_CONFIDENCE",
        "L3: confidence from which a fact was inferred; below it is a guess",
    ] = 0.40
    conflict_similarity: Annotated[
        Share, "ENGRAM_EXTRACTION_CONFLICT_SIMILARITY", "L18: similarity from which two notes may be in conflict"
    ] = 0.70
    confirm_similarity: Annotated[
        Share,
        "ENGRAM_EXTRACTION_CONFIRM_SIMILARITY",
        "L15: similarity above which a later fact confirms an earlier one",
    ] = 0.92
    seconds: Annotated[
        Positive, "ENGRAM_EXTRACTION_SECONDS", "L3: time that one extraction may take, all its calls together"
    ] = 45.0
    summary_turns: Annotated[
        Count, "ENGRAM_EXTRACTION_SUMMARY_TURNS", "R8: most turns of a conversation that are summed up together"
    ] = 20
    summary_beside: Annotated[
        Count, "ENGRAM_EXTRACTION_SUMMARY_BESIDE", "R8: turns before and after a stretch that are shown beside it"
    ] = 3
    summary_least: Annotated[
        Count, "ENGRAM_EXTRACTION_SUMMARY_LEAST", "R8: fewest turns of a conversation that is summed up"
    ] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingPolicy:
    """How many messages are read at a time, and what is shown beside them (F1)."""

    messages: Annotated[Count, "ENGRAM_READING_MESSAGES", "F1: most messages that one reading takes"] = 20
    characters: Annotated[
        Count, "ENGRAM_READING_CHARACTERS", "F1: most characters of the messages of one reading; a longer one is cut"
    ] = 6_000
    before: Annotated[
        int, Range(0), "ENGRAM_READING_BEFORE", "F1: messages of its conversation that are shown before what is read"
    ] = 4
    context_characters: Annotated[
        Count, "ENGRAM_READING_CONTEXT_CHARACTERS", "F1: longest part of a message that is only shown beside others"
    ] = 240
    all_beliefs: Annotated[
        Count, "ENGRAM_READING_ALL_BELIEFS", "F1: as long as a person has no more beliefs, a reading sees all of them"
    ] = 60
    nearest_beliefs: Annotated[
        Count, "ENGRAM_READING_NEAREST_BELIEFS", "F1: beliefs that a reading sees where a person has more than that"
    ] = 40
    seconds: Annotated[
        Positive, "ENGRAM_READING_SECONDS", "F2: longest call that reads, where the usual limit (B9) is not longer"
    ] = 30.0
    reply_tokens: Annotated[
        Count, "ENGRAM_READING_REPLY_TOKENS", "F1: tokens that a reply may have besides for each message"
    ] = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SurprisePolicy:
    """What a memory's distance to all others does to its importance."""

    neighbours: Annotated[
        Count, "ENGRAM_SURPRISE_NEIGHBOURS", "D5: nearest memories that a new one is compared with"
    ] = 5
    steepness: Annotated[Positive, "ENGRAM_SURPRISE_STEEPNESS", "D5: steepness of surprise over distance"] = 10.0
    midpoint: Annotated[Share, "ENGRAM_SURPRISE_MIDPOINT", "D5: mean distance that surprises by half"] = 0.35
    weight: Annotated[Share, "ENGRAM_SURPRISE_WEIGHT", "D5: what surprise, less its half, moves importance by"] = 0.6
    empty_boost: Annotated[
        Share, "ENGRAM_SURPRISE_EMPTY_BOOST", "D5: what importance gains where nothing is remembered yet"
    ] = 0.15
    duplicate_similarity: Annotated[
        Share, "ENGRAM_SURPRISE_DUPLICATE_SIMILARITY", "D5: similarity from which a neighbour says nearly the same"
    ] = 0.92
    least_importance: Annotated[Share, "ENGRAM_SURPRISE_LEAST_IMPORTANCE", "D5: least importance that is left"] = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustPolicy:
    """How far a source is trusted."""

    human: Annotated[Share, "ENGRAM_TRUST_HUMAN", "D7: trust in what a person said"] = 1.0
    ai: Annotated[Share, "ENGRAM_TRUST_AI", "D7: trust in what a model said"] = 0.7
    interaction: Annotated[Share, "ENGRAM_TRUST_INTERACTION", "D7: trust in what came of an interaction"] = 0.6
    ingest: Annotated[Share, "ENGRAM_TRUST_INGEST", "D7: trust in what was fed in"] = 0.5
    dream: Annotated[Share, "ENGRAM_TRUST_DREAM", "D7: trust in what a dream cycle made"] = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPolicy:
    """How memories are linked, how links fade, and how far recall follows them."""

    entity_neighbours: Annotated[
        Count,
        "ENGRAM_GRAPH_ENTITY_NEIGHBOURS",
        "L19: earlier memories that one is linked with for each name they share",
    ] = 6
    entity_reach: Annotated[
        Count, "ENGRAM_GRAPH_ENTITY_REACH", "L19: latest memories with a name among which those are chosen"
    ] = 40
    entity_counted: Annotated[
        Count, "ENGRAM_GRAPH_ENTITY_COUNTED", "L19: memories with a name up to which they are counted"
    ] = 1_000
    time_neighbours: Annotated[
        Count,
        "ENGRAM_GRAPH_TIME_NEIGHBOURS",
        "L19: memories before it in its session, and after, that one is linked with",
    ] = 2
    cause_candidates: Annotated[
        Count, "ENGRAM_GRAPH_CAUSE_CANDIDATES", "L19: latest memories of a session among which a cause is looked for"
    ] = 200
    cause_overlap: Annotated[
        Share, "ENGRAM_GRAPH_CAUSE_OVERLAP", "L19: share of a cause's words that a memory must have to be it"
    ] = 0.6
    entity_confidence: Annotated[
        Share, "ENGRAM_GRAPH_ENTITY_CONFIDENCE", "L19: confidence of a new edge between memories that name the same"
    ] = 0.7
    time_confidence: Annotated[
        Share, "ENGRAM_GRAPH_TIME_CONFIDENCE", "L19: confidence of a new edge between neighbours in time"
    ] = 0.6
    causal_confidence: Annotated[
        Share, "ENGRAM_GRAPH_CAUSAL_CONFIDENCE", "L19: confidence of a new edge from a cause"
    ] = 0.8
    reinforcement: Annotated[
        Share, "ENGRAM_GRAPH_REINFORCEMENT", "L19: confidence that an edge gains when it is seen again"
    ] = 0.05
    cap: Annotated[Share, "ENGRAM_GRAPH_CAP", "L19: greatest confidence of an edge"] = 1.0
    grace_days: Annotated[
        Amount, "ENGRAM_GRAPH_GRACE_DAYS", "L19: days without being seen that cost an edge nothing"
    ] = 90.0
    window_days: Annotated[
        Positive, "ENGRAM_GRAPH_WINDOW_DAYS", "L19: days of a further window, each of which costs confidence"
    ] = 90.0
    decay: Annotated[Share, "ENGRAM_GRAPH_DECAY", "L19: confidence that an edge loses for each such window"] = 0.1
    floor: Annotated[Share, "ENGRAM_GRAPH_FLOOR", "L19: confidence below which no edge decays"] = 0.1
    cut: Annotated[Share, "ENGRAM_GRAPH_CUT", "L19: confidence below which recall does not follow an edge"] = 0.2
    hops: Annotated[Count, "ENGRAM_GRAPH_HOPS", "L19: most edges that recall follows one after another"] = 3
    hop_decay: Annotated[Share, "ENGRAM_GRAPH_HOP_DECAY", "L19: share that each hop leaves of a contribution"] = 0.7
    rounds: Annotated[Count, "ENGRAM_GRAPH_ROUNDS", "L19: rounds of passing scores along edges"] = 8
    damping: Annotated[Share, "ENGRAM_GRAPH_DAMPING", "L19: share of a score that is passed on in a round"] = 0.85
    seeds: Annotated[
        Count, "ENGRAM_GRAPH_SEEDS", "L19: best episodes of the other channels that recall starts from"
    ] = 8
    fanout: Annotated[Count, "ENGRAM_GRAPH_FANOUT", "L19: strongest edges that are followed from one memory"] = 12
    frontier: Annotated[Count, "ENGRAM_GRAPH_FRONTIER", "L19: edges that are followed in one hop altogether"] = 120
    found: Annotated[Count, "ENGRAM_GRAPH_FOUND", "L19: most memories that the graph adds to the candidates"] = 30
    share: Annotated[
        Share, "ENGRAM_GRAPH_SHARE", "L19, B17: share of what a score lacks to 1 that the graph's best memory gains"
    ] = 0.05
    batch: Annotated[Count, "ENGRAM_GRAPH_BATCH", "L19: new memories that are linked in one transaction"] = 500
    seconds: Annotated[
        Positive, "ENGRAM_GRAPH_SECONDS", "L19: time that linking takes before others get their turn"
    ] = 20.0
    settle_minutes: Annotated[
        Positive, "ENGRAM_GRAPH_SETTLE_MINUTES", "L19: minutes in which whoever stores memories is done at the latest"
    ] = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPolicy:
    """How memories are put into boxes by topic, and boxes on one trace."""

    shift_overlap: Annotated[
        Share, "ENGRAM_BOX_SHIFT_OVERLAP", "L7: overlap of topics below which a memory does not belong in an open box"
    ] = 0.35
    idle_minutes: Annotated[
        Positive, "ENGRAM_BOX_IDLE_MINUTES", "L7: minutes without a memory after which a box is sealed"
    ] = 30.0
    memories: Annotated[Count, "ENGRAM_BOX_MEMORIES", "L7: memories with which a box is full"] = 50
    trace_overlap: Annotated[
        Share, "ENGRAM_BOX_TRACE_OVERLAP", "L7: overlap of topics from which two boxes are on one trace"
    ] = 0.4
    trace_days: Annotated[Positive, "ENGRAM_BOX_TRACE_DAYS", "L7: days between two boxes of one trace"] = 7.0
    traces: Annotated[Count, "ENGRAM_BOX_TRACES", "L7: earlier boxes that a sealed one is linked with"] = 3
    trace_reach: Annotated[
        Count, "ENGRAM_BOX_TRACE_REACH", "L7: latest sealed boxes among which those are looked for"
    ] = 50
    keywords: Annotated[Count, "ENGRAM_BOX_KEYWORDS", "L7: words that stand for a text that names nobody"] = 8
    topics: Annotated[Count, "ENGRAM_BOX_TOPICS", "L7: latest topics that a box is known by"] = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePolicy:
    """When memories are maintained, and how much of it at once."""

    extractions: Annotated[
        Count, "ENGRAM_MAINTENANCE_EXTRACTIONS", "L8: extractions after which a workspace is maintained"
    ] = 3
    hours: Annotated[
        Positive, "ENGRAM_MAINTENANCE_HOURS", "L8: hours after which it is maintained in any case, if anything is due"
    ] = 24.0
    look_seconds: Annotated[
        Positive, "ENGRAM_MAINTENANCE_LOOK_SECONDS", "L8: time between two looks which workspaces are due"
    ] = 60.0
    seconds: Annotated[
        Positive, "ENGRAM_MAINTENANCE_SECONDS", "L8: time that the steps of one workspace may take together"
    ] = 30.0
    notes: Annotated[
        Count, "ENGRAM_MAINTENANCE_NOTES", "L8: latest settled memories of which notes are compared with older ones"
    ] = 400
    notes_at_once: Annotated[
        Count,
        "ENGRAM_MAINTENANCE_NOTES_AT_ONCE",
        "L8: notes for which these are looked for before the time is looked at",
    ] = 50
    neighbours: Annotated[
        Count, "ENGRAM_MAINTENANCE_NEIGHBOURS", "L8: nearest older memories that a note is compared with"
    ] = 5
    batch: Annotated[Count, "ENGRAM_MAINTENANCE_BATCH", "L8: edges that are looked at in one transaction"] = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberPolicy:
    """What the direct path makes of a text that is to be remembered."""

    importance: Annotated[
        int, Range(1, 10), "ENGRAM_REMEMBER_IMPORTANCE", "R1: importance of a statement that comes without one"
    ] = 5
    answer_seconds: Annotated[
        Positive,
        "ENGRAM_REMEMBER_ANSWER_SECONDS",
        "R1: time that a caller waits for beliefs; later calls are a worker's",
    ] = 25.0
    slow_tries: Annotated[
        Count,
        "ENGRAM_REMEMBER_SLOW_TRIES",
        "R1: tries without an answer after which a model that is too slow has a text left to consolidation",
    ] = 5
    resend_seconds: Annotated[
        Positive, "ENGRAM_REMEMBER_RESEND_SECONDS", "R1: time after which the sweeper sends what waits once more"
    ] = 60.0
    cap_seconds: Annotated[
        Positive, "ENGRAM_REMEMBER_CAP_SECONDS", "R1: time between two looks whether a cap has room again"
    ] = 300.0
    links: Annotated[Count, "ENGRAM_REMEMBER_LINKS", "R4: most neighbours that a new belief is linked to"] = 3
    link_from: Annotated[Share, "ENGRAM_REMEMBER_LINK_FROM", "R4: similarity from which two beliefs are neighbours"] = (
        0.40
    )
    link_to: Annotated[
        Share, "ENGRAM_REMEMBER_LINK_TO", "R4: similarity up to which they are; above, they may say the same"
    ] = 0.85
