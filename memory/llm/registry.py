"""The language model and the embedding model that the settings name, and what every implementation offers.

`language_model` and `default_embedder` return them, one per process; `preload_models` loads them before a worker
forks. Implementations import this module and are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import salted_hmac
from numpy.typing import NDArray

from memory.domain.similarity import Profile
from memory.llm.replies import Reply
from memory.llm.requests import Request

log = structlog.get_logger(__name__)


def language_model() -> LanguageModel:
    """Return the model that the settings name, one per process."""
    if settings.ENGRAM_LLM == "offline":
        named = _offline_model()
    else:
        named = _openai_model(
            settings.OPENAI_API_KEY,
            settings.OPENAI_BASE_URL,
            settings.ENGRAM_SYNTHESIS_MODEL,
            settings.ENGRAM_CLASSIFICATION_MODEL,
        )
    if settings.ENGRAM_VERDICTS == "local":
        return _local_verdicts_over(named, settings.ENGRAM_VERDICT_MODEL)  # type: ignore[arg-type]  # hashed by identity
    return named


@lru_cache(maxsize=4)
def _local_verdicts_over(base: Any, classifier: str) -> LanguageModel:
    from memory.llm.local import LocalVerdicts

    return LocalVerdicts(base=base, classifier=classifier)


@lru_cache(maxsize=1)
def _offline_model() -> LanguageModel:
    from memory.llm.offline import OfflineModel

    return OfflineModel()


@lru_cache(maxsize=4)
def _openai_model(api_key: str, base_url: str, synthesis_model: str, classification_model: str) -> LanguageModel:
    from memory.llm.openai_models import OpenAIModel

    return OpenAIModel(
        api_key=api_key, base_url=base_url, synthesis_model=synthesis_model, classification_model=classification_model
    )


def default_embedder() -> Embedder:
    """Return the embedding model that the settings name, one per process."""
    match settings.ENGRAM_EMBEDDINGS:
        case "offline":
            return static_embedder()
        case "openai":
            return remote_embedder(settings.ENGRAM_EMBEDDING_MODEL)
        case "local":
            return local_embedder(settings.ENGRAM_EMBEDDING_MODEL)
    raise ImproperlyConfigured(f"ENGRAM_EMBEDDINGS={settings.ENGRAM_EMBEDDINGS} is not one of: offline, local, openai")


@lru_cache(maxsize=1)
def static_embedder() -> Embedder:
    """Return the static model that ships with the project; the offline rules use it whatever the settings name."""
    from memory.llm.offline import StaticEmbedder

    return StaticEmbedder()


def remote_embedder(model: str) -> Embedder:
    """Return a model of the server that the settings name."""
    base_url = settings.ENGRAM_EMBEDDING_BASE_URL or settings.OPENAI_BASE_URL
    return _remote_embedder(base_url, settings.OPENAI_API_KEY, model)


@lru_cache(maxsize=4)
def _remote_embedder(base_url: str, api_key: str, model: str) -> Embedder:
    from memory.llm.openai_models import OpenAIEmbedder

    return OpenAIEmbedder(base_url=base_url, api_key=api_key, model=model)


@lru_cache(maxsize=4)
def local_embedder(named: str) -> Embedder:
    """Return the sentence model of a folder, or of a file in it; raise ModelUnavailable."""
    from memory.llm.local import LocalEmbedder

    return LocalEmbedder(named=named)


def models_folder() -> Path:
    """Return where folders of models may stand, besides where the settings name one."""
    folder: Path = settings.DATA_DIR / "models"
    return folder


def preload_models() -> None:
    """Load what the settings name before a worker forks: its children share the memory and answer at once."""
    model = default_embedder()
    if not model.profile.is_fitted:
        log.warning("embeddings_uncalibrated", model=model.name)
    if settings.ENGRAM_VERDICTS == "local":
        from memory.llm.onnx_models import pair_classifier

        pair_classifier(named=settings.ENGRAM_VERDICT_MODEL)
    servers = set()
    if settings.ENGRAM_LLM == "offline" or settings.ENGRAM_EMBEDDINGS == "offline":
        static_embedder()
    if settings.ENGRAM_LLM == "openai":
        servers.add(settings.OPENAI_BASE_URL)
    if settings.ENGRAM_EMBEDDINGS == "openai":
        servers.add(settings.ENGRAM_EMBEDDING_BASE_URL or settings.OPENAI_BASE_URL)
    for base_url in sorted(servers):
        from memory.llm import openai_client

        openai_client.preload(base_url=base_url, api_key=settings.OPENAI_API_KEY)


_NAMES = (
    "ENGRAM_LLM", "ENGRAM_EMBEDDINGS", "OPENAI_BASE_URL", "OPENAI_API_KEY", "ENGRAM_EMBEDDING_BASE_URL",
    "ENGRAM_SYNTHESIS_MODEL", "ENGRAM_CLASSIFICATION_MODEL", "ENGRAM_EMBEDDING_MODEL", "ENGRAM_VERDICTS",
    "ENGRAM_VERDICT_MODEL",
)  # fmt: skip


def fingerprint_models() -> str:
    """Return a keyed hash of everything that decides which server answers, and under which key."""
    named = "\n".join(f"{name}={getattr(settings, name)}" for name in _NAMES)
    return salted_hmac("engram.models", named, algorithm="sha256").hexdigest()


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
