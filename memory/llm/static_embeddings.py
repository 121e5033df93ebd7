"""Wordllama's static word vectors: no network, no server, some 50 µs a text."""

import logging
import os
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.llm.embeddings import Embedded, reject_blank, unit_rows
from memory.llm.profiles import load_profile

LONGEST_TOKENS = 512
BATCH = 256


class StaticEmbedder:
    """Averages one vector per token; knows words, not their order."""

    name = "wordllama-l2-supercat-256"
    is_local = True
    is_multilingual = False

    def __init__(self) -> None:
        self._tokenizer, self._table = _load_wordllama()

    @cached_property
    def profile(self) -> Profile:
        """Return the profile that ships for this model."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768); the time limit is for models that can stall."""
        reject_blank(texts)
        vectors = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), BATCH):
            encoded = self._tokenizer.encode_batch(list(texts[start : start + BATCH]), add_special_tokens=False)
            for row, encoding in enumerate(encoded, start):
                vectors[row] = self._average(encoding.ids)
        return unit_rows(vectors)

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return the vectors; nobody counts what this machine does."""
        return Embedded(vectors=self.embed(texts, timeout=timeout), tokens=0)

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text has more tokens than one piece holds."""
        return len(text) > LONGEST_TOKENS and self.count_tokens(text) > LONGEST_TOKENS

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _average(self, ids: list[int]) -> NDArray[np.float32]:
        """Average the pieces of a text, each the mean of its tokens, weighted by their length."""
        pieces = [ids[start : start + LONGEST_TOKENS] for start in range(0, len(ids), LONGEST_TOKENS)]
        total = np.zeros(self._table.shape[1], dtype=np.float32)
        for piece in pieces:
            total += self._table[piece].sum(axis=0, dtype=np.float32)
        return total / np.float32(max(len(ids), 1))


def _load_wordllama() -> tuple[Any, NDArray[np.float32]]:
    """Load tokenizer and table from the package's own folder; its usual way of loading tries the network."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed")
    folder = Path(spec.submodule_search_locations[0])
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers[:], logging.getLogger().level
    from wordllama import WordLlama

    root.handlers[:], root.level = handlers, level  # importing it configures the root logger
    model = WordLlama.load(config="l2_supercat", dim=256, cache_dir=folder, disable_download=True)
    model.tokenizer.no_padding()
    return model.tokenizer, model.embedding
