"""Which memory is meant by a cause that is given in words (L19)."""

from collections.abc import Sequence

from memory.domain.content_hash import content_hash
from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS
from memory.domain.sentences import list_words

_STOPS = ENGLISH_STOPS | GERMAN_STOPS


def find_cause(*, cause: str, texts: Sequence[str], least: float) -> tuple[int, float] | None:
    """Return the place of the text that says the cause, the first of equals, and the share of its words that it has."""
    wanted = _telling(cause)
    hashed = content_hash(cause)
    shares = [1.0 if content_hash(text) == hashed else _share(wanted, _telling(text)) for text in texts]
    best = max(range(len(shares)), key=lambda place: (shares[place], -place), default=None)
    return None if best is None or shares[best] < least else (best, shares[best])


def _telling(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in list_words(text)) - _STOPS


def _share(wanted: frozenset[str], said: frozenset[str]) -> float:
    return len(wanted & said) / len(wanted) if wanted else 0.0
