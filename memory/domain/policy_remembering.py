"""The numbers of the direct path: remembering at once, and what is made of beliefs by reflection."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Count, Positive, Range, Share


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
class RivalPolicy:
    """Which beliefs may contradict each other, and how many a model is asked about."""

    from_similarity: Annotated[Share, "R11: similarity from which two beliefs may contradict each other"] = 0.40
    to_similarity: Annotated[Share, "R11: similarity up to which; from there on they may say the same"] = 0.85
    pairs: Annotated[Count, "R11: most new pairs that one look lists, the most similar"] = 100
    batch: Annotated[Count, "R11: most beliefs that one call holds against another"] = 30
    check_seconds: Annotated[Positive, "R11: working time of one check"] = 120.0
