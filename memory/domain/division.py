"""Divide a belief by the circumstances that its episodes name, without a language model (B12, offline)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from memory.domain.cards import read_context
from memory.domain.policy import RestructurePolicy
from memory.domain.statements import Embed, Extracted, SourceText, extract_statement

_ANYWHERE = "general"


def divide_by_context(
    *, in_favour: Sequence[SourceText], against: Sequence[SourceText], policy: RestructurePolicy, embed: Embed
) -> tuple[Extracted, Extracted] | None:
    """Return a statement for each side, where each side's episodes name a circumstance of their own; else None.

    The statements are sentences of the episodes, so each names its circumstance in somebody's words.
    """
    parts = [_state_side(side, least=policy.circumstance_episodes, embed=embed) for side in (in_favour, against)]
    if parts[0] is None or parts[1] is None or parts[0].context.casefold() == parts[1].context.casefold():
        return None
    return parts[0], parts[1]


def _state_side(side: Sequence[SourceText], *, least: int, embed: Embed) -> Extracted | None:
    """State what a side's episodes say in the circumstance that most of them name, and at least so many."""
    named: dict[str, list[SourceText]] = {}
    for episode in side:
        named.setdefault(read_context(episode.text).casefold(), []).append(episode)
    named.pop(_ANYWHERE, None)
    counts = Counter({context: len(episodes) for context, episodes in named.items()})
    if not counts or max(counts.values()) < least:
        return None
    chosen = min(counts, key=lambda context: (-counts[context], context))
    found = extract_statement(episodes=named[chosen], embed=embed)
    # The sentence chosen may be one that leaves the circumstance out; it would then claim too much.
    return replace(found, context=chosen) if found and found.context.casefold() == chosen else None
