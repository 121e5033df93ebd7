"""The numbers of the way in from conversations; `policy` gathers them with all others."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Count, Positive, Range, Share


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
