"""Sentence models that run on this machine by onnxruntime, from a folder or by a name that fastembed knows.

Texts go through one at a time: a model with quantised activations gives a text other numbers in other company, and
on a processor a batch gains less than its padding costs.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from django.core.exceptions import ImproperlyConfigured
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.llm.embeddings import DIMENSIONS, Embedded, WrongDimensions, reject_blank, unit_rows
from memory.llm.prefixes import Prefixes
from memory.llm.profiles import load_profile

LONGEST_TOKENS = 512  # of a piece, whatever a model allows: attention's memory grows by the square
NEEDS_THE_EXTRA = "ENGRAM_EMBEDDINGS=local needs the extra `local`: pip install -r requirements-local.txt."
_SPARE_TOKENS = 8  # a piece cut out of a text may have a few more tokens than it had within it

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads would not survive a fork


class ModelUnavailable(ImproperlyConfigured):
    """An embedding model that cannot be loaded here; the message says why and what to do."""


class Runtime(Protocol):
    """A loaded model: what it is called, how it cuts texts into tokens, and how it turns texts into vectors."""

    name: str
    tokenizer: Any  # of the package tokenizers; truncates and pads nothing
    longest_tokens: int
    prefixes: Prefixes
    is_multilingual: bool

    def run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return raw vectors of shape (n, dimensions of the model)."""
        ...


class LocalEmbedder:
    """Embeds with a runtime; a text over the model's length is the average of its pieces."""

    is_local = True

    def __init__(self, *, runtime: Runtime) -> None:
        self.name, self.is_multilingual = runtime.name, runtime.is_multilingual
        self._runtime = runtime
        found = runtime.run(["x"]).shape[1]
        if not 0 < found <= DIMENSIONS:
            raise WrongDimensions(model=self.name, dimensions=found)
        self._dimensions = found

    @property
    def profile(self) -> Profile:
        """Return the profile that ships for this model, else the one that changes nothing and says so."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768); the time limit is for models that can stall."""
        reject_blank(texts)
        prefixes = self._runtime.prefixes
        prefix = prefixes.query if is_query else prefixes.document
        return unit_rows(self._rows([self._average(text, prefix) for text in texts]))

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return the vectors; nobody counts what this machine does."""
        return Embedded(vectors=self.embed(texts, timeout=timeout, is_query=is_query), tokens=0)

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text has more tokens than one piece holds."""
        return len(list(self._pieces(text, self._runtime.prefixes.document))) > 1

    def _average(self, text: str, prefix: str) -> NDArray[np.float32]:
        """Average the unit vectors of a text's pieces, weighted by their length."""
        pieces = list(self._pieces(text, prefix))
        vectors = unit_rows(self._runtime.run([prefix + piece for piece in pieces]))[:, : self._dimensions]
        return np.average(vectors, axis=0, weights=[len(piece) for piece in pieces]).astype(np.float32)

    def _pieces(self, text: str, prefix: str) -> Iterator[str]:
        """Cut a text at the borders of tokens into pieces that the model reads whole."""
        tokenizer = self._runtime.tokenizer
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        room = self._runtime.longest_tokens - len(tokenizer.encode(prefix).ids)
        if len(offsets) <= room:
            yield text
            return
        step = max(room - _SPARE_TOKENS, 1)
        cuts = [0, *(offsets[place][0] for place in range(step, len(offsets), step)), len(text)]
        yield from (text[start:end] for start, end in pairwise(cuts) if text[start:end].strip())

    def _rows(self, vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.array(vectors, dtype=np.float32).reshape(len(vectors), self._dimensions)
