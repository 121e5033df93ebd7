"""B9: a call ends by its deadline, reads no more of an answer than it may, and goes to no other address."""

import gzip
import json
import time
from dataclasses import replace

import psutil
import pytest
from pytest_django import Settings

from memory.llm.openai_client import LONGEST_WAIT_SECONDS, preload
from memory.llm.openai_models import OpenAIEmbedder, OpenAIModel
from memory.llm.types import DIMENSIONS, CallFailed, FailureKind
from tests.llm.asking import classification
from tests.model_server import ModelServer
from tests.model_server_acts import Act, refuse
from tests.model_server_evils import (
    LOOPBACK,
    MEGABYTE,
    ON_THE_WIRE,
    bomb,
    flood,
    flood_chunks,
    flood_vectors,
    redirect,
    written,
)

SECONDS = 0.5
IN_FLIGHT = 8 * MEGABYTE  # what the kernel may hold between two sockets
SLOW = [name for name in ON_THE_WIRE if "drip" in name or name in ("never answers", "headers only")]
FLOODS = {"one body": flood, "chunks": flood_chunks, "gzip": bomb("gzip"), "twice": bomb("gzip", layers=2)}


@pytest.fixture(autouse=True)
def loaded(server: ModelServer) -> None:
    """Have the library loaded before any call is timed."""
    preload(base_url=server.url, api_key="")


@pytest.fixture
def cap(settings: Settings) -> int:
    """Let a megabyte be read of an answer."""
    settings.POLICY = replace(settings.POLICY, budget=replace(settings.POLICY.budget, reply_bytes=MEGABYTE))
    return MEGABYTE


def embed(server: ModelServer, *texts: str, seconds: float = 30.0) -> CallFailed:
    """Ask for vectors that do not come, and return why."""
    with pytest.raises(CallFailed) as caught:
        OpenAIEmbedder(base_url=server.url, api_key="", model="some-model").embed(texts or ("a",), timeout=seconds)
    return caught.value


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("is_reused", [False, True], ids=["new connection", "kept connection"])
def test_a_call_ends_by_its_deadline_however_slowly_it_is_answered(
    server: ModelServer, name: str, is_reused: bool
) -> None:
    if is_reused:
        OpenAIEmbedder(base_url=server.url, api_key="", model="some-model").embed(["warm"])
    server.then(ON_THE_WIRE[name])
    began = time.monotonic()
    failure = embed(server, seconds=SECONDS)
    assert failure.kind is FailureKind.TIMEOUT
    assert SECONDS <= time.monotonic() - began < SECONDS + 1.0


def test_a_chat_call_ends_by_its_deadline_too(server: ModelServer, model: OpenAIModel) -> None:
    model.complete(request=classification("a"), timeout=30.0)  # loads what counts tokens
    server.then(ON_THE_WIRE["chunks drip"])
    began = time.monotonic()
    with pytest.raises(CallFailed) as caught:
        model.complete(request=classification("a"), timeout=SECONDS)
    assert caught.value.kind is FailureKind.TIMEOUT
    assert time.monotonic() - began < SECONDS + 1.0


@pytest.mark.parametrize("name", FLOODS)
def test_no_more_of_an_answer_is_read_than_the_cap(server: ModelServer, cap: int, name: str) -> None:
    """Counted as it is once decompressed: a bomb's bytes on the wire are few."""
    server.then(written(FLOODS[name]))
    failure = embed(server)
    assert failure.kind is FailureKind.MALFORMED
    assert f"longer than {cap} bytes (ENGRAM_BUDGET_REPLY_BYTES)" in str(failure)
    assert _sent(server) < cap + IN_FLIGHT


def test_forty_megabytes_of_vectors_and_a_bomb_cost_little_memory(server: ModelServer) -> None:
    """At the cap of production."""
    process = psutil.Process()
    before = process.memory_info().rss
    server.then(written(flood_vectors), written(bomb("gzip", layers=2)))
    for _ in range(2):
        assert "longer than 16777216 bytes" in str(embed(server))
    assert process.memory_info().rss - before < 200 * MEGABYTE


@pytest.mark.parametrize("item", [b"[],", b'{"index":0,"embedding":[]},'], ids=["lists", "rows"])
def test_an_answer_of_millions_of_nothings_is_read_quickly(server: ModelServer, item: bytes) -> None:
    """At the cap of production, where each costs more to hold than to send."""
    process = psutil.Process()
    before = process.memory_info().rss
    server.then(Act(body=b'{"data": [' + item * ((16 * MEGABYTE - 100) // len(item)) + b"{}]}"))
    began = time.process_time()
    assert embed(server).kind is FailureKind.MALFORMED
    assert time.process_time() - began < 3.0
    assert process.memory_info().rss - before < 600 * MEGABYTE


def test_an_answer_as_long_as_the_cap_is_read(server: ModelServer, cap: int) -> None:
    vector = json.dumps({"data": [{"index": 0, "embedding": [0.5] * 768}]}).encode()
    server.then(Act(body=vector + b" " * (cap - len(vector))))
    assert OpenAIEmbedder(base_url=server.url, api_key="", model="m").embed(["a"]).shape == (1, DIMENSIONS)


def test_a_compressed_answer_is_read(server: ModelServer) -> None:
    vector = json.dumps({"data": [{"index": 0, "embedding": [0.5] * 768}]}).encode()
    server.then(Act(body=gzip.compress(vector), headers=(("Content-Encoding", "gzip"),)))
    assert OpenAIEmbedder(base_url=server.url, api_key="", model="m").embed(["a"]).shape == (1, DIMENSIONS)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_says_where_it_leads(server: ModelServer, status: int) -> None:
    with ModelServer() as elsewhere:
        server.then(redirect(status, f"{elsewhere.url}/embeddings"))
        failure = embed(server)
        assert elsewhere.connections == 0
        assert failure.kind is FailureKind.CONNECTION
        assert f"redirects to {elsewhere.url}/embeddings" in str(failure)


def test_a_redirect_to_loopback_ends_a_chat_call(server: ModelServer, model: OpenAIModel) -> None:
    server.then(redirect(302))
    with pytest.raises(CallFailed, match=f"redirects to {LOOPBACK}"):
        model.complete(request=classification("a"), timeout=5)
    assert len(server.log) == 1


def test_the_codec_that_a_server_names_unpacks_nothing(server: ModelServer) -> None:
    server.then(ON_THE_WIRE["codec that unpacks"])
    assert embed(server).kind is FailureKind.MALFORMED


@pytest.mark.parametrize("wait", ["1e308", "99999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_server_that_asks_for_a_century_is_asked_again_within_the_hour(server: ModelServer, wait: str) -> None:
    server.then(refuse(429, retry_after=wait))
    assert embed(server).retry_after == LONGEST_WAIT_SECONDS


def _sent(server: ModelServer) -> int:
    """Return what a server could send before its client hung up."""
    deadline = time.monotonic() + 5
    while server.log[-1].left_at is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.log[-1].left_at is not None
    return server.log[-1].sent
