"""Whether a text can have anything to say about a belief, as far as words tell."""

import re

from memory.domain.matching import Claim
from memory.domain.matching.analysis import Analysis
from memory.domain.matching.guard import analyse_pair

_WORDS = re.compile(r"\w+")
_STEM = 5  # letters
_OWNERS = frozenset({"", "owner", "the owner", "user", "the user", "i", "me"})  # subjects that are whoever speaks


def share_something(*, episode: Claim, belief: Claim) -> bool:
    """Tell whether two texts share a content word by its stem, a number or its unit, a name, or the belief's subject.

    The belief's speaker is its subject, as in the polarity guard. Where words cannot be compared, they may: in doubt
    somebody is to be asked.
    """
    if _is_of_subject(episode, belief):
        return True
    pair = analyse_pair(left=episode, right=belief)
    if pair is None:
        return True
    said, believed = pair
    if said.has_first_person and not episode.speaker:
        return True  # nobody knows who speaks: it may be the subject
    return not (_stems(said).isdisjoint(_stems(believed)) and _measures(said).isdisjoint(_measures(believed)))


def _is_of_subject(episode: Claim, belief: Claim) -> bool:
    """Tell whether the subject speaks, or is named in full or in part."""
    subject = belief.speaker.casefold().strip()
    if subject in _OWNERS:
        return True
    names = set(_WORDS.findall(subject))
    told = _WORDS.findall(f"{episode.speaker} {episode.text}".casefold())
    return not names.isdisjoint({form for word in told for form in (word, word.removesuffix("s"))})


def _stems(text: Analysis) -> set[str]:
    """Return the content words, cut short, so that a potter shares one with a pottery."""
    return {concept[:_STEM] for concept in text.concepts}


def _measures(text: Analysis) -> set[object]:
    """Return the numbers and what they measure: five hours and six hours have that in common."""
    return {part for amount in text.quantities for part in (amount.value, amount.role) if part != ""}
