"""When a conversation is summed up, and how without a model (R8)."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy_conversations import ExtractionPolicy

_MOST = 3  # sentences of a summary
_LEAST = 2  # sentences without which there is nothing to sum up: small talk


def is_summary_due(*, turns: int, policy: ExtractionPolicy) -> bool:
    """R8: tell whether a conversation of so many turns is summed up now: from 4 turns on, at every 5th."""
    return turns >= policy.summary_least and turns % policy.summary_turns == 0


def summarize_sayings(*, sayings: Sequence[str], embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
    """Return the sentences nearest to the middle of all, in their order, at most three; "" where there are too few.

    `embed` maps texts to rows of unit length.
    """
    told = list(dict.fromkeys(sayings))
    if len(told) < _LEAST:
        return ""
    vectors = embed(told)
    central = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")[:_MOST]
    return " ".join(told[place] for place in sorted(central.tolist()))
