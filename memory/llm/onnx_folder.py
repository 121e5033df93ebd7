"""A sentence model in a folder: model.onnx, tokenizer.json, and the files that say how to use them, if it has any."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.llm.local_embeddings import LONGEST_TOKENS, NEEDS_THE_EXTRA, ModelUnavailable
from memory.llm.prefixes import prefixes_of

MODEL_FILES = ("model.onnx", "onnx/model.onnx")
_WHOLE = "sentence_embedding"  # what models that pool by themselves call their output
_BLOCK = 1 << 20  # bytes
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxFolder:
    """Runs a folder's model on one thread: without threads of its own a session survives a fork and is shared by it."""

    def __init__(self, *, folder: Path) -> None:
        self._folder, self._file = folder, _find_model(folder)
        config = self._read("config.json")
        names = (folder.name, str(config.get("_name_or_path", "")), str(config.get("model_type", "")))
        self.prefixes = prefixes_of(names=names, prompts=self._read("config_sentence_transformers.json").get("prompts"))
        self.is_multilingual = any("multilingual" in name for name in names)
        self.longest_tokens = self._find_length(config)
        self._takes_first = bool(self._read("1_Pooling/config.json").get("pooling_mode_cls_token"))
        self.name = f"{folder.name}@{self._hash_weights()}-{self._hash_use()}"
        self._load()

    def run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return raw vectors of shape (n, dimensions of the model)."""
        return np.vstack([self._run_one(text) for text in texts])

    def _run_one(self, text: str) -> NDArray[np.float32]:
        """Average the vectors of all tokens, or take the first one's, as the folder says."""
        ids = self.tokenizer.encode(text).ids[: self.longest_tokens]
        given = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "token_type_ids": [[0] * len(ids)]}
        feed = {name: np.array(given[name], dtype=np.int64) for name in self._inputs}
        found: NDArray[np.float32] = self._session.run([self._output], feed)[0][0]
        if found.ndim > 1:
            found = found[0] if self._takes_first else np.asarray(found.mean(axis=0))
        return found

    def _load(self) -> None:
        onnxruntime, tokenizers = _import_runtime()
        self.tokenizer = tokenizers.Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(self._file), options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        if not self._inputs <= _INPUTS:
            unknown = ", ".join(sorted(self._inputs - _INPUTS))
            raise ModelUnavailable(f"{self._file} is no sentence model that Engram can run: it asks for {unknown}.")
        outputs = [node.name for node in self._session.get_outputs()]
        self._output = _WHOLE if _WHOLE in outputs else outputs[0]

    def _find_length(self, config: dict[str, Any]) -> int:
        """Take the least of the lengths that the folder's files name, and of ours."""
        named = (
            self._read("sentence_bert_config.json").get("max_seq_length"),
            self._read("tokenizer_config.json").get("model_max_length"),
            config.get("max_position_embeddings"),
        )
        return min(LONGEST_TOKENS, *(value for value in named if isinstance(value, int) and value > 0))

    def _hash_weights(self) -> str:
        """Hash the model's file, and those beside it that hold its weights where they are too large for one."""
        digest = hashlib.sha256()
        for path in sorted(self._file.parent.glob(f"{self._file.name}*")):
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        return digest.hexdigest()[:12]

    def _hash_use(self) -> str:
        """Hash what else vectors depend on, so that no two folders' vectors ever pass for each other's."""
        use = f"{self._takes_first} {self.longest_tokens} {self.prefixes}"
        return hashlib.sha256(use.encode() + (self._folder / "tokenizer.json").read_bytes()).hexdigest()[:6]

    def _read(self, name: str) -> dict[str, Any]:
        path = self._folder / name
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found if isinstance(found, dict) else {}


def _find_model(folder: Path) -> Path:
    """Find the model in a folder; raise ModelUnavailable that names what is missing."""
    found = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    if not folder.is_dir():
        raise ModelUnavailable(f"ENGRAM_EMBEDDING_MODEL={folder} is no folder.")
    if found is None or not (folder / "tokenizer.json").is_file():
        missing = "tokenizer.json" if found else " or ".join(MODEL_FILES)
        raise ModelUnavailable(f"ENGRAM_EMBEDDING_MODEL={folder} lacks {missing}.")
    return found


def _import_runtime() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise ModelUnavailable(f"{NEEDS_THE_EXTRA} ({error})") from error
    return onnxruntime, tokenizers
