"""Vectors: unit, 768 wide, the same every time, and never of the wrong size."""

import hashlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from memory.domain.similarity import Profile
from memory.llm import profiles
from memory.llm.embeddings import embedder_of
from memory.llm.local import LocalEmbedder
from memory.llm.offline import LONGEST_TOKENS, StaticEmbedder
from memory.llm.offline_embedder import NAME, OfflineEmbedder
from memory.llm.openai_client import BATCH_TEXTS
from memory.llm.openai_models import LONGEST_CHARACTERS, OpenAIEmbedder
from memory.llm.profiles import load_profile, store_profile
from memory.llm.registry import default_embedder, preload_models
from memory.llm.types import DIMENSIONS, CallFailed, Embedder, FailureKind, WrongDimensions
from tests import factories
from tests.llm.tiny_onnx import make_folder
from tests.model_server import ModelServer
from tests.model_server_acts import Act, html, refuse, stall, truncated_json
from tests.model_server_evils import ABSURD_USAGE, IN_VECTORS, OF_ANOTHER_LENGTH

TEXTS = [
    "Mara prefers tea.",
    "The deploy failed on Friday.",
    "x",
    "Die Besprechung ist kurz.",
    "🙂 \x00 C++",
    "a " * 90,
]


def remote(server: ModelServer, name: str = "some-model") -> OpenAIEmbedder:
    """Make the real client of a scripted server."""
    return OpenAIEmbedder(base_url=server.url, api_key="", model=name)


@pytest.fixture(params=["openai", "offline", "static", "local"])
def either(request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path) -> Embedder:
    """Return each implementation in turn."""
    if request.param == "local":
        return LocalEmbedder(named=str(make_folder(tmp_path / "tiny")))
    if request.param == "offline":
        return OfflineEmbedder()
    return remote(server) if request.param == "openai" else StaticEmbedder()


def test_vectors_are_unit_rows_of_768(either: Embedder) -> None:
    vectors = either.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_a_vector_does_not_depend_on_its_batch(either: Embedder) -> None:
    together = either.embed(TEXTS * 60)
    alone = np.vstack([either.embed([text]) for text in TEXTS])
    assert np.array_equal(together, np.vstack([alone] * 60))


def test_words_of_a_static_vector_weigh_as_they_are_told() -> None:
    """B17: whatever their case; what has no weight does not count."""
    model = StaticEmbedder()
    one_word = model.embed_weighted("What did Mara say of Tea?", weights={"tea": 2.5})
    assert one_word is not None
    assert one_word == pytest.approx(model.embed(["Tea"])[0], abs=1e-5)
    both = model.embed_weighted("tea, rum", weights={"tea": 3.0, "rum": 1.0})
    assert both is not None
    tea, rum = model.embed(["tea", "rum"]) @ both
    assert tea > rum


@pytest.mark.parametrize("weights", [{}, {"rum": 1.0}, {"tea": 0.0}])
def test_where_no_word_weighs_anything_there_is_no_such_vector(weights: dict[str, float]) -> None:
    """B17: nor from a model that reads a text as a whole."""
    assert StaticEmbedder().embed_weighted("Mara prefers tea", weights=weights) is None


def test_a_model_that_reads_texts_whole_weighs_no_words(server: ModelServer) -> None:
    """B17."""
    assert remote(server).embed_weighted("Mara prefers tea", weights={"tea": 1.0}) is None


def test_the_offline_model_weighs_words_by_its_static_half() -> None:
    """B17."""
    model = OfflineEmbedder()
    weighted = model.embed_weighted("What did Mara say of Tea?", weights={"tea": 2.5})
    assert weighted is not None
    tea, rum = model.embed(["Otto drinks tea.", "Otto drinks rum."]) @ weighted
    assert tea > rum
    assert model.embed_weighted("Mara prefers tea", weights={}) is None


def test_the_offline_model_finds_what_other_words_and_languages_say() -> None:
    """F6: a static model, which knows words, finds neither."""
    beliefs = [
        "Mara cycles to the office.",
        "Mara's rent is 900 euros.",
        "Maras Chefin heißt Dana.",
        "Mara sings alto.",
    ]
    asked = ["How does she get to work?", "Which voice does she have in the choir?", "Who is her boss?"]
    found = OfflineEmbedder().embed(asked, is_query=True) @ OfflineEmbedder().embed(beliefs).T
    assert list(found.argmax(axis=1)) == [0, 3, 2]


def test_the_profile_of_the_offline_model_ships() -> None:
    """B8a: a reader that is trained anew needs another one (calibrate_embeddings --write)."""
    assert OfflineEmbedder().profile.is_fitted


@pytest.mark.django_db
def test_vectors_of_another_training_are_not_compared() -> None:
    """An older workspace goes on without vectors until it is moved, and says what moves it."""
    model = embedder_of(factories.workspace(embedding_model=f"{NAME}@0123456789ab"))
    with pytest.raises(CallFailed, match="reembed"):
        model.embed(["Mara prefers tea."])


