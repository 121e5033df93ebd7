"""The language model and the embedding model of a server that speaks OpenAI's protocol.

`OpenAIModel` answers requests, `OpenAIEmbedder` gives vectors; each makes one attempt per call.
"""

from __future__ import annotations

import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.domain.similarity import Profile
from memory.llm.openai_client import (
    BATCH_TEXTS,
    ChatAnswer,
    Usage,
    VectorsAnswer,
    client_for,
    failure_from,
    read_answer,
    timeout_of,
)
from memory.llm.profiles import load_profile
from memory.llm.prompts import Prompt, build_prompt, estimate_tokens, reply_tokens
from memory.llm.replies import LONGEST_REPLY, MalformedReply, reply_schema, validate_reply
from memory.llm.requests import Purpose, Request
from memory.llm.types import (
    DIMENSIONS,
    FEWEST_DIMENSIONS,
    CallFailed,
    Completion,
    Embedded,
    FailureKind,
    WrongDimensions,
    reject_blank,
    unit_rows,
)


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
            raise _bill_prompt(failure_from(error, started=started), prompt) from error
        latency_ms = round((time.monotonic() - started) * 1000)
        return _read_completion(request, prompt, body, model=self._models[request.purpose], latency_ms=latency_ms)

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
            **dialect.options(request, most=reply_tokens(request=request)),
        )
        return response.content

    def _server(self, purpose: Purpose) -> tuple[str, str]:
        return self._base_url, self._models[purpose]


def _read_completion(request: Request, prompt: Prompt, body: bytes, *, model: str, latency_ms: int) -> Completion:
    """Count first, then parse, so that a malformed reply is paid for in the ledger too."""
    raw = body[:LONGEST_REPLY].decode("utf-8", "replace")
    counted: dict[str, Any] = {"raw": raw, "latency_ms": latency_ms, **_estimated_usage(prompt, raw)}
    try:
        answer = read_answer(ChatAnswer, body, model=model)
        counted |= {
            "raw": answer.text,
            **_estimated_usage(prompt, answer.text),
            **_counted_usage(answer.usage or Usage()),
        }
        return Completion(reply=validate_reply(request, answer.text), **counted)
    except MalformedReply as error:
        raise CallFailed(str(error), kind=FailureKind.MALFORMED, **counted) from error


def _estimated_usage(prompt: Prompt, raw: str) -> dict[str, Any]:
    sent, received = estimate_tokens(prompt.system, prompt.user), estimate_tokens(raw)
    return {"input_tokens": sent, "output_tokens": received, "tokens_estimated": True}


def _counted_usage(usage: Usage) -> dict[str, Any]:
    """Return what takes the place of an estimate; nothing where a server counts nothing, or says that it was none."""
    if not usage.prompt_tokens or usage.completion_tokens is None:
        return {}
    return {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens, "tokens_estimated": False}


def _bill_prompt(failure: CallFailed, prompt: Prompt) -> CallFailed:
    """Assume that a prompt was billed where the server worked on it before the answer was lost."""
    if failure.kind in (FailureKind.TIMEOUT, FailureKind.MALFORMED):
        failure.input_tokens = estimate_tokens(prompt.system, prompt.user)
        failure.tokens_estimated = True
    return failure


