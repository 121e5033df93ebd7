"""Sentence vectors and verdicts on pairs from models in folders on this machine.

`LocalEmbedder` embeds one text at a time: a text has the same vector in any company, which a model with quantised
activations gives in no other way (batches of sixteen would save a quarter of the time). `LocalVerdicts` judges pairs
by a classifier (B11), and leaves all else to another language model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.domain.evidence import Verdict
from memory.domain.similarity import Profile
from memory.llm.onnx_models import (
    ModelFiles,
    ModelUnavailable,
    OnnxModel,
    PairClasses,
    PairsTimedOut,
    classifier_name,
    find_files,
    pair_classifier,
)
from memory.llm.profiles import load_profile
from memory.llm.replies import Contradiction, EpisodeVerdict, Reply, Verdicts, write_reply
from memory.llm.requests import ClassificationRequest, ContradictionRequest, Purpose, Request
from memory.llm.types import (
    DIMENSIONS,
    CallFailed,
    Completion,
    Embedded,
    FailureKind,
    LanguageModel,
    WrongDimensions,
    reject_blank,
    unit_rows,
)


class LocalEmbedder:
    """Embeds with a folder's model; a text over the model's length is the average of its pieces."""

    is_local = True

    def __init__(self, *, named: str) -> None:
        self._use = read_sentence_model(named=named)
        self.name = self._use.name
        self.is_multilingual = self._use.is_multilingual
        self._model = OnnxModel(files=self._use.files, output=_SENTENCE_OUTPUT)
        self._pool = None if self._model.output == _SENTENCE_OUTPUT else _POOLS[_supported_pooling(self._use)]
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


EMBEDDING_SETTING = "ENGRAM_EMBEDDING_MODEL"
_SENTENCE_OUTPUT = "sentence_embedding"  # what models that pool by themselves call their output
_SPARE_TOKENS = 8  # a piece cut out of a text may have a few more tokens than it had within it


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Words put in front of a query and of what it is to find; most models want none."""

    query: str = ""
    document: str = ""


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
    files = find_files(named=named, setting=EMBEDDING_SETTING)
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
_POOLING_FILE = "1_Pooling/config.json"
_POOLING_MODE = re.compile(r"pooling_mode_(?P<mode>\w+?)(?:_tokens?)?")
_KNOWN_STEPS = ("Transformer", "Pooling", "Normalize")  # of a sentence model; vectors are always normalised


def _read_pooling(files: ModelFiles) -> str:
    """Return how a folder's token vectors become one: by their mean where it says nothing."""
    config = files.read(_POOLING_FILE)
    modes = [found["mode"] for name, is_on in config.items() if is_on and (found := _POOLING_MODE.fullmatch(name))]
    return "+".join(modes) or str(config.get("pooling_mode", "mean"))


def _supported_pooling(use: SentenceModel) -> str:
    """Return the way to make one vector of the tokens' own; raise ModelUnavailable where the folder wants another."""
    files = use.files
    steps = [str(step.get("type", "")).rpartition(".")[2] for step in files.read_json("modules.json") or ()]
    if further := [step for step in steps if step not in _KNOWN_STEPS]:
        raise ModelUnavailable(f"{files.folder / 'modules.json'} asks for {further[0]}, which Engram does not do.")
    leaves_out = files.read(_POOLING_FILE).get("include_prompt") is False and use.prefixes != Prefixes()
    if use.pooling not in _POOLS or leaves_out:
        asked = "pooling without the prompt" if leaves_out else f"pooling by {use.pooling}"
        raise ModelUnavailable(f"{files.folder / _POOLING_FILE} asks for {asked}; Engram pools by {', '.join(_POOLS)}.")
    return use.pooling


_SEARCH_PREFIX = Prefixes(query="Represent this sentence for searching relevant passages: ")

# As the models' own cards give them; a model that is not named here is given its texts as they are.
_FAMILIES = (
    (
        re.compile(r"nomic[-_](embed|bert)", re.IGNORECASE),
        Prefixes(query="search_query: ", document="search_document: "),
    ),
    (re.compile(r"(^|[-/])e5-", re.IGNORECASE), Prefixes(query="query: ", document="passage: ")),
    (re.compile(r"mxbai-embed|snowflake-arctic-embed|bge-\w+-en$", re.IGNORECASE), _SEARCH_PREFIX),
)


