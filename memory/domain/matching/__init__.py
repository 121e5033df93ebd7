"""The polarity guard: what a cosine cannot see when two texts look alike."""

from memory.domain.matching.claims import Claim, GuardReason, GuardResult
from memory.domain.matching.guard import check_polarity

__all__ = ["Claim", "GuardReason", "GuardResult", "check_polarity"]