TEMPERATURE = 0.0
_PLAINER_LIMITS = {"max_completion_tokens": "max_tokens", "max_tokens": ""}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Which optional parts of the protocol a server takes."""

    json_schema: bool = True
    temperature: bool = True
    limit: str = "max_completion_tokens"

    def without(self, complaint: str) -> Dialect | None:
        """Give up what a server complained about, or return None if nothing is left to give up."""
        if self.temperature and "temperature" in complaint:
            return replace(self, temperature=False)
        if self.limit and self.limit in complaint:
            return replace(self, limit=_PLAINER_LIMITS[self.limit])
        return replace(self, json_schema=False) if self.json_schema else None

    def options(self, request: Request, *, most: int) -> dict[str, Any]:
        """Spell the dialect as parameters of a call."""
        schema = {"name": request.purpose.value, "strict": True, "schema": reply_schema(request=request)}
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


class OpenAIEmbedder:
    """Embeds in batches; asks for 768 dimensions only where a model has more."""

    is_local = False
    is_multilingual = True

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        self.name = model
        self._base_url, self._api_key = base_url, api_key
        self._must_shorten = model.startswith(SHORTENABLE)

    @property
    def profile(self) -> Profile:
        """Return the profile that ships for this model, else the one that changes nothing and says so."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768) within `timeout` seconds over all batches."""
        return self.embed_counted(texts, timeout=timeout).vectors

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return the vectors and the tokens that the server counted for them."""
        reject_blank(texts)
        deadline = time.monotonic() + (timeout or USUAL_SECONDS)
        totals, tokens = np.zeros((len(texts), DIMENSIONS), dtype=np.float32), 0
        for batch in _batches([piece for owner, text in enumerate(texts) for piece in _pieces(owner, text)]):
            found = self._ask([piece.text for piece in batch], deadline=deadline)
            vectors, tokens = _unit(found.vectors), tokens + found.tokens
            weights = np.array([[len(piece.text)] for piece in batch], dtype=np.float32)
            np.add.at(totals, [piece.owner for piece in batch], vectors * weights)
        return Embedded(vectors=_unit(totals), tokens=tokens)

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return nothing: a server reads a text as a whole."""
        return None

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text is longer than one piece."""
        return len(text) > LONGEST_CHARACTERS

    def _ask(self, texts: list[str], *, deadline: float) -> Embedded:
        """Return raw vectors, shortened by the server if they would not fit."""
        found = self._request(texts, deadline=deadline)
        if found.vectors.shape[1] > DIMENSIONS and not self._must_shorten:
            self._must_shorten = True
            wasted = found.tokens
            found = self._request(texts, deadline=deadline)
            found = Embedded(vectors=found.vectors, tokens=found.tokens + wasted)
        if not FEWEST_DIMENSIONS <= found.vectors.shape[1] <= DIMENSIONS:
            raise WrongDimensions(model=self.name, dimensions=found.vectors.shape[1])
        return found

    def _request(self, texts: list[str], *, deadline: float) -> Embedded:
        started = time.monotonic()
        options: dict[str, Any] = {"dimensions": DIMENSIONS} if self._must_shorten else {}
        client = client_for(base_url=self._base_url, api_key=self._api_key)
        try:
            response = client.embeddings.with_raw_response.create(
                model=self.name, input=texts, timeout=timeout_of(max(deadline - started, 0.1)), **options
            )
        except Exception as error:
            raise failure_from(error, started=started) from error
        try:
            answer = read_answer(VectorsAnswer, response.content, model=self.name)
            tokens = answer.usage.prompt_tokens if answer.usage else None
            return Embedded(vectors=_read_vectors(answer, expected=len(texts)), tokens=tokens or 0)
        except MalformedReply as error:
            raise CallFailed(str(error), kind=FailureKind.MALFORMED) from error


BATCH_CHARACTERS = 300_000
LONGEST_CHARACTERS = 8_000
USUAL_SECONDS = 30.0
SHORTENABLE = ("text-embedding-3",)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a text that fits the model, and which text it is from."""

    owner: int
    text: str


def _read_vectors(answer: VectorsAnswer, *, expected: int) -> NDArray[np.float32]:
    """Read the vectors in the order of their texts; raise MalformedReply unless each text has exactly one."""
    if len(answer.data) != expected:
        raise MalformedReply(f"{len(answer.data)} vectors for {expected} texts")
    rows = {row.index: row.embedding for row in answer.data}
    if set(rows) != set(range(expected)):
        raise MalformedReply("the vectors' numbers are not those of the texts")
    try:
        found = np.array([_numbers(rows[place]) for place in range(expected)])
    except ValueError:
        raise MalformedReply("vectors of several lengths, or of no numbers") from None
    if found.ndim != 2 or found.dtype.kind not in "fiu":
        raise MalformedReply("a vector is no list of numbers")
    with np.errstate(over="ignore", under="ignore"):
        vectors: NDArray[np.float32] = found.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise MalformedReply("a vector holds numbers that are not finite")
    return vectors


def _numbers(told: Any) -> Any:
    """Unpack base64, which the client asks for; some servers write numbers all the same."""
    return np.frombuffer(b64decode(told, validate=True), dtype="<f4") if isinstance(told, str) else told


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1; refuse one of zeros, which would be as like to every other as that one to it."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    if not largest.all():
        raise CallFailed("a vector holds nothing but zeros", kind=FailureKind.MALFORMED)
    return unit_rows(vectors / largest)  # the squares of very large and very small numbers are none


def _pieces(owner: int, text: str) -> Iterator[TextPiece]:
    for start in range(0, len(text), LONGEST_CHARACTERS):
        part = text[start : start + LONGEST_CHARACTERS]
        if part.strip():
            yield TextPiece(owner, part)


def _batches(pieces: list[TextPiece]) -> Iterator[list[TextPiece]]:
    """Group pieces so that a request stays under the usual limits of a server."""
    batch: list[TextPiece] = []
    for piece in pieces:
        if len(batch) == BATCH_TEXTS or sum(len(kept.text) for kept in batch) + len(piece.text) > BATCH_CHARACTERS:
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch
