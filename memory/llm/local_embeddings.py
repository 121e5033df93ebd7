"""Sentence models that run on this machine, each from a folder of ONNX files.

Texts go through one at a time: a text has the same vector in any company, which a model with quantised activations
gives in no other way. Batches of sixteen texts of about one length would save a quarter of the time.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memory.domain.calibration import Profile
from memory.llm.embeddings import DIMENSIONS, Embedded, WrongDimensions, reject_blank, unit_rows
from memory.llm.onnx_folder import ModelFiles, ModelUnavailable, OnnxModel, find_files
from memory.llm.prefixes import Prefixes, prefixes_of
from memory.llm.profiles import load_profile

SETTING = "ENGRAM_EMBEDDING_MODEL"
_WHOLE = "sentence_embedding"  # what models that pool by themselves call their output
_SPARE_TOKENS = 8  # a piece cut out of a text may have a few more tokens than it had within it


class LocalEmbedder:
    """Embeds with a folder's model; a text over the model's length is the average of its pieces."""

    is_local = True

    def __init__(self, *, named: str) -> None:
        self._use = read_sentence_model(named=named)
        self.name = self._use.name
        self.is_multilingual = self._use.is_multilingual
        self._model = OnnxModel(files=self._use.files, output=_WHOLE)
        self._pool = None if self._model.output == _WHOLE else _POOLS[_supported_pooling(self._use)]
        self._dimensions = self._run("x").shape[0]
        if not 0 < self._dimensions <= DIMENSIONS:
            raise WrongDimensions(model=self.name, dimensions=self._dimensions)

    @property
    def profile(self) -> Profile:
        """Return the profile that ships for this model, else the one that changes nothing and says so."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768); the time limit is for models that can stall."""
        reject_blank(texts)
        prefixes = self._use.prefixes
        prefix = prefixes.query if is_query else prefixes.document
        return unit_rows(self._rows([self._average(text, prefix) for text in texts]))

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return the vectors; nobody counts what this machine does."""
        return Embedded(vectors=self.embed(texts, timeout=timeout, is_query=is_query), tokens=0)

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return nothing: a sentence model reads a text as a whole."""
        return None

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text has more tokens than one piece holds."""
        return len(list(self._pieces(text, self._use.prefixes.document))) > 1

    def _average(self, text: str, prefix: str) -> NDArray[np.float32]:
        """Average the unit vectors of a text's pieces, weighted by their length."""
        pieces = list(self._pieces(text, prefix))
        vectors = unit_rows(self._rows([self._run(prefix + piece) for piece in pieces]))[:, : self._dimensions]
        return np.average(vectors, axis=0, weights=[len(piece) for piece in pieces]).astype(np.float32)

    def _pieces(self, text: str, prefix: str) -> Iterator[str]:
        """Cut a text at the borders of tokens into pieces that the model reads whole."""
        tokenizer = self._model.tokenizer
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets
        room = self._use.longest_tokens - len(tokenizer.encode(prefix).ids)
        if len(offsets) <= room:
            yield text
            return
        step = max(room - _SPARE_TOKENS, 1)
        cuts = [0, *(offsets[place][0] for place in range(step, len(offsets), step)), len(text)]
        yield from (text[start:end] for start, end in pairwise(cuts) if text[start:end].strip())

    def _run(self, text: str) -> NDArray[np.float32]:
        """Return a text's raw vector, of as many dimensions as the model has."""
        ids = self._model.tokenizer.encode(text).ids[: self._use.longest_tokens]
        found = self._model.run(ids=[ids], types=[[0] * len(ids)])[0]
        return self._pool(found) if self._pool else found

    def _rows(self, vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.array(vectors, dtype=np.float32).reshape(len(vectors), self._dimensions)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceModel:
    """A folder's sentence model, and how its files say that it is to be used."""

    files: ModelFiles
    prefixes: Prefixes
    pooling: str
    longest_tokens: int
    is_multilingual: bool

    @property
    def name(self) -> str:
        """Name it by all that its vectors depend on."""
        pooling = {"mean": False, "cls": True}.get(self.pooling, self.pooling)
        return self.files.name(use=f"{pooling} {self.longest_tokens} {self.prefixes}")


def read_sentence_model(*, named: str) -> SentenceModel:
    """Read a folder without loading its model; raise ModelUnavailable that names what is missing or cannot be done."""
    files = find_files(named=named, setting=SETTING)
    config = files.read("config.json")
    names = (files.folder.name, str(config.get("_name_or_path", "")), str(config.get("model_type", "")))
    return SentenceModel(
        files=files,
        prefixes=prefixes_of(names=names, prompts=files.read("config_sentence_transformers.json").get("prompts")),
        pooling=_read_pooling(files),
        longest_tokens=files.longest_tokens,
        is_multilingual=any("multilingual" in name for name in names),
    )


_POOLS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "mean": lambda tokens: np.asarray(tokens.mean(axis=0)),
    "cls": lambda tokens: tokens[0],
    "max": lambda tokens: np.asarray(tokens.max(axis=0)),
    "lasttoken": lambda tokens: tokens[-1],
}
_POOLING = "1_Pooling/config.json"
_CHOSEN = re.compile(r"pooling_mode_(?P<mode>\w+?)(?:_tokens?)?")
_STEPS = ("Transformer", "Pooling", "Normalize")  # of a sentence model; vectors are always normalised


def _read_pooling(files: ModelFiles) -> str:
    """Return how a folder's token vectors become one: by their mean where it says nothing."""
    config = files.read(_POOLING)
    modes = [found["mode"] for name, is_on in config.items() if is_on and (found := _CHOSEN.fullmatch(name))]
    return "+".join(modes) or str(config.get("pooling_mode", "mean"))


def _supported_pooling(use: SentenceModel) -> str:
    """Return the way to make one vector of the tokens' own; raise ModelUnavailable where the folder wants another."""
    files = use.files
    steps = [str(step.get("type", "")).rpartition(".")[2] for step in files.read_json("modules.json") or ()]
    if further := [step for step in steps if step not in _STEPS]:
        raise ModelUnavailable(f"{files.folder / 'modules.json'} asks for {further[0]}, which Engram does not do.")
    leaves_out = files.read(_POOLING).get("include_prompt") is False and use.prefixes != Prefixes()
    if use.pooling not in _POOLS or leaves_out:
        asked = "pooling without the prompt" if leaves_out else f"pooling by {use.pooling}"
        raise ModelUnavailable(f"{files.folder / _POOLING} asks for {asked}; Engram pools by {', '.join(_POOLS)}.")
    return use.pooling
