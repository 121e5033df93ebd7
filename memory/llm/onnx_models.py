"""Models in folders of ONNX files.

Finding them, running them with onnxruntime, and the two kinds that read pairs of texts.

A folder holds model.onnx (or onnx/model.onnx), tokenizer.json and config.json, as exports of sentence-transformers
and Optimum have them. Where it holds the model several times, the one of full precision is run: 8-bit weights ruin
some models. Another is run where its file is named instead of the folder. `reranker` and `pair_classifier` return the
models that the settings name.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from numpy.typing import NDArray
from scipy.special import expit

MAX_TOKENS = 512  # of a piece, whatever a model allows: attention's memory grows by the square
INSTALL_EXTRA = "pip install -r requirements-local.txt"
MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_BLOCK_BYTES = 1 << 20  # bytes
_LFS_POINTER = b"version https://git-lfs"  # what git leaves in the place of a file that was not fetched
_SEARCHED_BYTES = 32 << 20  # bytes; a model that keeps its weights in files beside it is smaller
_EXTERNAL_DATA = re.compile(
    rb"\n\x08location\x12([\x01-\x7f])"
)  # an entry of a tensor's external data, its length at the end
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads would not survive a fork


class ModelUnavailable(ImproperlyConfigured):
    """A model that cannot be loaded here; the message names the setting or the file, and says what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """A folder that was found whole, and the file in it that is to be run."""

    folder: Path
    weights: Path

    def read(self, name: str) -> dict[str, Any]:
        """Read a JSON object of the folder; one that is not there has nothing in it."""
        found = self.read_json(name)
        return found if isinstance(found, dict) else {}

    def read_json(self, name: str) -> Any:
        """Read a JSON file of the folder, None where there is none; raise ModelUnavailable for what is no JSON."""
        path = self.folder / name
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelUnavailable(f"{path} cannot be read: {error}.") from error

    @property
    def longest_tokens(self) -> int:
        """Return the least of the lengths that the folder's files name, and of ours."""
        named = (
            self.read("sentence_bert_config.json").get("max_seq_length"),
            self.read("tokenizer_config.json").get("model_max_length"),
            self.read("config.json").get("max_position_embeddings"),
        )
        return min([MAX_TOKENS, *(value for value in named if isinstance(value, int) and value > 0)])

    def name(self, *, use: str) -> str:
        """Name the model by its folder, the hash of its weights and that of how they are used.

        So no two models' results ever pass for each other's.
        """
        used = hashlib.sha256(use.encode() + (self.folder / _TOKENIZER).read_bytes()).hexdigest()
        return f"{self.folder.name}@{_hash_weights(self.weights)}-{used[:6]}"


def find_files(*, named: str, setting: str) -> ModelFiles:
    """Find the model that a setting names by its folder or file, without loading it.

    Raise ModelUnavailable that names what is missing, or only half there.
    """
    path, weights = Path(named).expanduser().resolve(), weights_in(named)
    folder = path
    if path.suffix == ".onnx":
        folder = next((one for one in (path.parent, path.parent.parent) if (one / _TOKENIZER).is_file()), path.parent)
    if not named or not folder.is_dir():
        raise ModelUnavailable(f"{setting}={named} is no folder." if named else f"{setting} names no folder.")
    if weights is None or not weights.is_file():
        raise ModelUnavailable(f"{setting}={named} lacks {_missing_weights(folder, weights)}.")
    if not (folder / _TOKENIZER).is_file():
        raise ModelUnavailable(f"{setting}={named} lacks {_TOKENIZER}.")
    for file in (weights, folder / _TOKENIZER, *_external_files(weights)):
        _reject_incomplete(file)
    return ModelFiles(folder=folder, weights=weights)


def weights_in(named: str) -> Path | None:
    """Return the file that a folder's name, or its own, stands for; None where a folder has none."""
    path = Path(named).expanduser().resolve()
    if path.suffix == ".onnx":
        return path
    return next((path / name for name in MODEL_FILES if (path / name).is_file()), None)


def file_with(*, folder: Path, weights: str) -> Path | None:
    """Return the ONNX file of a folder whose weights have that hash, as `ModelFiles.name` tells it."""
    return next((file for file in _onnx_files(folder) if _hash_weights(file) == weights), None)


