"""Every way in which a server fails, by the real client against a real socket."""

import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pytest_django import Settings

from memory.llm.openai_models import OpenAIModel
from memory.llm.requests import ClassificationRequest
from memory.llm.types import CallFailed, FailureKind
from tests.llm.asking import classification, synthesis
from tests.llm.conftest import openai_model
from tests.model_server import ModelServer
from tests.model_server_acts import (
    Act,
    answer,
    close_socket,
    garbage,
    half_reply,
    html,
    refuse,
    stall,
    truncated_json,
    unknown_ids,
    wrong_schema,
)
from tests.model_server_evils import ABSURD_USAGE, IN_CHAT, usage

FAILURES = [
    (refuse(429), FailureKind.RATE_LIMITED),
    (refuse(429, code="insufficient_quota"), FailureKind.BILLING),
    (refuse(402), FailureKind.BILLING),
    (refuse(401), FailureKind.AUTH),
    (refuse(403), FailureKind.AUTH),
    (refuse(404), FailureKind.BAD_REQUEST),
    (refuse(413), FailureKind.BAD_REQUEST),
    (refuse(500), FailureKind.SERVER),
    (refuse(503), FailureKind.SERVER),
    (refuse(409), FailureKind.SERVER),
    (refuse(408), FailureKind.TIMEOUT),
    (close_socket(), FailureKind.CONNECTION),
    (half_reply(), FailureKind.CONNECTION),
    (truncated_json(), FailureKind.MALFORMED),
    (html(), FailureKind.MALFORMED),
    (garbage(), FailureKind.MALFORMED),
    (wrong_schema(), FailureKind.MALFORMED),
    (unknown_ids(), FailureKind.MALFORMED),
    (answer(""), FailureKind.MALFORMED),
    (Act(body=b'{"choices": []}'), FailureKind.MALFORMED),
    (Act(body=b"[1, 2]"), FailureKind.MALFORMED),
]


def fail(model: OpenAIModel, *, request: ClassificationRequest | None = None, timeout: float = 5) -> CallFailed:
    """Make a call that must fail, and return how it did."""
    with pytest.raises(CallFailed) as caught:
        model.complete(request=request or classification("a", "b"), timeout=timeout)
    return caught.value


@pytest.mark.parametrize(("act", "kind"), FAILURES, ids=lambda value: getattr(value, "name", None))
def test_each_failure_has_its_kind_after_one_attempt(
    server: ModelServer, model: OpenAIModel, act: Act, kind: FailureKind
) -> None:
    """B9: the client's own retries are off."""
    server.then(act)
    assert fail(model).kind is kind
    assert len(server.log) == 1


def test_a_stalled_server_is_given_up_in_time(server: ModelServer, model: OpenAIModel) -> None:
    """B9: a call has its time."""
    server.then(stall(3.0))
    failure = fail(model, timeout=0.2)
    assert failure.kind is FailureKind.TIMEOUT
    assert 200 <= failure.latency_ms < 2500


def test_a_server_that_is_not_there_is_a_failed_connection() -> None:
    gone = OpenAIModel(api_key="", base_url="http://127.0.0.1:9/v1", synthesis_model="a", classification_model="b")
    failure = fail(gone)
    assert (failure.kind, failure.input_tokens) == (FailureKind.CONNECTION, 0)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("soon", None),
        ("nan", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds(
    server: ModelServer, model: OpenAIModel, header: str | None, seconds: float | None
) -> None:
    server.then(refuse(429, retry_after=header))
    assert fail(model).retry_after == seconds


def test_retry_after_is_read_as_a_date(server: ModelServer, model: OpenAIModel) -> None:
    server.then(refuse(429, retry_after=format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)))
    assert fail(model).retry_after == pytest.approx(3600, abs=30)


@pytest.mark.parametrize("act", [garbage(), unknown_ids()])
def test_a_malformed_reply_is_counted_and_kept(server: ModelServer, model: OpenAIModel, act: Act) -> None:
    """B11: tokens are counted before parsing; the text is kept for the ledger."""
    server.then(act)
    failure = fail(model)
    assert failure.input_tokens > 100
    assert failure.output_tokens > 0
    assert not failure.tokens_estimated
    assert failure.raw == act.content


def test_tokens_are_estimated_and_flagged_where_a_server_counts_none(server: ModelServer, model: OpenAIModel) -> None:
    server.then(answer("nothing to see", usage=False))
    failure = fail(model)
    assert failure.tokens_estimated
    assert failure.input_tokens > 100


@pytest.mark.parametrize("name", ABSURD_USAGE)
def test_counts_that_no_call_can_have_make_a_malformed_reply(
    server: ModelServer, model: OpenAIModel, name: str
) -> None:
    """What no column holds would cost the replies that are settled together with this one."""
    server.then(ABSURD_USAGE[name])
    failure = fail(model)
    assert failure.kind is FailureKind.MALFORMED
    assert "usage.prompt_tokens" in str(failure)
    assert failure.tokens_estimated
    assert 100 < failure.input_tokens < 10_000


def test_a_count_that_would_cost_a_fortune_makes_a_malformed_reply(
    server: ModelServer, model: OpenAIModel, settings: Settings
) -> None:
    settings.ENGRAM_PRICES = {"smaller": [2_000, 0]}
    server.then(Act(twist=usage(prompt_tokens=9_000_000, completion_tokens=1)))
    assert str(fail(model)) == "the server's counts of tokens make 18000 US dollars for one call"


@pytest.mark.parametrize("counts", [{}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 7}])
def test_a_server_that_counts_nothing_is_believed_and_estimated(
    server: ModelServer, model: OpenAIModel, counts: dict[str, int]
) -> None:
    server.then(Act(twist=usage(**counts)))
    completion = model.complete(request=classification("a"), timeout=5)
    assert completion.tokens_estimated
    assert completion.input_tokens > 100


@pytest.mark.parametrize("name", IN_CHAT)
def test_an_answer_without_a_readable_text_is_malformed(server: ModelServer, model: OpenAIModel, name: str) -> None:
    server.then(IN_CHAT[name])
    began = time.monotonic()
    assert fail(model).kind is FailureKind.MALFORMED
    assert time.monotonic() - began < 3.0


def test_a_lost_answer_is_counted_as_if_it_was_billed(server: ModelServer, model: OpenAIModel) -> None:
    server.then(truncated_json())
    failure = fail(model)
    assert failure.tokens_estimated
    assert failure.input_tokens > 100


def test_a_server_without_json_schema_is_asked_for_a_json_object(server: ModelServer, model: OpenAIModel) -> None:
    """B11: json_schema mode, with a json_object fallback."""
    server.refuses_json_schema = True
    model.complete(request=synthesis(), timeout=5)
    model.complete(request=synthesis(), timeout=5)
    assert [call.did for call in server.log] == ["refuse 400", "answer", "answer"]
    assert model.parameters_for("synthesize")["response_format"] == "json_object"


def test_the_fallback_is_remembered_for_that_server_alone(server: ModelServer, model: OpenAIModel) -> None:
    server.refuses_json_schema = True
    model.complete(request=synthesis(), timeout=5)
    with ModelServer() as other:
        neighbour = openai_model(other)
        neighbour.complete(request=synthesis(), timeout=5)
        assert neighbour.parameters_for("synthesize")["response_format"] == "json_schema"


def test_a_model_that_takes_no_temperature_keeps_its_schema(server: ModelServer, model: OpenAIModel) -> None:
    server.then(refuse(400, message="temperature does not support 0"))
    model.complete(request=synthesis(), timeout=5)
    assert model.parameters_for("synthesize") == {"response_format": "json_schema"}


def test_a_request_that_is_really_bad_teaches_nothing(server: ModelServer, model: OpenAIModel) -> None:
    server.then(refuse(400), refuse(400))
    assert fail(model).kind is FailureKind.BAD_REQUEST
    assert model.parameters_for("classify")["response_format"] == "json_schema"


def test_the_server_sees_the_rules_the_fence_and_the_texts(server: ModelServer, model: OpenAIModel) -> None:
    model.complete(request=classification("a", "b"), timeout=5)
    model.complete(request=classification("a", "b"), timeout=5)
    assert [call.texts for call in server.calls("classify")] == [["a", "b"]] * 2
    assert len({call.fence for call in server.log}) == 2
    assert {call.model for call in server.log} == {"smaller"}


def test_calls_from_several_threads_run_side_by_side(server: ModelServer, model: OpenAIModel) -> None:
    server.latency = 0.3
    threads = [threading.Thread(target=model.complete, kwargs={"request": synthesis(), "timeout": 5}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deadline = time.monotonic() + 5  # the server notes an answer just after its client has it
    while any(call.left_at is None for call in server.calls("synthesize")) and time.monotonic() < deadline:
        time.sleep(0.01)
    calls = server.calls("synthesize")
    assert len(calls) == 4
    assert max(call.came_at for call in calls) < min(call.left_at or 0 for call in calls)
