"""How sure an extraction is of a fact (L3)."""

from enum import StrEnum

from memory.domain.policy_conversations import ExtractionPolicy

DEFAULTS = ExtractionPolicy()


class Tier(StrEnum):
    """L3: the tier of an extraction's confidence."""

    EXPLICIT = "explicit"
    IMPLIED = "implied"
    INFERRED = "inferred"
    SPECULATIVE = "speculative"


def tier_of(*, confidence: float, policy: ExtractionPolicy = DEFAULTS) -> Tier:
    """Return the tier of a confidence in [0, 1]."""
    if confidence >= policy.explicit_confidence:
        return Tier.EXPLICIT
    if confidence >= policy.implied_confidence:
        return Tier.IMPLIED
    return Tier.INFERRED if confidence >= policy.inferred_confidence else Tier.SPECULATIVE
