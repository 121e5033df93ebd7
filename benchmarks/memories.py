"""Many memories, quickly: texts with the word statistics of conversations, their vectors, loaded by COPY.

Texts are drawn from topics that share words, in sessions that stay with one topic for a while; words come from the
vocabulary of the static model that ships with Engram, common ones often. A text's vector is that model's own, so that
near texts are near and a query over HTTP finds what the same query finds in SQL.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import numpy as np
from numpy.typing import NDArray

TOPICS, TOPIC_WORDS, SAYINGS = 600, 30, 12
KEPT = 0.75  # of a saying's words, when it is said again
TURNS = 20  # of a session
SPEAKERS = ("Ada", "Björn", "Chidi", "Dana", "Emeka", "Farah", "Goran", "Hana")
FRAMES = (
    "I told you that {}, and it was fine with me.",
    "We talked about {} before we went home.",
    "Could you look at {} when you have the time?",
    "My plan for next week is {}.",
    "She said {} is what they had decided.",
    "There is nothing like {}, if you ask me.",
    "{} was on my mind all day.",
)
Words = NDArray[np.str_]
START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A memory before it is stored."""

    text: str
    speaker: str
    session: str


@cache
def vocabulary() -> tuple[str, ...]:
    """Return some 7,000 words, common ones first, as the shipped model's tokenizer orders them."""
    from memory.llm.offline import static_embedder

    words: dict[str, int] = static_embedder()._tokenizer.get_vocab()  # type: ignore[attr-defined]
    whole = [word[1:] for word in sorted(words, key=lambda word: words[word]) if word.startswith("▁")]
    return tuple(word for word in whole if len(word) > 3 and word.isascii() and word.isalpha() and word.islower())


def draw(*, count: int, seed: int = 7) -> list[Drawn]:
    """Draw so many memories, the same ones for the same seed: what was said comes back in other words."""
    rng = np.random.default_rng(seed)
    words = np.array(vocabulary())
    common = _zipf(len(words), offset=3, steepness=1.0)
    sayings = [_sayings(rng, words, common) for _ in range(TOPICS)]
    drawn: list[Drawn] = []
    while len(drawn) < count:
        topic, session = sayings[rng.integers(TOPICS)], f"session {len(drawn) // TURNS}"
        for _ in range(min(TURNS, count - len(drawn))):
            said = topic[rng.integers(len(topic))]
            kept = np.where(rng.random(len(said)) < KEPT, said, rng.choice(words, size=len(said), p=common))
            more = rng.choice(words, size=rng.integers(0, 4), p=common)
            frame = FRAMES[rng.integers(len(FRAMES))]
            speaker = SPEAKERS[rng.integers(len(SPEAKERS))]
            drawn.append(Drawn(text=frame.format(" ".join([*kept, *more])), speaker=speaker, session=session))
    return drawn


def _zipf(count: int, *, offset: int, steepness: float) -> NDArray[np.float64]:
    shares = 1 / np.arange(offset, count + offset) ** steepness
    return np.asarray(shares / shares.sum())


def _sayings(rng: np.random.Generator, words: Words, common: NDArray[np.float64]) -> list[Words]:
    """Draw what is said about one topic: mostly in words of its own."""
    own = rng.choice(words, size=TOPIC_WORDS, replace=False)
    favour = _zipf(TOPIC_WORDS, offset=1, steepness=0.7)
    return [
        np.concatenate(
            [
                rng.choice(own, size=rng.integers(3, 7), replace=False, p=favour),
                rng.choice(words, size=rng.integers(1, 4), p=common),
            ]
        )
        for _ in range(SAYINGS)
    ]


def questions(*, drawn: Sequence[Drawn], count: int, seed: int = 11) -> list[str]:
    """Ask about some of the memories, in some of their words among others."""
    rng = np.random.default_rng(seed)
    words = vocabulary()
    asked = []
    for place in rng.integers(len(drawn), size=count):
        said = [word.strip(",.?") for word in drawn[place].text.split() if len(word) > 4]
        chosen = rng.choice(said, size=min(4, len(said)), replace=False)
        asked.append(f"what did we say about {' '.join(chosen)} and {words[rng.integers(400, len(words))]}?")
    return asked
