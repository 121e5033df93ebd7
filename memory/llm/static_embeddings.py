"""Wordllama's static word vectors: no network, no server, some 50 µs a text."""

import os
import re
from collections.abc import Mapping, Sequence
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
_WORD = re.compile(r"\w+")

_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TABLE = "weights/l2_supercat_256.safetensors"


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

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return the unit vector (768) of a text whose lower-case words weigh so much, all others nothing.

        None where none of them weighs anything.
        """
        weight_at = np.zeros(len(text), dtype=np.float32)
        for word in _WORD.finditer(text):
            weight_at[word.start() : word.end()] = weights.get(word.group().lower(), 0.0)
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        shares = np.array([weight_at[start:end].max(initial=0.0) for start, end in encoded.offsets], dtype=np.float32)
        if not shares.any():
            return None
        total: NDArray[np.float32] = shares @ self._table[encoded.ids]
        return np.asarray(unit_rows(total[np.newaxis])[0])

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
    """Load tokenizer and table from the files of the package; its own code, which would reach for a hub, is not run."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed")
    folder = Path(spec.submodule_search_locations[0])
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, load_file(folder / _TABLE)["embedding.weight"].astype(np.float32)
