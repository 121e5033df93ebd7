"""A real ONNX model in a folder, small enough to be made by a test: it looks up a random vector for each token.

The format is protobuf (https://onnx.ai/onnx/repo-docs/IR.html); the few messages that it takes are written by hand.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

FLOAT, INT64 = 1, 7
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = (
    *("mara", "prefers", "tea", "the", "deploy", "failed", "on", "friday", "query", "text", ":", ".", ","),
    *("die", "besprechung", "ist", "kurz", "x", "a", "b", "c"),
)
LENGTH = 32  # tokens that it reads, [CLS] and [SEP] among them


def make_folder(
    folder: Path, *, dimensions: int = 16, seed: int = 7, inputs: Iterable[str] = ("input_ids",), **files: Any
) -> Path:
    """Make a folder with a model and a tokenizer; `files` are further ones by stem, for JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(_model(table(dimensions=dimensions, seed=seed), tuple(inputs)))
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


def tokenizer() -> Any:
    """Return a tokenizer that knows a few words and puts [CLS] and [SEP] around every text."""
    vocabulary = {token: place for place, token in enumerate((*SPECIAL, *WORDS))}
    made = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = BertPreTokenizer()
    around = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    return made


def _model(rows: NDArray[np.float32], inputs: tuple[str, ...]) -> bytes:
    """Write a model that gathers the rows of a table by `input_ids`, and takes no notice of its other inputs."""
    gather = _text(1, "table") + _text(1, "input_ids") + _text(2, "last_hidden_state") + _text(4, "Gather")
    kept = b"".join(_number(1, size) for size in rows.shape) + _number(2, FLOAT) + _text(8, "table")
    graph = _message(1, gather) + _text(2, "tiny") + _message(5, kept + _bytes(9, rows.tobytes()))
    graph += b"".join(_message(11, _value(name, INT64, ["batch", "tokens"])) for name in inputs)
    graph += _message(12, _value("last_hidden_state", FLOAT, ["batch", "tokens", "dimensions"]))
    return _number(1, 8) + _message(7, graph) + _message(8, _number(2, 13))


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
