"""A language model as the rest of the project sees it."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol

from django.conf import settings

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
        return _with_local_verdicts(named, settings.ENGRAM_VERDICT_MODEL)  # type: ignore[arg-type]  # hashed by identity
    return named


@lru_cache(maxsize=4)
def _with_local_verdicts(base: Any, classifier: str) -> LanguageModel:
    from memory.llm.local_verdicts import LocalVerdicts

    return LocalVerdicts(base=base, classifier=classifier)


@lru_cache(maxsize=1)
def _offline_model() -> LanguageModel:
    from memory.llm.offline import OfflineModel

    return OfflineModel()


@lru_cache(maxsize=4)
def _openai_model(api_key: str, base_url: str, synthesis_model: str, classification_model: str) -> LanguageModel:
    from memory.llm.openai_model import OpenAIModel

    return OpenAIModel(
        api_key=api_key, base_url=base_url, synthesis_model=synthesis_model, classification_model=classification_model
    )
