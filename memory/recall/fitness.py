"""Which beliefs are about the query: only those take a place where there is no room for all (B17)."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from memory.domain.policy import RecallPolicy
from memory.recall.ranking import MemoryType, Ranked, of_kind


class Doubted(NamedTuple):
    """Beliefs that have to be about the query, and the best episodes, which may bear them out."""

    beliefs: Sequence[Ranked] = ()
    rivals: Sequence[Ranked] = ()


def doubt_beliefs(*, candidates: Sequence[Ranked], limit: int, policy: RecallPolicy) -> Doubted:
    """Doubt all beliefs among candidates, best first, but the best of them if it fits nearly as well as the rivals.

    Where all have room, or there is one kind only, none is doubted.
    """
    beliefs = of_kind(ranked=candidates, kind=MemoryType.BELIEF)
    rivals = of_kind(ranked=candidates, kind=MemoryType.EPISODE)[: policy.belief_rivals]
    if not beliefs or not rivals or len(candidates) <= limit:
        return Doubted()
    near = max(policy.belief_floor, rivals[-1].part("standard_sum") - policy.belief_gap)
    return Doubted(beliefs=beliefs[1:] if beliefs[0].part("fit") >= near else beliefs, rivals=rivals)


def find_unfit(*, doubted: Doubted, resting: Mapping[str, Collection[str]], policy: RecallPolicy) -> set[str]:
    """Name the doubted beliefs that the rivals do not bear out, by the rivals that each rests on.

    All of the rivals bear out any, the best of them one that fits. Where all that was found says the same, nothing
    stands out, least of all the belief made of it.
    """
    fit = {item.id for item in doubted.beliefs if item.part("fit") >= policy.belief_floor}
    borne_out = {
        key
        for key, on in resting.items()
        if len(on) == len(doubted.rivals) or (key in fit and doubted.rivals[0].id in on)
    }
    return {item.id for item in doubted.beliefs} - borne_out
