"""Vectors that the scripted model server hands out."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Embed = Callable[[Sequence[str], int], NDArray[np.float32]]


def hashed_vectors(texts: Sequence[str], dimensions: int) -> NDArray[np.float32]:
    """Add up one random direction per word: the same words give the same vector on every machine."""
    rows = [sum((_direction(word, dimensions) for word in _words(text)), np.zeros(dimensions)) for text in texts]
    vectors = np.array(rows, dtype=np.float32).reshape(len(texts), dimensions)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-9))
    return unit


def mapped_vectors(mapping: Mapping[str, NDArray[np.float32]]) -> Embed:
    """Hand out given vectors by text, hashed ones for any other."""

    def embed(texts: Sequence[str], dimensions: int) -> NDArray[np.float32]:
        rows = hashed_vectors(texts, dimensions)
        for row, text in enumerate(texts):
            if text in mapping:
                rows[row] = mapping[text][:dimensions]
        return rows

    return embed


def offline_vectors(texts: Sequence[str], dimensions: int) -> NDArray[np.float32]:
    """Hand out the vectors of the model that ships with the project."""
    from memory.llm.offline import StaticEmbedder

    return StaticEmbedder().embed(texts)[:, :dimensions]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold()) or [""]


def _direction(word: str, dimensions: int) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dimensions)
