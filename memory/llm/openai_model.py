"""Answers from any server that speaks OpenAI's chat protocol."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from memory.llm.model import CallFailed, Completion, FailureKind
from memory.llm.openai_client import client_for, failure_from, timeout_of
from memory.llm.prompts import Prompt, build_prompt, estimate_tokens, reply_tokens
from memory.llm.replies import MalformedReply, reply_schema, validate_reply
from memory.llm.requests import Purpose, Request

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

TEMPERATURE = 0.0
MOST_TOKENS = 10_000_000  # no model reads or writes as much in one call
_PLAINER_LIMITS = {"max_completion_tokens": "max_tokens", "max_tokens": ""}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which optional parts of the protocol a server takes."""

    json_schema: bool = True
    temperature: bool = True
    limit: str = "max_completion_tokens"

    def without(self, complaint: str) -> "Dialect | None":
        """Give up what a server complained about, or return None if nothing is left to give up."""
        if self.temperature and "temperature" in complaint:
            return replace(self, temperature=False)
        if self.limit and self.limit in complaint:
            return replace(self, limit=_PLAINER_LIMITS[self.limit])
        return replace(self, json_schema=False) if self.json_schema else None

    def options(self, purpose: Purpose, *, most: int) -> dict[str, Any]:
        """Spell the dialect as parameters of a call."""
        schema = {"name": purpose.value, "strict": True, "schema": reply_schema(purpose=purpose)}
        reply = {"type": "json_schema", "json_schema": schema} if self.json_schema else {"type": "json_object"}
        limit = {self.limit: most} if self.limit else {}
        return {"response_format": reply} | limit | ({"temperature": TEMPERATURE} if self.temperature else {})


class Dialects:
    """What this process has learnt about each server and model; threads share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Dialect] = {}
        self._lock = threading.Lock()

    def of(self, server: tuple[str, str]) -> Dialect:
        """Return the dialect of a server's model, the full one at first."""
        return self._known.get(server, Dialect())

    def learn(self, server: tuple[str, str], dialect: Dialect) -> None:
        """Keep a dialect that a server has answered in."""
        with self._lock:
            self._known[server] = dialect

    def forget(self) -> None:
        """Begin anew, as after a server was replaced."""
        with self._lock:
            self._known.clear()


DIALECTS = Dialects()


class OpenAIModel:
    """One attempt per call; the package's own retries are off."""

    is_offline = False

    def __init__(self, *, api_key: str, base_url: str, synthesis_model: str, classification_model: str) -> None:
        self._api_key = api_key
        self._base_url = base_url
        # To say something anew asks as much of a model as to say it first.
        self._models = dict.fromkeys(Purpose, synthesis_model) | {Purpose.CLASSIFY: classification_model}

    def model_for(self, purpose: str) -> str:
        """Name the model that answers a purpose."""
        return self._models[Purpose(purpose)]

    def parameters_for(self, purpose: str) -> dict[str, str | float]:
        """Name what else shapes an answer."""
        dialect = DIALECTS.of(self._server(Purpose(purpose)))
        shape: dict[str, str | float] = {"response_format": "json_schema" if dialect.json_schema else "json_object"}
        return shape | ({"temperature": TEMPERATURE} if dialect.temperature else {})

    def complete(self, *, request: Request, timeout: float) -> Completion:
        """Ask once within `timeout` seconds; raise CallFailed."""
        started = time.monotonic()
        prompt = build_prompt(request=request)
        try:
            answer = self._ask(request, prompt, deadline=started + timeout)
        except CallFailed:
            raise
        except Exception as error:
            raise _count_prompt(failure_from(error, started=started), prompt) from error
        return _read(request, prompt, answer, latency_ms=round((time.monotonic() - started) * 1000))

    def _ask(self, request: Request, prompt: Prompt, *, deadline: float) -> "ChatCompletion":
        """Send the prompt, in a plainer dialect where the server refuses the one tried first."""
        import openai

        server = self._server(request.purpose)
        dialect = DIALECTS.of(server)
        while True:
            try:
                answer = self._send(request, prompt, dialect, seconds=max(deadline - time.monotonic(), 0.1))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                plainer = dialect.without(error.response.text)
                if plainer is None:
                    raise
                dialect = plainer
            else:
                DIALECTS.learn(server, dialect)
                return answer

    def _send(self, request: Request, prompt: Prompt, dialect: Dialect, *, seconds: float) -> "ChatCompletion":
        client = client_for(base_url=self._base_url, api_key=self._api_key)
        answer: ChatCompletion = client.chat.completions.create(
            model=self._models[request.purpose],
            messages=[{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            timeout=timeout_of(seconds),
            **dialect.options(request.purpose, most=reply_tokens(request=request)),
        )
        return answer

    def _server(self, purpose: Purpose) -> tuple[str, str]:
        return self._base_url, self._models[purpose]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, estimated where the server counts none."""

    input_tokens: int
    output_tokens: int
    tokens_estimated: bool


def _read(request: Request, prompt: Prompt, answer: Any, *, latency_ms: int) -> Completion:
    """Count first, then parse, so that a malformed reply is paid for in the ledger too."""
    raw = _text_of(answer)
    usage = _usage(getattr(answer, "usage", None), prompt, raw)
    counted = {"raw": raw, "latency_ms": latency_ms, **_as_counts(usage)}
    try:
        return Completion(reply=validate_reply(request, raw), **counted)
    except MalformedReply as error:
        raise CallFailed(str(error), kind=FailureKind.MALFORMED, **counted) from error


def _text_of(answer: Any) -> str:
    """Return the reply's text; a proxy's page or an empty list of choices is text that will not parse."""
    if isinstance(answer, str):
        return answer
    try:
        message = answer.choices[0].message
        return message.content or getattr(message, "refusal", None) or ""
    except (AttributeError, IndexError, TypeError):
        return ""


def _usage(counted: Any, prompt: Prompt, raw: str) -> Usage:
    sent, received = getattr(counted, "prompt_tokens", None), getattr(counted, "completion_tokens", None)
    if isinstance(sent, int) and isinstance(received, int) and 0 < sent <= MOST_TOKENS and 0 <= received <= MOST_TOKENS:
        return Usage(input_tokens=sent, output_tokens=received, tokens_estimated=False)
    return Usage(
        input_tokens=estimate_tokens(prompt.system, prompt.user),
        output_tokens=estimate_tokens(raw),
        tokens_estimated=True,
    )


def _as_counts(usage: Usage) -> Mapping[str, Any]:
    return {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "tokens_estimated")}


def _count_prompt(failure: CallFailed, prompt: Prompt) -> CallFailed:
    """Assume that a prompt was billed where the server worked on it before the answer was lost."""
    if failure.kind in (FailureKind.TIMEOUT, FailureKind.MALFORMED):
        failure.input_tokens = estimate_tokens(prompt.system, prompt.user)
        failure.tokens_estimated = True
    return failure
