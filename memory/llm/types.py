"""What every language model and every embedding model is: one attempt at a request, or texts into unit vectors.

A failed attempt is a `CallFailed`, which says of what kind and whether another may help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memory.domain.similarity import Profile
from memory.llm.replies import Reply
from memory.llm.requests import Request


class FailureKind(StrEnum):
    """Why a call brought no answer."""

    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    SERVER = "server"
    AUTH = "auth"
    BILLING = "billing"
    MALFORMED = "malformed"
    BAD_REQUEST = "bad_request"
    OWN_ERROR = "own_error"  # of our own code, which no other server or later hour would mend


class CallFailed(Exception):
    """One attempt at a model that brought no answer; what it used is counted all the same."""

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        retry_after: float | None = None,
        raw: str = "",
        input_tokens: int = 0,
        output_tokens: int = 0,
        tokens_estimated: bool = False,
        latency_ms: int = 0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.raw = raw
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.tokens_estimated = tokens_estimated
        self.latency_ms = latency_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One validated answer, its text as it came, and what it used."""

    reply: Reply
    raw: str
    input_tokens: int
    output_tokens: int
    latency_ms: int
    tokens_estimated: bool = False


class LanguageModel(Protocol):
    """Answers one request at a time; knows nothing of retries, rows or budgets."""

    @property
    def is_offline(self) -> bool:
        """Tell whether answers come from rules on this machine."""
        ...

    def model_for(self, purpose: str) -> str:
        """Name the model that answers a purpose."""
        ...

    def parameters_for(self, purpose: str) -> dict[str, str | float]:
        """Return what else shapes an answer, for the ledger."""
        ...

    def complete(self, *, request: Request, timeout: float) -> Completion:
        """Make one attempt of at most `timeout` seconds; raise CallFailed if it brings no answer."""
        ...


DIMENSIONS = 768
FEWEST_DIMENSIONS = 16  # a server's vectors of fewer say next to nothing of their texts: no model makes such


class WrongDimensions(ValueError):
    """A model whose vectors do not fit the columns they are meant for."""

    def __init__(self, *, model: str, dimensions: int) -> None:
        super().__init__(
            f"The embedding model {model} returned {dimensions} dimensions; {FEWEST_DIMENSIONS} to {DIMENSIONS} fit."
        )
        self.model = model
        self.dimensions = dimensions


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors of shape (n, 768), and the tokens that a server counted for them; 0 if it told none."""

    vectors: NDArray[np.float32]
    tokens: int


class Embedder(Protocol):
    """Turns texts into unit vectors that are comparable with those of the same name only."""

    @property
    def name(self) -> str:
        """Name the model; every stored vector carries it."""
        ...

    @property
    def is_local(self) -> bool:
        """Tell whether texts stay on this machine."""
        ...

    @property
    def is_multilingual(self) -> bool:
        """Tell whether texts of different languages may be compared."""
        ...

    @property
    def profile(self) -> Profile:
        """Map raw cosines of this model to the reference scale and back (B8a)."""
        ...

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768); raise ValueError for blank text, CallFailed for a server's failure.

        Some models put another prefix in front of a query than in front of what it is to find.
        """
        ...

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return what `embed` returns, with the tokens that it took."""
        ...

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return the unit vector (768) of a text whose lower-case words weigh so much, all others nothing.

        None where none of them weighs anything, and from a model that reads a text as a whole.
        """
        ...

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text is cut into pieces whose vectors are averaged."""
        ...


def reject_blank(texts: Sequence[str]) -> None:
    """Raise ValueError if a text has nothing to embed: its vector would be no direction at all."""
    blank = [index for index, text in enumerate(texts) if not text.strip()]
    if blank:
        raise ValueError(f"nothing to embed in the text at position {blank[0]}")


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1 and pad them with zeros to 768; a row of zeros becomes the first axis."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    padded = np.zeros((len(vectors), DIMENSIONS), dtype=np.float32)
    padded[:, : vectors.shape[1]] = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    padded[lengths[:, 0] == 0, 0] = 1.0
    return padded


_MILLION = Decimal(1_000_000)


def cost_of(*, model: str, input_tokens: int, output_tokens: int) -> Decimal:
    """Return the price of a call in US dollars; a model without a price costs nothing."""
    sent, received = (Decimal(str(price)) for price in settings.ENGRAM_PRICES.get(model, (0, 0)))
    return (sent * input_tokens + received * output_tokens) / _MILLION