def prefixes_of(*, names: tuple[str, ...], prompts: Mapping[str, Any] | None = None) -> Prefixes:
    """Return what a model's own files ask for (sentence-transformers' prompts), else what its family does."""
    given = {name: value for name, value in (prompts or {}).items() if isinstance(value, str)}
    if given.get("query") or given.get("document") or given.get("passage"):
        return Prefixes(query=given.get("query", ""), document=given.get("document", given.get("passage", "")))
    return next((prefixes for family, prefixes in _FAMILIES if any(map(family.search, names))), Prefixes())


class LocalVerdicts:
    """A language model whose verdicts come from a classifier of pairs: it costs nothing and knows only pairs."""

    def __init__(self, *, base: LanguageModel, classifier: str) -> None:
        self._base, self._classifier = base, classifier

    @property
    def is_offline(self) -> bool:
        """Tell whether all else comes from this machine, too."""
        return self._base.is_offline

    def model_for(self, purpose: str) -> str:
        """Name the classifier for what it judges, else the other model."""
        return self._name if purpose in _PAIR_PURPOSES else self._base.model_for(purpose)

    def parameters_for(self, purpose: str) -> dict[str, str | float]:
        """Return what shapes the other model's answers; a classifier has no settings."""
        return {} if purpose in _PAIR_PURPOSES else self._base.parameters_for(purpose)

    def complete(self, *, request: Request, timeout: float) -> Completion:
        """Judge pairs within the time, or hand on what is none; raise CallFailed."""
        began = time.monotonic()
        match request:
            case ClassificationRequest():
                reply: Reply = _classify(self._classifier, request, timeout)
            case ContradictionRequest():
                reply = _find_contradiction(self._classifier, request, timeout)
            case _:
                return self._base.complete(request=request, timeout=timeout)
        return Completion(
            reply=reply,
            raw=write_reply(request=request, reply=reply),
            input_tokens=0,
            output_tokens=0,
            latency_ms=round((time.monotonic() - began) * 1000),
        )

    @cached_property
    def _name(self) -> str:
        try:
            return classifier_name(named=self._classifier)[-_MAX_NAME:]
        except ModelUnavailable:  # what asks it for a verdict is told why
            return Path(self._classifier).name[-_MAX_NAME:]


_PAIR_PURPOSES = (Purpose.CLASSIFY, Purpose.CONTRADICT)
_MAX_NAME = 100  # characters of a model's name in the ledger


ENTAILED = 0.7  # probability; what a classifier is less sure of says nothing
CONTRADICTED = 0.8  # more is asked here: such classifiers are quick to find a contradiction in another topic
_WHY_CONTRADICTED = "it says otherwise"


def _classify(classifier: str, request: ClassificationRequest, timeout: float) -> Verdicts:
    asked = [(belief, episode) for belief in request.beliefs for episode in request.episodes]
    judged = _judge_pairs(classifier, [(episode.text, belief.statement) for belief, episode in asked], timeout)
    return Verdicts(
        verdicts=[
            EpisodeVerdict(
                belief=belief.id,
                id=episode.id,
                verdict=verdict,
                reason=_WHY_CONTRADICTED if verdict is Verdict.CONTRADICTS else "",
            )
            for (belief, episode), verdict in zip(asked, judged, strict=True)
        ]
    )


def _find_contradiction(classifier: str, request: ContradictionRequest, timeout: float) -> Contradiction:
    """Name the beliefs that cannot be true beside a fact."""
    pairs = [(request.fact.statement, belief.statement) for belief in request.beliefs]
    judged = _judge_pairs(classifier, pairs, timeout)
    found = [number for number, verdict in enumerate(judged, 1) if verdict is Verdict.CONTRADICTS]
    return Contradiction(contradicts=found, reason=_WHY_CONTRADICTED if found else "")


def _judge_pairs(classifier: str, pairs: Sequence[tuple[str, str]], timeout: float) -> list[Verdict]:
    """Judge what a text, first, says of another, both as they stand."""
    try:
        classes = pair_classifier(named=classifier).classify(pairs, seconds=timeout)
    except ModelUnavailable as error:
        raise CallFailed(str(error), kind=FailureKind.AUTH) from error
    except PairsTimedOut as error:
        raise CallFailed(f"{len(pairs)} pairs took longer than {timeout:g} s", kind=FailureKind.TIMEOUT) from error
    return [_verdict_of(found) for found in classes]


def _verdict_of(found: PairClasses) -> Verdict:
    if found.contradiction >= CONTRADICTED:
        return Verdict.CONTRADICTS
    return Verdict.SUPPORTS if found.entailment >= ENTAILED else Verdict.IRRELEVANT