def test_nothing_in_gives_nothing_out(either: Embedder) -> None:
    assert either.embed([]).shape == (0, DIMENSIONS)


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_blank_text_is_refused_by_position(either: Embedder, blank: str) -> None:
    with pytest.raises(ValueError, match="position 1"):
        either.embed(["something", blank])


def test_a_long_text_is_cut_averaged_and_flagged(either: Embedder) -> None:
    """Text over the model's length is chunked and averaged, and flagged."""
    text = "Mara prefers tea. " * 3_000
    vector = either.embed([text])[0]
    assert (either.is_overlong(text), either.is_overlong(TEXTS[0])) == (True, False)
    alike, other = either.embed(["Mara prefers tea.", TEXTS[1]]) @ vector
    if isinstance(either, OfflineEmbedder):  # centred, a thousand repetitions are unlike one: still nearest to it
        assert alike > other + 0.2
    else:
        assert alike > 0.95


def test_each_implementation_says_what_it_is(either: Embedder) -> None:
    assert either.name
    assert either.is_multilingual == (not either.is_local or isinstance(either, OfflineEmbedder))  # servers: not known
    assert either.profile.model == either.name


def test_loading_the_static_model_needs_no_network_and_leaves_the_logs_alone() -> None:
    code = (
        "import logging, socket\n"
        "def refuse(*args, **named): raise OSError('no network here')\n"
        "socket.socket.connect = refuse\n"
        "from memory.llm.offline import StaticEmbedder\n"
        "assert StaticEmbedder().embed(['a']).shape == (1, 768)\n"
        "assert logging.getLogger().handlers == [] and logging.getLogger().level == logging.WARNING\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_static_table_is_the_one_that_stored_vectors_are_of() -> None:
    """Vectors of different models are never compared: another release of the package must bring the same table."""
    package = find_spec("wordllama")
    assert package is not None
    assert package.submodule_search_locations
    table = Path(package.submodule_search_locations[0]) / "weights/l2_supercat_256.safetensors"
    digest = hashlib.sha256(table.read_bytes()).hexdigest()
    assert digest == "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"


def test_fewer_dimensions_are_padded_with_zeros(server: ModelServer) -> None:
    server.dimensions = 384
    vector = remote(server).embed(["a text"])[0]
    assert not vector[384:].any()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_a_model_with_more_dimensions_is_asked_for_768_from_then_on(server: ModelServer) -> None:
    server.dimensions = 1024
    client = remote(server)
    assert client.embed(["a"]).shape == client.embed(["b"]).shape == (1, DIMENSIONS)
    assert len(server.calls("embed")) == 3


def test_a_model_known_to_have_more_is_asked_at_once(server: ModelServer) -> None:
    server.dimensions = 1536
    remote(server, "text-embedding-3-small").embed(["a"])
    assert len(server.calls("embed")) == 1


def test_a_model_that_does_not_shorten_is_refused_by_name(server: ModelServer) -> None:
    """A model that returns the wrong number of dimensions is refused by name."""
    server.dimensions, server.honours_dimensions = 1024, False
    with pytest.raises(WrongDimensions, match=r"some-model returned 1024"):
        remote(server).embed(["a"])


def test_many_texts_go_in_batches_and_come_back_in_order(server: ModelServer) -> None:
    texts = [f"text {n}" for n in range(BATCH_TEXTS + 10)]
    vectors = remote(server).embed(texts)
    assert [len(call.texts) for call in server.calls("embed")] == [BATCH_TEXTS, 10]
    assert np.allclose(vectors[-1], remote(server).embed(texts[-1:])[0], atol=1e-6)


def test_long_texts_make_smaller_batches(server: ModelServer) -> None:
    remote(server).embed(["y" * LONGEST_CHARACTERS] * 50)
    assert [len(call.texts) for call in server.calls("embed")] == [37, 13]


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (refuse(429, retry_after=3), FailureKind.RATE_LIMITED),
        (refuse(500), FailureKind.SERVER),
        (refuse(401), FailureKind.AUTH),
        (html(), FailureKind.MALFORMED),
        (truncated_json(), FailureKind.MALFORMED),
        (Act(body=b'{"object": "list", "data": []}'), FailureKind.MALFORMED),
        (Act(body=b'{"data": [{"index": 0, "embedding": [1.0, 2.0]}]}'), FailureKind.MALFORMED),
        (
            Act(body=b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1]}]}'),
            FailureKind.MALFORMED,
        ),
    ],
    ids=["429", "500", "401", "html", "truncated", "empty", "too few", "not finite"],
)
def test_each_failure_of_an_embedding_server_has_its_kind(server: ModelServer, act: Act, kind: FailureKind) -> None:
    server.then(act)
    with pytest.raises(CallFailed) as caught:
        remote(server).embed(["a", "b"])
    assert caught.value.kind is kind
    assert len(server.log) == 1


