"""engram_client, when a server is in trouble: what is sent again, when, and what is told in the end."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from engram_client import ApiError, Closed, Engram, Invalid, RateLimited, ServerFailed, Unavailable, Unreachable
from engram_client.client import Options

from tests.integrations.trouble import FOUND, Troubled, client_of, refused


def test_what_may_be_repeated_is_and_retry_after_is_honoured() -> None:
    transport = Troubled(refused(429, Retry_After="1"), httpx.ConnectError("away"), FOUND)
    assert client_of(transport).recall("x") == {"results": [], "degraded": []}
    first, second, third = transport.asked_at
    assert 1.0 <= second - first < 10.0
    assert third - second < 10.0


def test_retry_after_may_be_a_moment() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=4), usegmt=True)
    transport = Troubled(refused(503, Retry_After=soon), FOUND)
    client_of(transport).recall("x")
    assert 0.5 < transport.asked_at[1] - transport.asked_at[0] < 10.0


@pytest.mark.parametrize(
    "make",
    [
        lambda client: client.store_episode(text="x"),
        lambda client: client.store_episodes([{"text": "x", "idempotency_key": "1"}, {"text": "y"}]),
        lambda client: client.accept_turns([{"session": "s", "role": "user", "content": "x"}]),
        lambda client: client.give_feedback("ep_1", value="useful"),
        lambda client: client.forget_memory("ep_1"),
        lambda client: client.start_consolidation(),
    ],
    ids=["episode", "batch", "turn", "feedback", "forget", "cycle"],
)
def test_what_could_count_twice_is_sent_once(make: Callable[[Engram], object]) -> None:
    transport = Troubled(httpx.ReadTimeout("slow"), FOUND)
    with pytest.raises(Unreachable, match="ReadTimeout"):
        make(client_of(transport))
    assert len(transport.asked_at) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda client: client.store_episode(text="x", idempotency_key="1"),
        lambda client: client.accept_turns([{"session": "s", "role": "user", "content": "x", "turn_id": "1"}]),
        lambda client: client.remember(text="x", idempotency_key="1"),
        lambda client: client.read_status(),
    ],
    ids=["episode", "turn", "remember", "status"],
)
def test_what_counts_once_is_sent_again(make: Callable[[Engram], object]) -> None:
    transport = Troubled(httpx.ReadTimeout("slow"), FOUND)
    make(client_of(transport))
    assert len(transport.asked_at) == 2


def test_a_longer_wait_than_is_wished_for_is_told() -> None:
    transport = Troubled(refused(429, Retry_After="600"), FOUND)
    with pytest.raises(RateLimited) as limited:
        client_of(transport).recall("x")
    assert limited.value.retry_after == 600.0


def test_it_gives_up_in_the_end() -> None:
    transport = Troubled(*[httpx.Response(502, text="<html>bad gateway") for _ in range(3)], FOUND)
    with pytest.raises(ServerFailed, match="bad gateway"):
        client_of(transport, retries=1).recall("x")
    assert len(transport.asked_at) == 2


def test_a_refusal_that_would_be_repeated_is_not_asked_for_again() -> None:
    transport = Troubled(refused(422), FOUND)
    with pytest.raises(Invalid):
        client_of(transport).recall("x")
    assert len(transport.asked_at) == 1


def test_options_are_a_call_s_own() -> None:
    transport = Troubled(httpx.ConnectError("away"), FOUND)
    with pytest.raises(Unreachable):
        client_of(transport).with_options(retries=0).recall("x")


def test_a_503_says_when_to_come_back() -> None:
    transport = Troubled(refused(503, Retry_After="30"))
    with pytest.raises(Unavailable) as unavailable:
        client_of(transport, retries=0).recall("x")
    assert unavailable.value.retry_after == 30.0


def test_a_batch_refused_as_a_whole_says_why() -> None:
    """The first line's reason beside what all have in common."""
    line = {"index": 0, "status": 409, "detail": "This turn_id was used.", "errors": {"turn_id": ["It was used."]}}
    told = {"title": "Conflict", "status": 409, "detail": "None was stored.", "turns": [{"error": line}]}
    with pytest.raises(ApiError, match=r"None was stored\. This turn_id was used\. turn_id: It was used\.$") as raised:
        client_of(Troubled(httpx.Response(409, json=told))).accept_turns(
            [{"session": "s", "role": "user", "content": "x"}]
        )
    assert raised.value.errors == {"turn_id": ["It was used."]}


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ({"user": ["A text is expected."]}, "The request is not valid. user: A text is expected."),
        ({"parts": [{"statement": ["It is empty."]}, {}]}, "The request is not valid. parts.statement: It is empty."),
        ({"a": ["One.", "Two."], "b": "Three."}, "The request is not valid. a: One. a: Two. b: Three."),
        ({}, "The request is not valid."),
    ],
)
def test_an_invalid_request_names_its_fields(errors: dict[str, object], told: str) -> None:
    problem = {"title": "Unprocessable Entity", "detail": "The request is not valid.", "errors": errors}
    with pytest.raises(Invalid) as raised:
        client_of(Troubled(httpx.Response(422, json=problem))).recall("x")
    assert str(raised.value) == f"422 Unprocessable Entity: {told}"


def test_what_the_detail_says_already_is_not_repeated() -> None:
    """As of a project that is missing."""
    missing = "There is no project 'nowhere' that this key may see."
    problem = {"title": "Not Found", "detail": missing, "errors": {"project": [missing]}}
    with pytest.raises(ApiError) as raised:
        client_of(Troubled(httpx.Response(404, json=problem))).recall("x")
    assert str(raised.value) == f"404 Not Found: {missing}"


def test_a_client_that_was_closed_says_so() -> None:
    client = client_of(Troubled())
    client.close()
    with pytest.raises(Closed):
        client.recall(query="ferns")


@pytest.mark.parametrize(
    ("options", "slow"), [(Options(), 60.0), (Options(timeout=90.0), 90.0), (Options(patience=5.0), 10.0)]
)
def test_what_asks_a_model_meanwhile_has_longer(options: Options, slow: float) -> None:
    """R1, R7: a client that gave up sooner would not learn what was done."""
    waits: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        waits.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json={})

    with Engram("http://engram.test", key="k", transport=httpx.MockTransport(answer), options=options) as engram:
        engram.read_status()
        engram.reflect()
        engram.make_meta_beliefs()
        engram.remember("The mill turns.")
    assert waits == [options.timeout, slow, slow, slow]