class OnnxModel:
    """A loaded model on one thread: without threads of its own a session survives a fork and is shared by it."""

    def __init__(self, *, files: ModelFiles, output: str) -> None:
        onnxruntime, tokenizers = _import_runtime()
        self.tokenizer = _load_file(files.folder / _TOKENIZER, lambda path: tokenizers.Tokenizer.from_file(path))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        on = ["CPUExecutionProvider"]
        self._session = _load_file(
            files.weights, lambda path: onnxruntime.InferenceSession(path, options, providers=on)
        )
        self._inputs = {node.name: _width_of(node.type) for node in self._session.get_inputs()}
        if unknown := ", ".join(sorted(self._inputs.keys() - _INPUTS)):
            raise ModelUnavailable(f"{files.weights} is no model that Engram can run: it asks for {unknown}.")
        outputs = [node.name for node in self._session.get_outputs()]
        self.output = output if output in outputs else outputs[0]
        self._padding = files.read("config.json").get("pad_token_id") or 0

    @property
    def pads(self) -> bool:
        """Tell whether texts of several lengths may go through together: the model is told where each ends."""
        return "attention_mask" in self._inputs

    def run(self, *, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return what the model says of one batch of token ids and their types, shape (n, …)."""
        longest = max(map(len, ids))
        given = {
            "input_ids": _padded(ids, longest, self._padding),
            "attention_mask": _padded([[1] * len(row) for row in ids], longest, 0),
            "token_type_ids": _padded(types, longest, 0),
        }
        feed = {name: given[name].astype(width) for name, width in self._inputs.items()}
        found: NDArray[np.float32] = self._session.run([self.output], feed)[0]
        return found.astype(np.float32, copy=False)


def _padded(rows: Sequence[Sequence[int]], length: int, filler: int) -> NDArray[np.int64]:
    return np.array([[*row, *[filler] * (length - len(row))] for row in rows], dtype=np.int64)


def _width_of(kind: str) -> type[np.integer[Any]]:
    return np.int32 if kind == "tensor(int32)" else np.int64


def _load_file(path: Path, read: Any) -> Any:
    try:
        return read(str(path))
    except Exception as error:  # each of the two packages raises kinds of its own, for a file that is damaged
        raise ModelUnavailable(f"{path} cannot be loaded: {error}") from error


def _import_runtime() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise ModelUnavailable(f"A model in a folder needs the extra `local`: {INSTALL_EXTRA}. ({error})") from error
    return onnxruntime, tokenizers


def _missing_weights(folder: Path, weights: Path | None) -> str:
    """Say what file is missing, and which others there are to be named."""
    missing = weights.name if weights else " or ".join(MODEL_FILES)
    others = ", ".join(str(file.relative_to(folder)) for file in _onnx_files(folder))
    return f"{missing}; it has {others}, which can be named" if others else missing


def _onnx_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])


def _external_files(weights: Path) -> Iterable[Path]:
    """Name the files that a model's file says its weights are in."""
    if weights.stat().st_size > _SEARCHED_BYTES:
        return ()
    content = weights.read_bytes()
    ends = [(found.end(), found.end() + found[1][0]) for found in _EXTERNAL_DATA.finditer(content)]
    return sorted({weights.parent / content[start:end].decode(errors="replace") for start, end in ends})


def _reject_incomplete(file: Path) -> None:
    if not file.is_file():
        raise ModelUnavailable(f"{file} is missing: the model's weights are in it.")
    with file.open("rb") as opened:
        start = opened.read(len(_LFS_POINTER))
    if not start:
        raise ModelUnavailable(f"{file} is empty.")
    if start == _LFS_POINTER:
        raise ModelUnavailable(f"{file} is not the file itself, but git's pointer to it: fetch it with `git lfs pull`.")


def _hash_weights(file: Path) -> str:
    """Hash a model's file, and those beside it that hold its weights where they are too large for one."""
    paths = sorted(file.parent.glob(f"{file.name}*"))
    return _hash_files(tuple((path, (known := path.stat()).st_size, known.st_mtime_ns) for path in paths))


@lru_cache(maxsize=16)  # asked for with every recall of a workspace that keeps another model than the settings'
def _hash_files(known: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in known:
        with path.open("rb") as opened:
            while block := opened.read(_BLOCK_BYTES):
                digest.update(block)
    return digest.hexdigest()[:12]


RERANKER_SETTING, CLASSIFIER_SETTING = "ENGRAM_RERANKER", "ENGRAM_VERDICT_MODEL"
BATCH_PAIRS = 8
_LOGITS_OUTPUT = "logits"
_CLASSES = {"entail": "entailment", "contradict": "contradiction", "neutral": "neutral"}
TextPair = tuple[str, str]


class PairsTimedOut(Exception):
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
        """Return a score from 0 to 1 for each text; raise PairsTimedOut where that takes longer."""
        logits = self._pairs.logits([(query, text) for text in texts], seconds=seconds)
        return np.asarray(expit(logits[:, 0]), dtype=np.float64)


class PairClassifier:
    """Says whether a text follows from another, contradicts it, or neither (natural language inference)."""

    def __init__(self, *, named: str) -> None:
        files = read_classifier(named=named)
        self._places = _class_places(files)
        self._pairs = _PairModel(files=files, classes=len(_CLASSES), setting=CLASSIFIER_SETTING)

    def classify(self, pairs: Sequence[TextPair], *, seconds: float) -> list[PairClasses]:
        """Judge pairs of a premise and what may follow from it; raise PairsTimedOut where that takes longer."""
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
    labels = _class_labels(files)
    if len(labels) > 1:
        told = f"names {len(labels)} classes ({', '.join(labels.values())})"
        raise ModelUnavailable(f"{files.folder / 'config.json'} {told}: a re-ranker has one score.")
    return files


def read_classifier(*, named: str) -> ModelFiles:
    """Find a pair classifier without loading it; raise ModelUnavailable for what is missing, or has other classes."""
    files = find_files(named=named, setting=CLASSIFIER_SETTING)
    _class_places(files)
    return files


def reranker_name(*, named: str) -> str:
    """Name a re-ranker by all that its scores depend on; raise ModelUnavailable."""
    files = read_reranker(named=named)
    return files.name(use=f"reranker {files.longest_tokens}")


def classifier_name(*, named: str) -> str:
    """Name a pair classifier by all that its verdicts depend on; raise ModelUnavailable."""
    files = read_classifier(named=named)
    return files.name(use=f"classifier {files.longest_tokens} {_class_places(files)}")


def _class_places(files: ModelFiles) -> dict[str, int]:
    """Return the place of each class among the model's numbers."""
    labels = _class_labels(files)
    places = {
        known: place for place, label in labels.items() for start, known in _CLASSES.items() if label.startswith(start)
    }
    if len(labels) != len(_CLASSES) or len(places) != len(_CLASSES) or set(labels) != set(range(len(_CLASSES))):
        named = ", ".join(labels.values()) or "none"
        wanted = ", ".join(_CLASSES.values())
        raise ModelUnavailable(f"{files.folder / 'config.json'} names the classes {named}; {wanted} are needed.")
    return places


def _class_labels(files: ModelFiles) -> dict[int, str]:
    """Return the names of a model's classes in small letters, from whichever way round the folder tells them."""
    config = files.read("config.json")
    by_place = config.get("id2label") or {place: label for label, place in (config.get("label2id") or {}).items()}
    return {int(place): str(label).lower() for place, label in by_place.items()}


class _PairModel:
    """Reads pairs in batches of about one length."""

    def __init__(self, *, files: ModelFiles, classes: int, setting: str) -> None:
        self._model = OnnxModel(files=files, output=_LOGITS_OUTPUT)
        self._model.tokenizer.enable_truncation(files.longest_tokens, strategy="longest_first")
        found = self.logits([("x", "x")], seconds=float("inf")).shape[1]
        if found != classes:
            raise ModelUnavailable(f"{setting}={files.weights} gives {found} numbers for a pair instead of {classes}.")

    def logits(self, pairs: Sequence[TextPair], *, seconds: float) -> NDArray[np.float64]:
        """Return what the model says of each pair, shape (n, classes)."""
        encoded = self._model.tokenizer.encode_batch(list(pairs))
        by_length = sorted(range(len(pairs)), key=lambda place: len(encoded[place].ids), reverse=True)
        found: list[NDArray[np.float32]] = [np.empty(0, dtype=np.float32)] * len(pairs)
        for places in _batches_within(seconds, by_length, BATCH_PAIRS if self._model.pads else 1):
            batch = [encoded[place] for place in places]
            rows = self._model.run(ids=[one.ids for one in batch], types=[one.type_ids for one in batch])
            for place, row in zip(places, rows.reshape(len(batch), -1), strict=True):
                found[place] = row
        return np.array(found, dtype=np.float64)


def _batches_within(seconds: float, places: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """Yield batches until the time is over; raise PairsTimedOut then, even after the last: nobody waits for it."""
    began = time.monotonic()
    for start in range(0, len(places), size):
        if time.monotonic() - began > seconds:
            raise PairsTimedOut
        yield places[start : start + size]
    if time.monotonic() - began > seconds:
        raise PairsTimedOut
