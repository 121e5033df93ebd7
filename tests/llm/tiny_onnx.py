"""A real ONNX model in a folder, small enough to be made by a test: it looks up a random vector for each token.

The format is protobuf (https://onnx.ai/onnx/repo-docs/IR.html); the few messages that it takes are written by hand.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

FLOAT, INT64 = 1, 7
WHOLE = "sentence_embedding"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (
    *("mara", "prefers", "tea", "the", "deploy", "failed", "on", "friday", "query", "text", ":", ".", ","),
    *("die", "besprechung", "ist", "kurz", "x", "a", "b", "c"),
)
LENGTH = 32  # tokens that it reads, [CLS] and [SEP] among them


def make_folder(
    folder: Path,
    *,
    dimensions: int = 16,
    seed: int = 7,
    inputs: Iterable[str] = ("input_ids",),
    output: str = "last_hidden_state",
    **files: Any,
) -> Path:
    """Make a folder with a model and a tokenizer; `files` are further ones by stem, for JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(table(dimensions=dimensions, seed=seed), tuple(inputs), output))
    tokenizer().save(str(folder / "tokenizer.json"))
    described = {"tokenizer_config": {"model_max_length": LENGTH, "pad_token": "[PAD]"}, **files}
    for stem, values in described.items():
        (folder / f"{stem}.json").write_text(json.dumps(values))
    return folder


def table(*, dimensions: int = 16, seed: int = 7) -> NDArray[np.float32]:
    """Return the vector of each token, of shape (tokens, dimensions): short ones for tokens that stand around texts."""
    drawn = np.random.default_rng(seed).normal(size=(len(SPECIAL) + len(WORDS), dimensions))
    drawn[: len(SPECIAL)] /= 10
    return drawn.astype(np.float32)


def tokenizer(words: Iterable[str] = WORDS) -> Any:
    """Return a tokenizer that knows a few words and puts [CLS] and [SEP] around every text, and between two."""
    vocabulary = {token: place for place, token in enumerate((*SPECIAL, *words))}
    made = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = BertPreTokenizer()
    around = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around
    )
    return made


def _model(rows: NDArray[np.float32], inputs: tuple[str, ...], output: str) -> bytes:
    """Write a model that gathers the rows of a table by `input_ids`, and takes no notice of its other inputs.

    One that is to make one vector of a text adds them up.
    """
    nodes = [
        node("Gather", ["table", "input_ids"], "tokens"),
        node("ReduceSum", ["tokens", "text"], output, keepdims=0),
    ]
    if output != WHOLE:
        nodes = [node("Gather", ["table", "input_ids"], output)]
    return model(
        nodes=nodes, tensors={"table": rows, "text": np.array([1], dtype=np.int64)}, inputs=inputs, output=output
    )


def model(*, nodes: Iterable[bytes], tensors: Mapping[str, NDArray[Any]], inputs: Iterable[str], output: str) -> bytes:
    """Write a model of some nodes over inputs of shape (batch, tokens)."""
    graph = b"".join(_message(1, one) for one in nodes) + _text(2, "tiny")
    graph += b"".join(_message(5, _tensor(name, values)) for name, values in tensors.items())
    graph += b"".join(_message(11, _value(name, INT64, ["batch", "tokens"])) for name in inputs)
    graph += _message(12, _text(1, output) + _message(2, _message(1, _number(1, FLOAT))))
    return _number(1, 8) + _message(7, graph) + _message(8, _number(2, 13))


def node(operator: str, inputs: Iterable[str], output: str, **numbers: int) -> bytes:
    """Write one step of a graph; its attributes are whole numbers."""
    attributes = (_text(1, name) + _number(3, value) + _number(20, 2) for name, value in numbers.items())
    named = b"".join(_text(1, name) for name in inputs) + _text(2, output) + _text(4, operator)
    return named + b"".join(_message(5, attribute) for attribute in attributes)


def _tensor(name: str, values: NDArray[Any]) -> bytes:
    kind = INT64 if values.dtype == np.int64 else FLOAT
    sizes = b"".join(_number(1, size) for size in values.shape)
    return sizes + _number(2, kind) + _text(8, name) + _bytes(9, values.tobytes())


def _value(name: str, kind: int, shape: list[str]) -> bytes:
    sizes = b"".join(_message(1, _text(2, size)) for size in shape)
    return _text(1, name) + _message(2, _message(1, _number(1, kind) + _message(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _message(field: int, value: bytes) -> bytes:
    return _bytes(field, value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
