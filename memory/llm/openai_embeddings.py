"""Vectors from any server that speaks OpenAI's embeddings protocol."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.llm.embeddings import DIMENSIONS, Embedded, WrongDimensions, reject_blank, unit_rows
from memory.llm.model import CallFailed, FailureKind
from memory.llm.openai_client import client_for, failure_from, timeout_of
from memory.llm.profiles import load_profile

BATCH_TEXTS = 256
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
            vectors, tokens = unit_rows(found.vectors), tokens + found.tokens
            weights = np.array([[len(piece.text)] for piece in batch], dtype=np.float32)
            np.add.at(totals, [piece.owner for piece in batch], vectors * weights)
        return Embedded(vectors=unit_rows(totals), tokens=tokens)

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
        if not 0 < found.vectors.shape[1] <= DIMENSIONS:
            raise WrongDimensions(model=self.name, dimensions=found.vectors.shape[1])
        return found

    def _request(self, texts: list[str], *, deadline: float) -> Embedded:
        started = time.monotonic()
        options: dict[str, Any] = {"dimensions": DIMENSIONS} if self._must_shorten else {}
        client = client_for(base_url=self._base_url, api_key=self._api_key)
        try:
            answer = client.embeddings.create(
                model=self.name, input=texts, timeout=timeout_of(max(deadline - started, 0.1)), **options
            )
        except Exception as error:
            raise failure_from(error, started=started) from error
        vectors = self._vectors(answer, expected=len(texts))
        return Embedded(vectors=vectors, tokens=getattr(getattr(answer, "usage", None), "prompt_tokens", 0) or 0)

    def _vectors(self, answer: Any, *, expected: int) -> NDArray[np.float32]:
        """Read the vectors in the order of their texts; refuse too few, ragged or not finite ones."""
        try:
            rows = [row.embedding for row in sorted(answer.data, key=lambda row: row.index)]
            lengths = {len(row) for row in rows}
        except (AttributeError, TypeError) as error:
            raise CallFailed("no vectors in the server's answer", kind=FailureKind.MALFORMED) from error
        if len(rows) != expected:
            raise CallFailed(f"{len(rows)} vectors for {expected} texts", kind=FailureKind.MALFORMED)
        if len(lengths) > 1:
            raise WrongDimensions(model=self.name, dimensions=max(lengths))
        vectors = np.array(rows, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise CallFailed("a vector holds numbers that are not finite", kind=FailureKind.MALFORMED)
        return vectors


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
