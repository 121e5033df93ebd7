"""Real ONNX models that read two texts, small enough to be made by a test: they count words that both have.

A re-ranker's number grows with each word of the query that a text has. A classifier takes most of the words in common
for the same, and a "not" in only one of them for a contradiction.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.llm.tiny_onnx import FLOAT, SPECIAL, model, node, tokenizer

NOT = "not"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
LABELS = {"0": "contradiction", "1": "entailment", "2": "neutral"}


def make_reranker(folder: Path, *, words: Iterable[str], **files: Any) -> Path:
    """Make a folder with a cross-encoder: its logit is twice the number of shared words, less three."""
    numbers = np.array([[2.0], [0.0]], dtype=np.float32), np.array([-3.0], dtype=np.float32)
    return _make(folder, words, numbers, {"id2label": {"0": "LABEL_0"}} | files)


def make_classifier(folder: Path, *, words: Iterable[str], labels: Any = None, **files: Any) -> Path:
    """Make a folder with a classifier of pairs; three words in common are the same, but for a "not"."""
    of_class = {"entailment": ([2.0, -20.0], -5.0), "contradiction": ([2.0, 6.0], -10.0), "neutral": ([0.0, 0.0], 0.0)}
    named = [str(label).lower() for label in (labels or LABELS).values()]
    weights = np.array([of_class[label][0] for label in named], dtype=np.float32).T
    biases = np.array([of_class[label][1] for label in named], dtype=np.float32)
    return _make(folder, words, (np.ascontiguousarray(weights), biases), {"id2label": labels or LABELS} | files)


def _make(
    folder: Path, words: Iterable[str], numbers: tuple[NDArray[np.float32], NDArray[np.float32]], config: Any
) -> Path:
    known = tuple(dict.fromkeys((NOT, *words)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_pair_model(len(known), *numbers))
    tokenizer(known).save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 64}))
    return folder


def _pair_model(words: int, weights: NDArray[np.float32], biases: NDArray[np.float32]) -> bytes:
    """Write logits = (shared words, whether one alone is denied) · weights + biases."""
    rows = np.vstack([np.zeros((len(SPECIAL), words)), np.eye(words)]).astype(np.float32)
    denial = np.zeros((words, 1), dtype=np.float32)
    denial[0] = 1.0  # "not" is the first word
    tensors = {
        "rows": rows,
        "counted": 1.0 - denial.T,
        "denial": denial,
        "weights": weights,
        "biases": biases,
        "texts": np.array([1], dtype=np.int64),
        "last": np.array([2], dtype=np.int64),
    }
    return model(nodes=list(_steps()), tensors=tensors, inputs=INPUTS, output="logits")


def _steps() -> Iterator[bytes]:
    yield node("Gather", ["rows", "input_ids"], "words")
    yield node("Cast", ["token_type_ids"], "type", to=FLOAT)
    yield node("Cast", ["attention_mask"], "mask", to=FLOAT)
    yield node("Mul", ["type", "mask"], "second")
    yield node("Sub", ["mask", "second"], "first")
    for text in ("first", "second"):
        yield node("Unsqueeze", [text, "last"], f"{text}_wide")
        yield node("Mul", ["words", f"{text}_wide"], f"{text}_words")
        yield node("ReduceSum", [f"{text}_words", "texts"], f"{text}_sum", keepdims=0)
        yield node("MatMul", [f"{text}_sum", "denial"], f"{text}_denied")
    yield node("Mul", ["first_sum", "second_sum"], "both")
    yield node("Mul", ["both", "counted"], "both_counted")
    yield node("ReduceSum", ["both_counted", "texts"], "shared", keepdims=1)
    yield node("Sub", ["first_denied", "second_denied"], "difference")
    yield node("Abs", ["difference"], "denied_once")
    yield node("Concat", ["shared", "denied_once"], "found", axis=1)
    yield node("MatMul", ["found", "weights"], "weighed")
    yield node("Add", ["weighed", "biases"], "logits")
