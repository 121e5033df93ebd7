"""Sentence models on this machine, each in a folder of ONNX files (B8a)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_django import Settings

from memory import checks
from memory.llm import registry
from memory.llm.local import LocalEmbedder, Prefixes, prefixes_of
from memory.llm.onnx_models import MAX_TOKENS, ModelUnavailable
from memory.llm.registry import default_embedder, local_embedder, preload_models
from memory.llm.types import Embedder, WrongDimensions
from tests.llm.tiny_onnx import LENGTH, SPECIAL, WHOLE, WORDS, make_folder, table

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


def test_a_folder_that_names_no_length_is_read_up_to_ours(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "tokenizer_config.json").unlink()
    model = model_in(folder)
    room = MAX_TOKENS - len(["[CLS]", "[SEP]"])
    assert [model.is_overlong("tea " * count) for count in (room, room + 1)] == [False, True]


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
    names = [model_in(make_folder(folder / str(place) / "m", **kind)).name for place, kind in enumerate(kinds)]
    assert len(set(names)) == len(kinds)
    assert model_in(make_folder(folder / "again" / "m")).name == names[0]
    assert names[0].startswith("m@")


def test_a_model_of_more_than_768_dimensions_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WrongDimensions, match=r"wide@[\w-]+ returned 1024"):
        model_in(make_folder(tmp_path / "wide", dimensions=1024))


def test_a_text_is_read_by_its_last_token_or_its_greatest_numbers_where_the_folder_says_so(tmp_path: Path) -> None:
    known = dict(zip((*SPECIAL, *WORDS), table(), strict=True))
    read = [known[token] for token in ("[CLS]", "mara", "tea", "[SEP]")]
    for mode, expected in {"lasttoken": read[-1], "max_tokens": np.max(read, axis=0)}.items():
        folder = make_folder(tmp_path / mode)
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(f'{{"pooling_mode_{mode}": true}}')
        [vector] = model_in(folder).embed(["mara tea"])
        assert np.allclose(vector[:16], expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("1_Pooling/config.json", '{"pooling_mode_mean_sqrt_len_tokens": true}', "asks for pooling by mean_sqrt_len"),
        ("1_Pooling/config.json", '{"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}', "cls\\+max"),
        ("modules.json", '[{"type": "sentence_transformers.models.Dense"}]', "asks for Dense"),
    ],
)
def test_a_folder_that_asks_for_what_is_not_done_is_refused_by_its_file(
    tmp_path: Path, name: str, content: str, told: str
) -> None:
    """Vectors would be made, and be wrong."""
    folder = make_folder(tmp_path)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    with pytest.raises(ModelUnavailable, match=f"{folder / name} .*{told}"):
        model_in(folder)


def test_a_model_that_makes_one_vector_by_itself_is_asked_for_it(tmp_path: Path) -> None:
    """Whatever its folder says of further steps: they are done."""
    steps = [{"type": "sentence_transformers.models.Dense"}]
    whole = model_in(make_folder(tmp_path / "whole", output=WHOLE, modules=steps))
    assert np.allclose(whole.embed(["tea"]), model_in(make_folder(tmp_path / "plain")).embed(["tea"]), atol=1e-6)


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_name(tmp_path: Path, missing: str) -> None:
    (make_folder(tmp_path) / missing).unlink()
    with pytest.raises(ModelUnavailable, match=f"ENGRAM_EMBEDDING_MODEL={tmp_path} lacks {missing}"):
        model_in(tmp_path)


def test_full_precision_is_run_unless_another_file_is_named(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny")
    (folder / "onnx").mkdir()
    small = folder / "onnx" / "model_quantized.onnx"
    small.write_bytes((make_folder(tmp_path / "other", seed=8) / "model.onnx").read_bytes())
    other = model_in(tmp_path / "other").embed(["tea"])
    assert np.array_equal(model_in(small).embed(["tea"]), other)
    assert not np.array_equal(model_in(folder).embed(["tea"]), other)
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelUnavailable, match=r"lacks model\.onnx .*; it has onnx/model_quantized\.onnx, which can"):
        LocalEmbedder(named=str(folder))


def _git_pointer(folder: Path) -> str:
    (folder / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90405214\n")
    return "model.onnx is not the file itself, but git's pointer"


def _no_weights(folder: Path) -> str:
    name = b"model.onnx_data"
    entry = b"\n\x08location\x12" + bytes([len(name)]) + name
    (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes() + entry)
    return "model.onnx_data is missing"


def _no_json(folder: Path) -> str:
    (folder / "config.json").write_text("{")
    return "config.json cannot be read"


def _empty_tokenizer(folder: Path) -> str:
    (folder / "tokenizer.json").write_text("")
    return "tokenizer.json is empty"


def _nowhere(folder: Path) -> str:
    folder.rename(folder.with_name("moved"))
    return "is no folder"


@pytest.mark.parametrize("spoil", [_git_pointer, _no_weights, _no_json, _empty_tokenizer, _nowhere])
def test_checks_name_the_file_that_is_wrong_before_anything_runs(
    settings: Settings, tmp_path: Path, spoil: Callable[[Path], str]
) -> None:
    folder = make_folder(tmp_path / "tiny")
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(folder)
    assert checks.check_models() == []
    told = spoil(folder)
    [message] = checks.check_models()
    assert message.id == "engram.E009"
    assert str(folder) in message.msg
    assert told in message.msg


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_named_when_it_is_loaded(tmp_path: Path, name: str) -> None:
    (make_folder(tmp_path) / name).write_bytes(b"{} and no more")
    with pytest.raises(ModelUnavailable, match=f"{name} cannot be loaded"):
        model_in(tmp_path)


def test_without_the_extra_it_is_named(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    make_folder(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelUnavailable, match=r"pip install -r requirements-local\.txt"):
        local_embedder(str(tmp_path))
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(tmp_path)
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert [message.id for message in checks.check_models()] == ["engram.E008"]


def test_local_embeddings_need_a_folder(settings: Settings) -> None:
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", ""
    [message] = checks.check_models()
    assert (message.id, message.msg) == ("engram.E009", "ENGRAM_EMBEDDING_MODEL names no folder.")


def test_a_worker_loads_it_before_it_forks(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8a: a model that nobody has calibrated says so when a worker starts."""
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(make_folder(tmp_path / "tiny"))
    told: list[str] = []
    monkeypatch.setattr(registry.log, "warning", lambda event, **facts: told.append(f"{event} {facts['model']}"))
    preload_models()
    assert local_embedder.cache_info().currsize == 1
    assert told == [f"embeddings_uncalibrated {default_embedder().name}"]


def test_a_child_of_a_process_that_loaded_it_embeds_at_once(tmp_path: Path) -> None:
    """The session has no thread of its own that a fork would leave behind."""
    code = (
        "import os, sys\n"
        "from memory.llm.local import LocalEmbedder\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "import numpy, onnxruntime, tokenizers; before = threads()\n"
        f"model = LocalEmbedder(named={str(make_folder(tmp_path))!r})\n"
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
