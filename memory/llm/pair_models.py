"""Models that read two texts side by side, each from a folder of ONNX files: a re-ranker and a pair classifier."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from django.conf import settings
from numpy.typing import NDArray
from scipy.special import expit

from memory.llm.onnx_folder import ModelFiles, ModelUnavailable, OnnxModel, find_files

RERANKER_SETTING, CLASSIFIER_SETTING = "ENGRAM_RERANKER", "ENGRAM_VERDICT_MODEL"
BATCH_PAIRS = 8
_LOGITS = "logits"
_CLASSES = {"entail": "entailment", "contradict": "contradiction", "neutral": "neutral"}

Pair = tuple[str, str]


class TookTooLong(Exception):
    """Reading the pairs took longer than it might; the batch under way was read to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairClasses:
    """How likely it is that the second text follows from the first, and that it cannot be true beside it."""

    entailment: float
    contradiction: float


class Reranker:
    """Says how well a text answers a query, both read together (a cross-encoder)."""

    def __init__(self, *, named: str) -> None:
        self._pairs = _PairModel(files=read_reranker(named=named), classes=1, setting=RERANKER_SETTING)

    def score(self, *, query: str, texts: Sequence[str], seconds: float) -> NDArray[np.float64]:
        """Return a score from 0 to 1 for each text; raise TookTooLong where that takes longer."""
        logits = self._pairs.logits([(query, text) for text in texts], seconds=seconds)
        return np.asarray(expit(logits[:, 0]), dtype=np.float64)


class PairClassifier:
    """Says whether a text follows from another, contradicts it, or neither (natural language inference)."""

    def __init__(self, *, named: str) -> None:
        files = read_classifier(named=named)
        self._places = _places_of(files)
        self._pairs = _PairModel(files=files, classes=len(_CLASSES), setting=CLASSIFIER_SETTING)

    def classify(self, pairs: Sequence[Pair], *, seconds: float) -> list[PairClasses]:
        """Judge pairs of a premise and what may follow from it; raise TookTooLong where that takes longer."""
        logits = self._pairs.logits(pairs, seconds=seconds)
        grown = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares = grown / grown.sum(axis=1, keepdims=True)
        entails, denies = self._places["entailment"], self._places["contradiction"]
        return [PairClasses(entailment=float(row[entails]), contradiction=float(row[denies])) for row in shares]


def reranker() -> Reranker | None:
    """Return the re-ranker that the settings name, one per process; None where they name none."""
    return _load_reranker(settings.ENGRAM_RERANKER) if settings.ENGRAM_RERANKER else None


@lru_cache(maxsize=2)
def pair_classifier(*, named: str) -> PairClassifier:
    """Return a folder's pair classifier, one per process; raise ModelUnavailable."""
    return PairClassifier(named=named)


@lru_cache(maxsize=2)
def _load_reranker(named: str) -> Reranker:
    return Reranker(named=named)


def read_reranker(*, named: str) -> ModelFiles:
    """Find a re-ranker without loading it; raise ModelUnavailable for what is missing, or has classes."""
    files = find_files(named=named, setting=RERANKER_SETTING)
    labels = _labels_of(files)
    if len(labels) > 1:
        told = f"names {len(labels)} classes ({', '.join(labels.values())})"
        raise ModelUnavailable(f"{files.folder / 'config.json'} {told}: a re-ranker has one score.")
    return files


def read_classifier(*, named: str) -> ModelFiles:
    """Find a pair classifier without loading it; raise ModelUnavailable for what is missing, or has other classes."""
    files = find_files(named=named, setting=CLASSIFIER_SETTING)
    _places_of(files)
    return files


def reranker_name(*, named: str) -> str:
    """Name a re-ranker by all that its scores depend on; raise ModelUnavailable."""
    files = read_reranker(named=named)
    return files.name(use=f"reranker {files.longest_tokens}")


def classifier_name(*, named: str) -> str:
    """Name a pair classifier by all that its verdicts depend on; raise ModelUnavailable."""
    files = read_classifier(named=named)
    return files.name(use=f"classifier {files.longest_tokens} {_places_of(files)}")


def _places_of(files: ModelFiles) -> dict[str, int]:
    """Return the place of each class among the model's numbers."""
    labels = _labels_of(files)
    places = {
        known: place for place, label in labels.items() for start, known in _CLASSES.items() if label.startswith(start)
    }
    if len(labels) != len(_CLASSES) or len(places) != len(_CLASSES) or set(labels) != set(range(len(_CLASSES))):
        named = ", ".join(labels.values()) or "none"
        wanted = ", ".join(_CLASSES.values())
        raise ModelUnavailable(f"{files.folder / 'config.json'} names the classes {named}; {wanted} are needed.")
    return places


def _labels_of(files: ModelFiles) -> dict[int, str]:
    """Return the names of a model's classes in small letters, from whichever way round the folder tells them."""
    config = files.read("config.json")
    by_place = config.get("id2label") or {place: label for label, place in (config.get("label2id") or {}).items()}
    return {int(place): str(label).lower() for place, label in by_place.items()}


class _PairModel:
    """Reads pairs in batches of about one length."""

    def __init__(self, *, files: ModelFiles, classes: int, setting: str) -> None:
        self._model = OnnxModel(files=files, output=_LOGITS)
        self._model.tokenizer.enable_truncation(files.longest_tokens, strategy="longest_first")
        found = self.logits([("x", "x")], seconds=float("inf")).shape[1]
        if found != classes:
            raise ModelUnavailable(f"{setting}={files.weights} gives {found} numbers for a pair instead of {classes}.")

    def logits(self, pairs: Sequence[Pair], *, seconds: float) -> NDArray[np.float64]:
        """Return what the model says of each pair, shape (n, classes)."""
        encoded = self._model.tokenizer.encode_batch(list(pairs))
        by_length = sorted(range(len(pairs)), key=lambda place: len(encoded[place].ids), reverse=True)
        found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(pairs)
        for places in _within(seconds, by_length, BATCH_PAIRS if self._model.pads else 1):
            batch = [encoded[place] for place in places]
            rows = self._model.run(ids=[one.ids for one in batch], types=[one.type_ids for one in batch])
            for place, row in zip(places, rows.reshape(len(batch), -1), strict=True):
                found[place] = row
        return np.array(found, dtype=np.float64)


def _within(seconds: float, places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield batches until the time is over; raise TookTooLong then, even after the last: nobody waits for it."""
    began = time.monotonic()
    for start in range(0, len(places), size):
        if time.monotonic() - began > seconds:
            raise TookTooLong
        yield places[start : start + size]
    if time.monotonic() - began > seconds:
        raise TookTooLong
