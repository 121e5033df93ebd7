"""Vectors from any server that speaks OpenAI's embeddings protocol."""

import time
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.llm.answers import BATCH_TEXTS, VectorsAnswer, read_answer
from memory.llm.embeddings import DIMENSIONS, FEWEST_DIMENSIONS, Embedded, WrongDimensions, reject_blank, unit_rows
from memory.llm.model import CallFailed, FailureKind
from memory.llm.openai_client import client_for, failure_from, timeout_of
from memory.llm.profiles import load_profile
from memory.llm.replies import MalformedReply

BATCH_CHARACTERS = 300_000
LONGEST_CHARACTERS = 8_000
USUAL_SECONDS = 30.0
SHORTENABLE = ("text-embedding-3",)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text that fits the model, and which text it is from."""

    owner: int
    text: str


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


def _pieces(owner: int, text: str) -> Iterator[Piece]:
    for start in range(0, len(text), LONGEST_CHARACTERS):
        part = text[start : start + LONGEST_CHARACTERS]
        if part.strip():
            yield Piece(owner, part)


def _batches(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Group pieces so that a request stays under the usual limits of a server."""
    batch: list[Piece] = []
    for piece in pieces:
        if len(batch) == BATCH_TEXTS or sum(len(kept.text) for kept in batch) + len(piece.text) > BATCH_CHARACTERS:
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch
