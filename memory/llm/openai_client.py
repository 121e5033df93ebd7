"""Clients of servers that speak OpenAI's protocol, what their failures mean, and strict reading of their answers.

Only this module and its neighbours `openai_models` and `http_client` know the openai package. Answers are not read by
its own models: they take any shape, and a second for each ten thousand wrong rows.
"""

import gc
import json
import math
import threading
import time
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory.llm.replies import Items, MalformedReply, explain_fault
from memory.llm.types import CallFailed, FailureKind, cost_of

if TYPE_CHECKING:
    import openai


CONNECT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 3600.0  # a server that asks for a longer rest is asked again after this one

KINDS_BY_STATUS = {
    401: FailureKind.AUTH,
    402: FailureKind.BILLING,
    403: FailureKind.AUTH,
    408: FailureKind.TIMEOUT,
    409: FailureKind.SERVER,
    429: FailureKind.RATE_LIMITED,
}
BILLING_CODES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_CLIENTS: dict[tuple[str, str], "openai.OpenAI"] = {}
_CLIENTS_LOCK = threading.Lock()


def client_for(*, base_url: str, api_key: str) -> "openai.OpenAI":
    """Return this process's client of a server; local servers want some key, any key."""
    import openai

    from memory.llm.http_client import BoundedClient

    with _CLIENTS_LOCK:
        client = _CLIENTS.get((base_url, api_key))
        if client is None:
            key = api_key or "unused"
            client = openai.OpenAI(base_url=base_url or None, api_key=key, max_retries=0, http_client=BoundedClient())
            _CLIENTS[base_url, api_key] = client
        return client


def close_clients(*, base_url: str) -> None:
    """Close the connections to a server that goes away; the next call opens new ones."""
    with _CLIENTS_LOCK:
        for key in [key for key in _CLIENTS if key[0] == base_url]:
            _CLIENTS.pop(key).close()


def preload(*, base_url: str, api_key: str) -> None:
    """Load the library and make a server's client before a worker forks: else each child's first call takes a second.

    No connection is opened, so that none is shared by the children.
    """
    client = client_for(base_url=base_url, api_key=api_key)
    _ = client.chat.completions.with_raw_response, client.embeddings.with_raw_response


def timeout_of(seconds: float) -> "openai.Timeout":
    """Give a whole call its time, and a connection at most five seconds of it."""
    import openai

    return openai.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))


def failure_from(error: Exception, *, started: float) -> CallFailed:
    """Say in our own terms what went wrong; `started` is a reading of time.monotonic()."""
    import openai

    latency_ms = round((time.monotonic() - started) * 1000)
    if isinstance(error, openai.APIStatusError):
        return CallFailed(
            _error_message(error)[:500],
            kind=_kind_of_status(error),
            retry_after=_retry_after(error),
            raw=error.response.text[:2000],
            latency_ms=latency_ms,
        )
    return CallFailed(str(error)[:500], kind=_kind_of_error(error), latency_ms=latency_ms)


def _error_message(error: "openai.APIStatusError") -> str:
    """Return what a server said; of one that sends us elsewhere, where to: it may be the address that was meant."""
    if not error.response.is_redirect:
        return str(error)
    target = error.response.headers.get("location", "")
    return f"the server redirects to {target}: calls are made to the address in the settings alone"


def _kind_of_status(error: "openai.APIStatusError") -> FailureKind:
    if {str(error.code), str(error.type)} & BILLING_CODES:  # of whatever type a server makes them
        return FailureKind.BILLING
    if error.status_code >= 500:
        return FailureKind.SERVER
    if error.response.is_redirect:
        return FailureKind.CONNECTION
    return KINDS_BY_STATUS.get(error.status_code, FailureKind.BAD_REQUEST)


def _kind_of_error(error: Exception) -> FailureKind:
    import openai

    if isinstance(error, openai.APITimeoutError):
        return FailureKind.TIMEOUT
    if isinstance(error, openai.APIConnectionError):
        return FailureKind.CONNECTION
    return FailureKind.MALFORMED


def _retry_after(error: "openai.APIStatusError") -> float | None:
    """Read Retry-After in either of its forms, as seconds from now."""
    value = error.response.headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value)
    return min(max(0.0, seconds), LONGEST_WAIT_SECONDS) if math.isfinite(seconds) else None


def _seconds_until(http_date: str) -> float:
    try:
        moment = parsedate_to_datetime(http_date)
    except (ValueError, OverflowError):
        return math.nan
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


MOST_CHOICES = 16  # one is asked for


class _StrictAnswer(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


MOST_TOKENS = 10_000_000  # no model reads or writes as much in one call
Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class Usage(_StrictAnswer):
    """Tokens of one call as its server counted them; None where it told nothing."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Message(_StrictAnswer):
    content: str | None = None
    refusal: str | None = None


class _Choice(_StrictAnswer):
    message: _Message


class ChatAnswer(_StrictAnswer):
    """An answer in words."""

    choices: Annotated[Items[_Choice], Field(min_length=1, max_length=MOST_CHOICES)]
    usage: Usage | None = None

    @property
    def text(self) -> str:
        """Return the words; those that refuse where there are no others."""
        message = self.choices[0].message
        return message.content or message.refusal or ""


BATCH_TEXTS = 256  # the most that one call asks vectors for


class _Row(_StrictAnswer):
    index: int
    embedding: Any  # base64, or numbers that numpy looks at: a batch has hundreds of thousands of them


class VectorsAnswer(_StrictAnswer):
    """An answer in vectors."""

    data: Annotated[Items[_Row], Field(max_length=BATCH_TEXTS)]
    usage: Usage | None = None


AnyAnswer = TypeVar("AnyAnswer", ChatAnswer, VectorsAnswer)


def read_answer(kind: type[AnyAnswer], body: bytes, *, model: str) -> AnyAnswer:
    """Read a body as an answer of a kind; raise MalformedReply, also for counts and costs that no call can have."""
    try:
        answer = kind.model_validate(_parse_json(body))
    except (ValueError, RecursionError) as error:
        told = explain_fault(error) if isinstance(error, ValidationError) else "not JSON"
        raise MalformedReply(f"the server's answer: {told}") from error
    usage = answer.usage or Usage()
    cost = cost_of(model=model, input_tokens=usage.prompt_tokens or 0, output_tokens=usage.completion_tokens or 0)
    if cost >= MOST_COST_USD:
        raise MalformedReply(f"the server's counts of tokens make {cost:.0f} US dollars for one call")
    return answer


MOST_COST_USD = Decimal(10_000)  # what the ledger's column does not hold any more


def _parse_json(body: bytes) -> Any:
    """Parse JSON with the collector at rest: it would look at five million new lists again and again, for seconds."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return json.loads(body)
    finally:
        if is_collecting:
            gc.enable()
