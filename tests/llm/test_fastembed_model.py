"""Sentence models that fastembed knows by name: fetched once, run as a folder's model is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings

from memory.llm.embeddings import fetch, local_embedder
from memory.llm.local_embeddings import ModelUnavailable
from tests.llm.tiny_onnx import make_folder

fastembed = pytest.importorskip("fastembed", reason="an extra; requirements-dev.txt has it")
from fastembed.common import model_management  # noqa: E402
from fastembed.common.model_description import ModelSource, PoolingType  # noqa: E402

NAMED = "tests/tiny-embed"


@pytest.fixture(autouse=True)
def unloaded() -> None:
    local_embedder.cache_clear()


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let fastembed know the tiny model by name, with its files where a download would have put them."""
    folder = make_folder(tmp_path / "tiny")
    monkeypatch.setattr(model_management, "snapshot_download", lambda **_: str(folder))
    if NAMED not in {known["model"] for known in fastembed.TextEmbedding.list_supported_models()}:
        fastembed.TextEmbedding.add_custom_model(
            model=NAMED, pooling=PoolingType.MEAN, normalization=False, sources=ModelSource(hf=NAMED), dim=16,
            model_file="model.onnx",
        )  # fmt: skip
    return folder


def test_a_named_model_gives_the_vectors_of_its_folder(fetched: Path) -> None:
    """B8a: by name or by folder, one model is one model."""
    texts = ["mara prefers tea", "x", "the deploy failed on friday , " * 20]
    named = local_embedder(NAMED)
    assert named.name == f"fastembed:{NAMED}"
    assert np.allclose(named.embed(texts), local_embedder(str(fetched)).embed(texts), atol=1e-6)
    assert named.is_overlong(texts[2])


def test_a_name_that_fastembed_does_not_know_is_refused() -> None:
    with pytest.raises(ModelUnavailable, match="never/heard-of is neither a folder nor a model"):
        local_embedder("never/heard-of")


def test_a_failed_download_says_why(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start without network names the model, the place and the reason."""
    settings.ENGRAM_EMBEDDINGS, settings.DATA_DIR = "local", tmp_path
    settings.ENGRAM_EMBEDDING_MODEL = "nomic-ai/nomic-embed-text-v1.5"

    def refuse(*_: Any, **__: Any) -> str:
        raise OSError("no route to the hub")

    monkeypatch.setattr(model_management, "model_info", refuse)
    monkeypatch.setattr("fastembed.common.model_management.time.sleep", lambda _: None)
    with pytest.raises(ModelUnavailable, match=r"nomic-embed-text-v1\.5 could not be downloaded .*no route to the hub"):
        fetch()


def test_what_was_not_fetched_is_never_downloaded_on_the_way(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def look(**options: Any) -> str:
        asked.append(options["local_files_only"])
        raise OSError("not here")

    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(model_management, "snapshot_download", look)
    with pytest.raises(ModelUnavailable, match="calibrate_embeddings` or the start of a worker fetches it"):
        local_embedder("nomic-ai/nomic-embed-text-v1.5")
    assert set(asked) == {True}
