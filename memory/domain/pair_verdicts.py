"""Judge what an episode says of a belief by a classifier of pairs, with the rules' veto.

A classifier reads paraphrases that no rule knows, and is easily led astray by what rules see well: a denial, another
number, a name in another's place. So a rule that finds a contradiction is right, and where one
firmly says that an episode may not count, or the polarity guard finds a difference, nothing that a classifier finds
makes it support a belief. Where a rule finds support and a classifier a contradiction, nothing is sure.
"""

from dataclasses import dataclass

from memory.domain.matching import Claim, GuardReason, check_polarity
from memory.domain.verdicts import Judgement, Verdict, judge_by_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPolicy:
    """How sure a classifier must be; a contradiction costs a belief more than a support gives it."""

    entailment: float = 0.7
    contradiction: float = 0.8


POLICY = PairPolicy()

# What the guard knows by itself. That it sees too few words in common, no language of its own, or another word in one
# place is why a classifier is asked.
_FIRM = frozenset(GuardReason) - {GuardReason.LANGUAGE, GuardReason.UNLIKE, GuardReason.ALTERNATIVE}


def judge_pair(
    *,
    episode: Claim,
    belief: Claim,
    similarity: float | None = None,
    entailment: float,
    contradiction: float,
    policy: PairPolicy = POLICY,
) -> Judgement:
    """Judge one pair by how likely the belief follows from the episode, and cannot be true beside it (0 to 1)."""
    ruled = judge_by_rules(episode=episode, belief=belief, similarity=similarity)
    if ruled.verdict is Verdict.SUPPORTS and contradiction >= policy.contradiction:
        return _leave("By rules the episode states it, and a classifier finds that both cannot be true.")
    if ruled.verdict is not Verdict.IRRELEVANT or ruled.is_firm:
        return ruled
    if contradiction >= policy.contradiction:
        return Judgement(verdict=Verdict.CONTRADICTS, reason="A classifier finds that both cannot be true.")
    if entailment < policy.entailment:
        return _leave("A classifier finds neither.")
    differs = check_polarity(left=episode, right=belief).reason
    if differs in _FIRM:
        return _leave(f"A classifier finds that the belief follows, but the texts differ in one thing: {differs}.")
    return Judgement(verdict=Verdict.SUPPORTS, reason="A classifier finds that the belief follows from the episode.")


def _leave(reason: str) -> Judgement:
    return Judgement(verdict=Verdict.IRRELEVANT, reason=reason)
