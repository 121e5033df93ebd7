"""B9: caps on tokens and money per workspace and UTC day are never exceeded, however many workers call at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, connections
from django.db.models.functions import Now
from pytest_django import Settings

from memory.llm.call_log import (
    MONEY_IS_SPENT,
    TOKENS_ARE_SPENT,
    CallScope,
    DailyCapReached,
    OutOfBudget,
    RetryLater,
    reserve_calls,
    settle_call,
    spent_today,
)
from memory.llm.openai_models import OpenAIModel
from memory.llm.types import CallFailed, FailureKind
from memory.models import ModelCall, Workspace
from tests.llm.asking import classification
from tests.llm.steps import Step, batch
from tests.model_server import ModelServer

WORKERS = 8


def reserve(workspace: Workspace, model: OpenAIModel, count: int = 1) -> list[ModelCall]:
    """Open rows for so many calls, no two alike."""
    ids = reserve_calls(
        scope=CallScope(workspace_id=workspace.pk),
        requests=[classification(f"text {n}") for n in range(count)],
        model=model,
        in_flight=64,
        call_seconds=10,
    )
    return list(ModelCall.objects.filter(pk__in=ids).order_by("id"))


def size_of(call: ModelCall) -> int:
    return call.input_tokens + call.output_tokens


@pytest.mark.django_db
def test_a_call_reserves_its_prompt_and_the_longest_reply(workspace: Workspace, model: OpenAIModel) -> None:
    """B9: two bytes a token for the prompt; for the reply what the server is told that it may write."""
    [call] = reserve(workspace, model)
    assert call.input_tokens > 400
    assert call.output_tokens == 400 + 30


@pytest.mark.django_db
def test_the_server_is_told_how_long_a_reply_may_be(server: ModelServer, model: OpenAIModel) -> None:
    """B9: what is reserved is what can be spent."""
    bodies = []
    server.script = lambda asked: bodies.append(asked.body)
    model.complete(request=classification("a", "b"), timeout=5)
    assert bodies[0]["max_completion_tokens"] == 400 + 2 * 30


@pytest.mark.django_db
def test_as_many_calls_are_granted_as_fit_under_the_cap(workspace: Workspace, model: OpenAIModel) -> None:
    """B9: the rest wait for what those in flight turn out to cost."""
    one = size_of(reserve(workspace, model)[0])
    ModelCall.objects.all().delete()
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=3 * one + 5)
    assert len(reserve(workspace, model, count=5)) == 3
    assert reserve(workspace, model, count=5) == []


@pytest.mark.django_db
def test_a_call_that_does_not_fit_is_not_made(workspace: Workspace, model: OpenAIModel) -> None:
    """B9: although the cap is not reached yet."""
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=100)
    with pytest.raises(DailyCapReached, match=TOKENS_ARE_SPENT):
        reserve(workspace, model)


@pytest.mark.django_db
def test_money_is_reserved_at_both_prices(workspace: Workspace, model: OpenAIModel, settings: Settings) -> None:
    """B9: what is sent and what may come back."""
    settings.ENGRAM_PRICES = {"smaller": [0.40, 1.60]}
    Workspace.objects.filter(pk=workspace.pk).update(daily_cost_cap_usd=Decimal("0.0005"))
    with pytest.raises(DailyCapReached, match=MONEY_IS_SPENT):
        reserve(workspace, model)
    Workspace.objects.filter(pk=workspace.pk).update(daily_cost_cap_usd=Decimal("0.0100"))
    [call] = reserve(workspace, model)
    assert call.cost_usd == (Decimal("0.40") * call.input_tokens + Decimal("1.60") * 430) / 1_000_000


@pytest.mark.django_db
def test_a_timeout_costs_what_was_reserved(workspace: Workspace, model: OpenAIModel) -> None:
    """B9: nobody knows what a server did before nobody waited any more."""
    [call] = reserve(workspace, model)
    settle_call(call_id=call.pk, model="smaller", result=CallFailed("late", kind=FailureKind.TIMEOUT))
    settled = ModelCall.objects.get()
    assert (settled.outcome, size_of(settled)) == ("timeout", size_of(call))


@pytest.mark.django_db
def test_the_next_utc_day_begins_at_nothing(workspace: Workspace, model: OpenAIModel) -> None:
    """B9: by the database's clock."""
    [call] = reserve(workspace, model)
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=size_of(call))
    with pytest.raises(DailyCapReached):
        reserve(workspace, model)
    ModelCall.objects.update(started_at=Now() - timedelta(days=1), outcome="ok")
    assert len(reserve(workspace, model)) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cap", ["tokens", "money"])
def test_eight_workers_never_overshoot(
    step: Step, server: ModelServer, workspace: Workspace, settings: Settings, cap: str
) -> None:
    """B9: settled and reserved together never exceed the cap, looked at whenever a call comes in."""
    settings.ENGRAM_PRICES = {"smaller": [0.40, 1.60]}
    caps = Workspace.objects.filter(pk=workspace.pk)
    if cap == "tokens":
        caps.update(daily_token_cap=9_000)
    else:
        caps.update(daily_cost_cap_usd=Decimal("0.0070"))
    server.latency = 0.03
    seen, stopped = watch(workspace, server), []

    with ThreadPoolExecutor(max_workers=WORKERS) as workers:
        for one in [workers.submit(work, step, number) for number in range(WORKERS)]:
            stopped.append(one.result())

    spent = spent_today(workspace_id=workspace.pk)
    assert max(size for size, _ in [*seen, (spent.tokens, 0)]) <= 9_000 or cap == "money"
    assert max(cost for _, cost in [*seen, (0, spent.cost_usd)]) <= Decimal("0.0070") or cap == "tokens"
    assert len(server.log) >= 5  # and yet nearly all of it is used
    assert set(stopped) <= {"DailyCapReached", "RetryLater"}
    assert "DailyCapReached" in stopped


def work(step: Step, number: int) -> str:
    """Ask one thing after the other, as a worker does, until the cap says no; return what stopped it."""
    try:
        for turn in range(20):
            mine = Step(scope=step.scope, model=step.model)
            mine.ask(batch(f"text {number} {turn}"), wait_limit=5.0)
    except (OutOfBudget, RetryLater) as stop:
        return type(stop).__name__
    finally:
        connections.close_all()
    return "nothing"


def watch(workspace: Workspace, server: ModelServer) -> list[tuple[int, Decimal]]:
    """Note at every call that reaches the server what is settled and reserved at that moment."""
    seen: list[tuple[int, Decimal]] = []
    lock = threading.Lock()

    def look(asked: object) -> None:
        with lock:
            spent = spent_today(workspace_id=workspace.pk)
            seen.append((spent.tokens, spent.cost_usd))
            connection.close()

    server.script = look
    return seen
