"""Sentence models on this machine: any ONNX folder, and what fastembed knows by name (B8a)."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings

from memory import checks
from memory.llm import embeddings
from memory.llm.embeddings import Embedder, WrongDimensions, embedder, local_embedder, preload
from memory.llm.local_embeddings import ModelUnavailable
from memory.llm.onnx_folder import OnnxFolder
from memory.llm.prefixes import Prefixes, prefixes_of
from tests.llm.tiny_onnx import LENGTH, SPECIAL, WORDS, make_folder, table

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def unloaded() -> None:
    local_embedder.cache_clear()


def model_in(folder: Path) -> Embedder:
    """Load a folder's model as the settings would."""
    return local_embedder(str(folder))


def test_a_vector_is_the_mean_of_its_tokens_padded_to_768(tmp_path: Path) -> None:
    known = dict(zip((*SPECIAL, *WORDS), table(), strict=True))
    mean = np.mean([known[token] for token in ("[CLS]", "mara", "prefers", "tea", "[SEP]")], axis=0)
    [vector] = model_in(make_folder(tmp_path)).embed(["mara prefers tea"])
    assert np.allclose(vector[:16], mean / np.linalg.norm(mean), atol=1e-6)
    assert not vector[16:].any()


def test_a_folder_that_says_so_is_read_by_its_first_token(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    first = table()[SPECIAL.index("[CLS]")]
    [vector] = model_in(folder).embed(["tea"])
    assert np.allclose(vector[:16], first / np.linalg.norm(first), atol=1e-6)


def test_inputs_that_a_model_wants_are_given_and_others_are_not(tmp_path: Path) -> None:
    plain = model_in(make_folder(tmp_path / "plain"))
    bert = model_in(make_folder(tmp_path / "bert", inputs=("input_ids", "attention_mask", "token_type_ids")))
    assert np.array_equal(plain.embed(["tea"]), bert.embed(["tea"]))


def test_a_model_that_wants_what_no_text_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="it asks for pixel_values"):
        model_in(make_folder(tmp_path, inputs=("input_ids", "pixel_values")))


def test_a_text_over_the_models_length_is_the_mean_of_its_pieces(tmp_path: Path) -> None:
    """Text over the model's length is chunked and averaged, and flagged."""
    model = model_in(make_folder(tmp_path))
    room = LENGTH - len(["[CLS]", "[SEP]"])
    assert [model.is_overlong("tea " * count) for count in (room, room + 1)] == [False, True]
    [vector] = model.embed(["tea " * 1_000])
    assert vector @ model.embed(["tea " * room])[0] > 0.999


def test_what_a_folder_asks_to_be_put_in_front_is_put_there(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: ", "document": "text: "}}
    model = model_in(make_folder(tmp_path / "asking", config_sentence_transformers=prompts))
    plain = model_in(make_folder(tmp_path / "plain"))
    assert np.array_equal(model.embed(["tea"], is_query=True), plain.embed(["query: tea"]))
    assert np.array_equal(model.embed(["tea"]), plain.embed(["text: tea"]))
    assert np.array_equal(plain.embed(["tea"], is_query=True), plain.embed(["tea"]))


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("nomic_bert", "search_query: ", "search_document: "),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("mixedbread-ai/mxbai-embed-large-v1", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-base-en", "Represent this sentence for searching relevant passages: ", ""),
        ("BAAI/bge-base-en-v1.5", "", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
    ],
)
def test_a_family_has_the_prefixes_of_its_card_and_others_have_none(name: str, query: str, document: str) -> None:
    assert prefixes_of(names=(name,)) == Prefixes(query=query, document=document)


def test_a_name_stands_for_all_that_a_vector_depends_on(tmp_path: Path) -> None:
    """Vectors of different models are never compared."""
    folder = tmp_path / "tiny"
    kinds: list[dict[str, Any]] = [
        {},
        {"seed": 8},
        {"sentence_bert_config": {"max_seq_length": 16}},
        {"config_sentence_transformers": {"prompts": {"query": "q: "}}},
    ]
    names = [OnnxFolder(folder=make_folder(folder / str(place) / "m", **kind)).name for place, kind in enumerate(kinds)]
    assert len(set(names)) == len(kinds)
    assert OnnxFolder(folder=make_folder(folder / "again" / "m")).name == names[0]
    assert names[0].startswith("m@")


def test_a_model_of_more_than_768_dimensions_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WrongDimensions, match=r"wide@[\w-]+ returned 1024"):
        model_in(make_folder(tmp_path / "wide", dimensions=1024))


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_name(tmp_path: Path, missing: str) -> None:
    (make_folder(tmp_path) / missing).unlink()
    with pytest.raises(ModelUnavailable, match=f"{tmp_path} lacks {missing}"):
        model_in(tmp_path)


@pytest.mark.parametrize(("package", "model"), [("onnxruntime", "/a/folder"), ("fastembed", "tests/tiny-embed")])
def test_without_the_extra_it_is_named(
    package: str, model: str, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelUnavailable, match=r"pip install -r requirements-local\.txt"):
        local_embedder(str(tmp_path) if model.startswith("/") else model)


def test_checks_name_a_missing_extra_and_a_missing_folder(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(tmp_path)
    assert checks.check_models() == []
    settings.ENGRAM_EMBEDDING_MODEL = str(tmp_path / "nowhere")
    assert [message.id for message in checks.check_models()] == ["engram.E009"]
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert [message.id for message in checks.check_models()] == ["engram.E008"]


def test_a_worker_loads_it_before_it_forks(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8a: a model that nobody has calibrated says so when a worker starts."""
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(make_folder(tmp_path / "tiny"))
    told: list[str] = []
    monkeypatch.setattr(embeddings.log, "warning", lambda event, **facts: told.append(f"{event} {facts['model']}"))
    preload()
    assert local_embedder.cache_info().currsize == 1
    assert told == [f"embeddings_uncalibrated {embedder().name}"]


def test_a_child_of_a_process_that_loaded_it_embeds_at_once(tmp_path: Path) -> None:
    """The session has no thread of its own that a fork would leave behind."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from memory.llm.local_embeddings import LocalEmbedder\n"
        "from memory.llm.onnx_folder import OnnxFolder\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "import numpy, onnxruntime, tokenizers; before = threads()\n"
        f"model = LocalEmbedder(runtime=OnnxFolder(folder=Path({str(make_folder(tmp_path))!r})))\n"
        "mine = model.embed(['mara prefers tea'])\n"
        "assert threads() == before, (before, threads())\n"
        "if child := os.fork():\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "os._exit(0 if (model.embed(['mara prefers tea']) == mine).all() else 3)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
