"""One budget for a set of asks: reuse, retries, halving, waiting, and nothing lost on the way (B9, B11)."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memory.llm.call_log import CallBudget, CallScope, DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.offline import OfflineModel
from memory.llm.runner import ModelAnswer, ModelRequest, run_requests
from memory.llm.types import FailureKind
from memory.models import CallOutcome, ModelCall, ModelCallEpisode, Workspace
from tests.llm.asking import synthesis
from tests.llm.steps import Step, batch
from tests.model_server import ModelServer
from tests.model_server_acts import (
    Asked,
    close_socket,
    garbage,
    html,
    refuse,
    sensible,
    stall,
    truncated_json,
    unknown_ids,
    wrong_schema,
)

pytestmark = pytest.mark.django_db

TWELVE = tuple(f"text {n}" for n in range(12))


def ids(count: int) -> list[str]:
    """Return the ids of the first episodes."""
    return [f"ep_{number:012x}" for number in range(count)]


def outcomes() -> list[str]:
    """Return the outcomes of all calls, oldest first."""
    return list(ModelCall.objects.order_by("id").values_list("outcome", flat=True))


def poison(marked: str) -> Callable[[Asked], Any]:
    """Script a model that chokes on every batch with a certain text in it."""

    def script(asked: Asked) -> Any:
        return garbage() if any(marked in item["text"] for item in asked.episodes) else sensible(asked)

    return script


def test_every_ask_is_answered_and_settled(step: Step, server: ModelServer) -> None:
    failures = step.ask(ModelRequest(key="new", request=synthesis("a", "b", "c")), batch("a", "b"))
    assert failures == []
    assert {(answer.key, answer.reused) for answer in step.answers} == {("new", False), ("belief", False)}
    call = ModelCall.objects.get(purpose="classify")
    assert (call.outcome, call.model, call.prompt_version) == ("ok", "smaller", "classify-2")
    assert call.input_tokens > 100
    assert call.finished_at is not None
    assert call.finished_at >= call.started_at
    assert call.parameters["response_format"] == "json_schema"


def test_a_call_is_linked_to_the_episodes_it_saw(step: Step) -> None:
    """The ledger links a call to its episodes, so that erasing one finds the replies that quote it."""
    step.ask(batch("a", "b"))
    assert sorted(ModelCallEpisode.objects.values_list("episode_id", flat=True)) == ids(2)


def test_a_stored_reply_is_reused_without_a_call(step: Step, server: ModelServer) -> None:
    """B7: judged once, not asked again."""
    step.ask(batch("a", "b"))
    step.ask(batch("a", "b"), seconds=0)
    assert len(server.log) == 1
    assert [answer.reused for answer in step.answers] == [False, True]
    assert step.answers[0].reply == step.answers[1].reply
    assert step.answers[0].call_id == step.answers[1].call_id


def test_a_reply_never_leaves_its_workspace(step: Step, server: ModelServer, stranger: Workspace) -> None:
    step.ask(batch("a"))
    step.scope = CallScope(workspace_id=stranger.pk)
    step.ask(batch("a"))
    assert len(server.log) == 2


def test_another_model_is_asked_anew(step: Step, server: ModelServer) -> None:
    """B7: only the same prompt version and model counts as judged."""
    step.ask(batch("a"))
    step.model = OfflineModel()
    step.ask(batch("a"))
    assert [answer.reused for answer in step.answers] == [False, False]


def test_a_malformed_reply_is_never_reused(step: Step, server: ModelServer) -> None:
    server.then(garbage())
    step.ask(batch("a"), attempts=0)
    step.ask(batch("a"))
    assert outcomes() == ["malformed", "ok"]


@pytest.mark.parametrize("act", [refuse(500), refuse(429, retry_after=0), close_socket(), refuse(503, retry_after=0.1)])
def test_a_passing_failure_is_retried(step: Step, server: ModelServer, act: Any) -> None:
    """B9: a retry within the budget."""
    server.then(act)
    assert step.ask(batch("a")) == []
    assert len(server.log) == 2
    assert outcomes()[-1] == "ok"


def test_a_stall_is_timed_out_and_retried(step: Step, server: ModelServer) -> None:
    server.then(stall(3.0))
    assert step.ask(batch("a"), call_timeout=0.8) == []
    assert outcomes() == ["timeout", "ok"]


def test_all_asks_share_one_retry_budget(step: Step, server: ModelServer) -> None:
    """B9: one retry budget for all layers."""
    server.script = lambda asked: refuse(500)
    failures = step.ask(*(batch(f"text {n}", key=str(n)) for n in range(4)), attempts=3)
    assert len(server.log) == 4 + 3
    assert [failure.kind for failure in failures] == [FailureKind.SERVER] * 4
    assert step.answers == []


def test_a_short_retry_after_is_waited_for(step: Step, server: ModelServer) -> None:
    """B9: Retry-After is honoured, by every ask of the step."""
    server.then(refuse(429, retry_after=0.4))
    step.ask(batch("a"), batch("b", key="other"), max_parallel=1)
    first, second, third = server.log
    assert second.came_at - first.came_at >= 0.4
    assert third.came_at > second.came_at


def test_a_long_retry_after_is_not_slept(step: Step, server: ModelServer) -> None:
    """B9: over 5 s the step stores what it has and gives its lease back."""
    server.script = lambda asked: refuse(429, retry_after=60) if asked.episodes[0]["text"] == "late" else None
    began = time.monotonic()
    with pytest.raises(RetryLater) as caught:
        step.ask(batch("late"), batch("a", "b", key="other"))
    assert caught.value.seconds == 60
    assert time.monotonic() - began < 30
    assert [answer.key for answer in step.answers] == ["other"]


def test_after_waiting_only_what_was_left_over_is_asked(step: Step, server: ModelServer) -> None:
    server.then(refuse(429, retry_after=60))
    asks = [batch("a"), batch("b", key="other")]
    with pytest.raises(RetryLater):
        step.ask(*asks, max_parallel=1)
    step.ask(*asks)
    assert sorted(answer.key for answer in step.answers if not answer.reused) == ["belief", "other"]


@pytest.mark.parametrize("act", [garbage(), wrong_schema(), unknown_ids(), html(), truncated_json()])
def test_a_malformed_reply_is_asked_once_more(step: Step, server: ModelServer, act: Any) -> None:
    """B11: a malformed reply is retried within budget."""
    server.then(act)
    assert step.ask(batch("a", "b")) == []
    assert outcomes() == ["malformed", "ok"]
    assert step.judged() == ids(2)


def test_a_batch_that_stays_malformed_is_halved_around_its_poison(step: Step, server: ModelServer) -> None:
    """B11: then the batch is halved; what cannot be judged alone has failed, the rest has not."""
    server.script = poison("text 7")
    failures = step.ask(batch(*TWELVE))
    assert [failure.request.episodes[0].text for failure in failures] == ["text 7"]
    assert [(failure.key, failure.kind) for failure in failures] == [("belief", FailureKind.MALFORMED)]
    assert step.judged() == [name for name in ids(12) if name != "ep_000000000007"]
    assert {answer.key for answer in step.answers} == {"belief"}


def test_a_model_that_only_talks_costs_a_bounded_number_of_calls(step: Step, server: ModelServer) -> None:
    """B9: halving spends the same budget, so that a broken model is soon given up."""
    server.script = lambda asked: garbage()
    failures = step.ask(batch(*TWELVE), attempts=3)
    assert len(server.log) <= 1 + 2 * 3
    lost = [episode.id for failure in failures for episode in failure.request.episodes]
    assert sorted(lost) == ids(12)


def test_a_synthesis_that_stays_malformed_has_failed(step: Step, server: ModelServer) -> None:
    """B11: then the step is marked failed: never read as "nothing found"."""
    server.script = lambda asked: garbage()
    failures = step.ask(ModelRequest(key="new", request=synthesis("a", "b", "c")))
    assert [(failure.key, failure.kind) for failure in failures] == [("new", FailureKind.MALFORMED)]
    assert len(server.log) == 2


@pytest.mark.parametrize(
    ("act", "kind"),
    [(refuse(401), FailureKind.AUTH), (refuse(429, code="insufficient_quota"), FailureKind.BILLING)],
)
def test_a_refused_key_or_an_empty_purse_ends_the_step_at_once(
    step: Step, server: ModelServer, act: Any, kind: FailureKind
) -> None:
    server.script = lambda asked: act
    failures = step.ask(batch("a"), batch("b", key="other"), max_parallel=1)
    assert [failure.kind for failure in failures] == [kind, kind]
    assert len(server.log) == 1


def test_a_bad_request_is_not_repeated(step: Step, server: ModelServer) -> None:
    server.script = lambda asked: refuse(404)
    failures = step.ask(batch("a"), batch("b", key="other"))
    assert [failure.kind for failure in failures] == [FailureKind.BAD_REQUEST] * 2
    assert len(server.log) == 2


def test_no_call_is_begun_that_could_outlive_the_deadline(step: Step, server: ModelServer) -> None:
    """B9: now + call timeout + margin < deadline, else put back."""
    with pytest.raises(OutOfBudget):
        step.ask(batch("a"), seconds=2.4)
    assert server.log == []
    assert ModelCall.objects.count() == 0


def test_what_is_in_flight_at_the_deadline_is_still_stored(step: Step, server: ModelServer) -> None:
    """B9: over budget, stop starting, apply what is complete."""
    server.latency = 1.2
    with pytest.raises(OutOfBudget):
        step.ask(batch("a"), batch("b", key="other"), seconds=3.6, max_parallel=1)
    assert [answer.key for answer in step.answers] == ["belief"]
    assert outcomes() == ["ok"]


def test_a_retry_never_outlives_the_budget(step: Step, server: ModelServer) -> None:
    """B9: a retry never outlives the budget."""
    server.then(refuse(500, retry_after=3))
    began = time.monotonic()
    with pytest.raises(OutOfBudget):
        step.ask(batch("a"), seconds=4.0)
    assert time.monotonic() - began < 3
    assert outcomes() == ["server"]


def test_a_spent_day_ends_the_step_without_a_call(step: Step, server: ModelServer, workspace: Workspace) -> None:
    """B9: over budget, stop starting work."""
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=0)
    with pytest.raises(DailyCapReached):
        step.ask(batch("a"))
    assert server.log == []


def test_a_lost_lease_starts_no_call(step: Step, server: ModelServer) -> None:
    step.fence = lambda: False
    with pytest.raises(LeaseLost):
        step.ask(batch("a"))
    assert server.log == []


def test_a_reply_that_comes_after_the_lease_is_lost_is_kept_for_the_next_owner(step: Step, server: ModelServer) -> None:
    server.script = lambda asked: stall(0.5) if asked.episodes[0]["text"] == "slow" else None
    checks = iter([True, False])
    step.fence = lambda: next(checks)
    with pytest.raises(LeaseLost):
        step.ask(batch("slow"), batch("quick", key="2"), batch("left over", key="3"), max_parallel=2)
    assert [answer.key for answer in step.answers] == ["2"]
    assert outcomes() == ["ok", "ok"]


def test_a_kill_between_a_reply_and_its_storing_costs_no_second_call(step: Step, server: ModelServer) -> None:
    """A reply is in the ledger before it is applied."""

    def killed(answers: Sequence[ModelAnswer]) -> None:
        raise SystemExit

    budget = CallBudget(deadline=time.monotonic() + 30, call_timeout=2, attempts=1, max_parallel=1)
    with pytest.raises(SystemExit):
        run_requests(asks=[batch("a")], scope=step.scope, budget=budget, model=step.model, store=killed)
    step.ask(batch("a"))
    assert [answer.reused for answer in step.answers] == [True]
    assert len(server.log) == 1


def test_the_offline_model_passes_through_the_same_ledger_for_nothing(step: Step) -> None:
    step.model = OfflineModel()
    assert step.ask(batch("a", "b")) == []
    call = ModelCall.objects.get()
    assert (call.outcome, call.model) == (CallOutcome.OK, OfflineModel().model_for(call.purpose))
    assert call.cost_usd == 0


def test_parts_of_a_halved_batch_do_not_queue_for_threads(step: Step, server: ModelServer) -> None:
    """B11: a part's time begins when it is sent; none is given up because others were being answered."""

    def answer(asked: Asked) -> Any:
        if len(asked.episodes) > 3:
            return garbage()
        time.sleep(0.9)
        return sensible(asked)

    server.script = answer
    assert step.ask(batch(*TWELVE), attempts=6, call_timeout=1.2, margin=0.1) == []
    assert not ModelCall.objects.filter(outcome="timeout").exists()