@pytest.mark.parametrize("name", [name for name in IN_VECTORS if name not in OF_ANOTHER_LENGTH])
def test_vectors_that_are_none_make_a_malformed_reply(server: ModelServer, name: str) -> None:
    server.then(IN_VECTORS[name])
    with pytest.raises(CallFailed) as caught:
        remote(server).embed(["a", "b", "c"])
    assert caught.value.kind is FailureKind.MALFORMED
    assert len(server.log) == 1


@pytest.mark.parametrize("name", OF_ANOTHER_LENGTH)
def test_vectors_of_another_length_are_refused_by_name(server: ModelServer, name: str) -> None:
    server.then(IN_VECTORS[name], IN_VECTORS[name])
    with pytest.raises(WrongDimensions, match=r"some-model returned (0|1|2|1024) dimensions; 16 to 768 fit"):
        remote(server).embed(["a", "b", "c"])


@pytest.mark.parametrize("name", ABSURD_USAGE)
def test_counts_that_no_call_can_have_make_a_malformed_reply(server: ModelServer, name: str) -> None:
    server.then(ABSURD_USAGE[name])
    with pytest.raises(CallFailed, match=r"usage\.prompt_tokens") as caught:
        remote(server).embed(["a"])
    assert caught.value.kind is FailureKind.MALFORMED


def test_vectors_out_of_order_are_given_to_their_texts(server: ModelServer) -> None:
    expected = remote(server).embed(["a", "b", "c"])
    server.then(Act(twist=lambda told: {**told, "data": told["data"][::-1]}))
    assert np.array_equal(remote(server).embed(["a", "b", "c"]), expected)


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_a_vector_of_any_size_has_length_one(server: ModelServer, size: float) -> None:
    server.then(Act(twist=lambda told: {**told, "data": [{"index": 0, "embedding": [size] * 768}]}))
    assert np.linalg.norm(remote(server).embed(["a"])) == pytest.approx(1.0, abs=1e-5)


def test_a_text_whose_pieces_cancel_each_other_has_no_vector(server: ModelServer) -> None:
    server.embed = lambda texts, dimensions: np.array([[1.0] * 768, [-1.0] * 768], dtype=np.float32)
    with pytest.raises(CallFailed, match="nothing but zeros"):
        remote(server).embed(["y" * 2 * LONGEST_CHARACTERS])


def test_a_stalled_embedding_server_is_given_up_in_time(server: ModelServer) -> None:
    server.then(stall(1.0))
    with pytest.raises(CallFailed) as caught:
        remote(server).embed(["a"], timeout=0.2)
    assert caught.value.kind is FailureKind.TIMEOUT


def test_a_text_of_many_pieces_equals_the_mean_of_its_tokens() -> None:
    model = StaticEmbedder()
    half = "tea " * LONGEST_TOKENS
    assert model.embed([half * 2])[0] @ model.embed([half])[0] == pytest.approx(1.0, abs=1e-5)


def test_an_unknown_model_runs_uncalibrated_and_says_so() -> None:
    """B8a: an unknown model runs uncalibrated and says so."""
    profile = load_profile(model="never/heard:of")
    assert not profile.is_fitted
    assert profile.reference(0.5) == 0.5


def test_a_stored_profile_is_the_one_that_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8a: each model has a profile."""
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    profile = Profile(model="org/m:1", anchors=((-1.0, -1.0), (0.4, 0.7), (1.0, 1.0)), is_fitted=True)
    path = store_profile(profile=profile)
    assert path.name == "org-m-1.json"
    assert load_profile(model="org/m:1") == profile


def test_a_folders_profile_is_found_by_its_weights_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8a: profiles ship for models that were run."""
    monkeypatch.setattr(profiles, "FOLDER", tmp_path)
    anchors = ((-1.0, -1.0), (0.4, 0.7), (1.0, 1.0))
    store_profile(profile=Profile(model="small@0123456789ab-aaaaaa", anchors=anchors, is_fitted=True))
    assert load_profile(model="models@0123456789ab-bbbbbb").anchors == anchors
    assert load_profile(model="models@0123456789ab-bbbbbb").model == "models@0123456789ab-bbbbbb"
    assert not load_profile(model="small@ffffffffffff-aaaaaa").is_fitted


def test_preloading_opens_no_connection(server: ModelServer, settings: Settings) -> None:
    """A connection opened before a worker forks would be shared by its children."""
    settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "openai"
    settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = server.url
    preload_models()
    assert server.connections == 0
    assert default_embedder().embed(["a"]).shape == (1, DIMENSIONS)
    assert server.connections == 1


def test_an_unknown_kind_of_embeddings_is_named(settings: Settings) -> None:
    settings.ENGRAM_EMBEDDINGS = "psychic"
    with pytest.raises(ImproperlyConfigured, match="ENGRAM_EMBEDDINGS=psychic"):
        default_embedder()
