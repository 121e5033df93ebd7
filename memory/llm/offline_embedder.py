"""Sentence vectors from the models that ship with the project: the default where no server and no folder is named.

Each vector is two side by side: the reader's, which knows what sentences mean in several languages, and the static
model's, which knows names and rare words. Together they find more than either alone (docs/quality.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memory.domain.similarity import Profile
from memory.llm.offline import static_embedder
from memory.llm.profiles import load_profile
from memory.llm.reader import VECTOR_DIMENSIONS, Reader, reader
from memory.llm.types import DIMENSIONS, Embedded, reject_blank, unit_rows

NAME = "engram-offline-1"
READER_SHARE = 0.6  # of a cosine; from 0.5 to 0.7 the right memories are found alike
_MEANING, _WORDS = np.float32(READER_SHARE**0.5), np.float32((1 - READER_SHARE) ** 0.5)
PIECE_TOKENS = 250  # of a text that is embedded in pieces: no more than the reader takes of a text


class OfflineEmbedder:
    """Embeds with the reader's encoder and the static model; a long text is the average of its pieces."""

    is_local = True
    is_multilingual = True

    def __init__(self, *, model: Reader | None = None) -> None:
        self._reader, self._static = model or reader(), static_embedder()

    @cached_property
    def name(self) -> str:
        """Name the model; it changes with the reader's training: vectors of two trainings are not comparable."""
        return f"{NAME}@{self._reader.version}"

    @property
    def profile(self) -> Profile:
        """Return the profile that ships for this reader."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768); the time limit is for models that can stall."""
        reject_blank(texts)
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        meanings = unit_rows(np.stack([self._average(text, is_query=is_query) for text in texts]))
        words = self._static.embed(texts)
        return _side_by_side(meanings * _MEANING, words * _WORDS)

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return the vectors; nobody counts what this machine does."""
        return Embedded(vectors=self.embed(texts, timeout=timeout, is_query=is_query), tokens=0)

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return the static model's vector of weighted words, in its place; None where no word weighs anything."""
        words = self._static.embed_weighted(text, weights=weights)
        if words is None:
            return None
        weighted: NDArray[np.float32] = _side_by_side(np.zeros((1, DIMENSIONS), dtype=np.float32), words[np.newaxis])[0]
        return weighted

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text is cut into pieces."""
        return len(text) > PIECE_TOKENS and len(self._reader.token_offsets(text)) > PIECE_TOKENS

    def _average(self, text: str, *, is_query: bool) -> NDArray[np.float32]:
        """Average the centred vectors of a text's pieces, weighted by their length."""
        if not self.is_overlong(text):
            return self._reader.centred_vector(text, is_query=is_query)
        starts = self._reader.token_offsets(text)[::PIECE_TOKENS]
        pieces = [text[start:end] for start, end in pairwise([*starts, len(text)])]
        vectors = [self._reader.centred_vector(piece, is_query=is_query) for piece in pieces]
        mean: NDArray[np.float32] = np.average(vectors, axis=0, weights=[len(piece) for piece in pieces])
        return mean.astype(np.float32)


def _side_by_side(meanings: NDArray[np.float32], words: NDArray[np.float32]) -> NDArray[np.float32]:
    """Put the reader's dimensions before the static model's; both are padded to 768 and together have room there."""
    joined: NDArray[np.float32] = np.concatenate(
        [meanings[:, :VECTOR_DIMENSIONS], words[:, : DIMENSIONS - VECTOR_DIMENSIONS]], axis=1
    )
    return joined
