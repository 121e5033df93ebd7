"""Answers from any server that speaks OpenAI's chat protocol."""

import threading
import time
from dataclasses import dataclass, replace
from typing import Any

from memory.llm.answers import ChatAnswer, Usage, read_answer
from memory.llm.model import CallFailed, Completion, FailureKind
from memory.llm.openai_client import client_for, failure_from, timeout_of
from memory.llm.prompts import Prompt, build_prompt, estimate_tokens, reply_tokens
from memory.llm.replies import LONGEST_REPLY, MalformedReply, reply_schema, validate_reply
from memory.llm.requests import Purpose, Request

TEMPERATURE = 0.0
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
            body = self._ask(request, prompt, deadline=started + timeout)
        except CallFailed:
            raise
        except Exception as error:
            raise _count_prompt(failure_from(error, started=started), prompt) from error
        latency_ms = round((time.monotonic() - started) * 1000)
        return _read(request, prompt, body, model=self._models[request.purpose], latency_ms=latency_ms)

    def _ask(self, request: Request, prompt: Prompt, *, deadline: float) -> bytes:
        """Send the prompt, in a plainer dialect where the server refuses the one tried first."""
        import openai

        server = self._server(request.purpose)
        dialect = DIALECTS.of(server)
        while True:
            try:
                body = self._send(request, prompt, dialect, seconds=max(deadline - time.monotonic(), 0.1))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                plainer = dialect.without(error.response.text)
                if plainer is None:
                    raise
                dialect = plainer
            else:
                DIALECTS.learn(server, dialect)
                return body

    def _send(self, request: Request, prompt: Prompt, dialect: Dialect, *, seconds: float) -> bytes:
        client = client_for(base_url=self._base_url, api_key=self._api_key)
        response = client.chat.completions.with_raw_response.create(
            model=self._models[request.purpose],
            messages=[{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
            timeout=timeout_of(seconds),
            **dialect.options(request.purpose, most=reply_tokens(request=request)),
        )
        return response.content

    def _server(self, purpose: Purpose) -> tuple[str, str]:
        return self._base_url, self._models[purpose]


def _read(request: Request, prompt: Prompt, body: bytes, *, model: str, latency_ms: int) -> Completion:
    """Count first, then parse, so that a malformed reply is paid for in the ledger too."""
    raw = body[:LONGEST_REPLY].decode("utf-8", "replace")
    counted: dict[str, Any] = {"raw": raw, "latency_ms": latency_ms, **_estimated(prompt, raw)}
    try:
        answer = read_answer(ChatAnswer, body, model=model)
        counted |= {"raw": answer.text, **_estimated(prompt, answer.text), **_told(answer.usage or Usage())}
        return Completion(reply=validate_reply(request, answer.text), **counted)
    except MalformedReply as error:
        raise CallFailed(str(error), kind=FailureKind.MALFORMED, **counted) from error


def _estimated(prompt: Prompt, raw: str) -> dict[str, Any]:
    sent, received = estimate_tokens(prompt.system, prompt.user), estimate_tokens(raw)
    return {"input_tokens": sent, "output_tokens": received, "tokens_estimated": True}


def _told(usage: Usage) -> dict[str, Any]:
    """Return what takes the place of an estimate; nothing where a server counts nothing, or says that it was none."""
    if not usage.prompt_tokens or usage.completion_tokens is None:
        return {}
    return {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens, "tokens_estimated": False}


def _count_prompt(failure: CallFailed, prompt: Prompt) -> CallFailed:
    """Assume that a prompt was billed where the server worked on it before the answer was lost."""
    if failure.kind in (FailureKind.TIMEOUT, FailureKind.MALFORMED):
        failure.input_tokens = estimate_tokens(prompt.system, prompt.user)
        failure.tokens_estimated = True
    return failure
