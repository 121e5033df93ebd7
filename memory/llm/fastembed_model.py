"""A sentence model that fastembed knows by name: its files are fetched once and kept in the data folder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.llm.local_embeddings import LONGEST_TOKENS, NEEDS_THE_EXTRA, ModelUnavailable
from memory.llm.prefixes import prefixes_of

_KIND = "fastembed"  # stands before the name: a server may serve the same model without its prefixes


class FastembedModel:
    """Runs one of fastembed's models that has been fetched, on one thread as a folder's is."""

    def __init__(self, *, model: str, cache: Path) -> None:
        try:
            self._embedding = _open(model, cache, local_files_only=True)
        except ModelUnavailable:
            raise
        except Exception as error:
            hint = "`manage.py calibrate_embeddings` or the start of a worker fetches it."
            raise ModelUnavailable(f"{model} is not in {cache} yet: {hint}") from error
        self.name = f"{_KIND}:{model}"
        self.prefixes = prefixes_of(names=(model,))
        self.is_multilingual = "multilingual" in model
        own = self._embedding.model.tokenizer
        self.longest_tokens = min(LONGEST_TOKENS, (own.truncation or {}).get("max_length", LONGEST_TOKENS))
        self.tokenizer = type(own).from_str(own.to_str())
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def run(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return raw vectors of shape (n, dimensions of the model)."""
        return np.array(list(self._embedding.embed(list(texts), batch_size=1)), dtype=np.float32)


def fetch_model(*, model: str, cache: Path) -> None:
    """Download a model's files unless they are there; raise ModelUnavailable that says what stood in the way."""
    with _told() as reasons:
        try:
            _open(model, cache, lazy_load=True)
        except ModelUnavailable:
            raise
        except Exception as error:  # whatever the hub, the network or the disk had to say
            reason = reasons[0].removesuffix(" Falling back to other sources.") if reasons else error
            raise ModelUnavailable(f"{model} could not be downloaded into {cache}: {reason}") from error


def _open(model: str, cache: Path, **options: Any) -> Any:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise ModelUnavailable(f"{NEEDS_THE_EXTRA} ({error})") from error
    if model.lower() not in {known["model"].lower() for known in TextEmbedding.list_supported_models()}:
        raise ModelUnavailable(f"ENGRAM_EMBEDDING_MODEL={model} is neither a folder nor a model that fastembed knows.")
    return TextEmbedding(model, cache_dir=str(cache), threads=1, cuda=False, **options)


@contextmanager
def _told() -> Iterator[list[str]]:
    """Collect what fastembed logs of a failure: its exception leaves the reason out."""
    from loguru import logger

    reasons: list[str] = []
    sink = logger.add(lambda message: reasons.append(message.record["message"]), level="ERROR")
    try:
        yield reasons
    finally:
        logger.remove(sink)
