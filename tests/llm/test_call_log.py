"""What a row of the ledger says about a call."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from memory.llm.call_log import CallScope, DailyCapReached, abandon_calls, find_replies, reserve_calls, settle_call
from memory.llm.offline import OfflineModel
from memory.llm.openai_models import OpenAIModel
from memory.llm.types import CallFailed, FailureKind, cost_of
from memory.models import ModelCall, Workspace
from tests.llm.asking import classification

pytestmark = pytest.mark.django_db
RULES = OfflineModel()


def open_call(workspace: Workspace) -> int:
    """Open one row."""
    return reserve_calls(
        scope=CallScope(workspace_id=workspace.pk),
        requests=[classification("a")],
        model=RULES,
        in_flight=8,
        call_seconds=10,
    )[0]


def test_a_row_is_open_before_the_call(workspace: Workspace) -> None:
    call = ModelCall.objects.get(pk=open_call(workspace))
    assert (call.outcome, call.finished_at, len(call.input_hash)) == ("open", None, 64)


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_kind_of_failure_can_be_written(workspace: Workspace, kind: FailureKind) -> None:
    """Tokens of failed calls are counted too, and what PostgreSQL cannot hold is dropped."""
    failure = CallFailed("no\x00pe \ud800", kind=kind, raw="a\x00b", input_tokens=7, output_tokens=2, latency_ms=30)
    call_id = open_call(workspace)
    settle_call(call_id=call_id, model="x", result=failure)
    call = ModelCall.objects.get(pk=call_id)
    assert (call.outcome, call.error, call.reply) == (kind, "nope ?", "ab")
    assert (call.input_tokens, call.output_tokens, call.latency_ms) == (7, 2, 30)


def test_prices_are_per_million_tokens(settings: Settings) -> None:
    settings.ENGRAM_PRICES = {"small": [0.40, 1.60]}
    assert cost_of(model="small", input_tokens=1_000_000, output_tokens=500_000) == Decimal("1.20")
    assert cost_of(model="unpriced", input_tokens=1_000_000, output_tokens=1) == 0


def test_only_what_is_open_is_abandoned(workspace: Workspace) -> None:
    settled, lost = open_call(workspace), open_call(workspace)
    settle_call(call_id=settled, model="x", result=CallFailed("no", kind=FailureKind.SERVER))
    assert abandon_calls(workspace_id=workspace.pk) == 1
    assert ModelCall.objects.get(pk=lost).outcome == "abandoned"


def test_a_call_that_may_still_be_answered_is_not_abandoned(workspace: Workspace) -> None:
    open_call(workspace)
    assert abandon_calls(workspace_id=workspace.pk, older_than_seconds=60) == 0


def test_an_answer_to_an_abandoned_call_is_kept(workspace: Workspace) -> None:
    """It was paid for."""
    call_id = open_call(workspace)
    abandon_calls(workspace_id=workspace.pk)
    settle_call(call_id=call_id, model="x", result=RULES.complete(request=classification("a"), timeout=1))
    [found] = find_replies(scope=CallScope(workspace_id=workspace.pk), requests=[classification("a")], model=RULES)
    assert found is not None
    assert found.call_id == call_id


def test_a_settled_call_stays_as_it_is(workspace: Workspace) -> None:
    call_id = open_call(workspace)
    settle_call(call_id=call_id, model="x", result=RULES.complete(request=classification("a"), timeout=1))
    settle_call(call_id=call_id, model="x", result=CallFailed("late", kind=FailureKind.TIMEOUT))
    assert ModelCall.objects.get(pk=call_id).outcome == "ok"


def test_a_reply_of_an_older_shape_is_asked_for_anew(workspace: Workspace) -> None:
    call_id = open_call(workspace)
    ModelCall.objects.filter(pk=call_id).update(outcome="ok", reply='{"judgements": []}')
    scope = CallScope(workspace_id=workspace.pk)
    assert find_replies(scope=scope, requests=[classification("a")], model=RULES) == [None]


def test_a_call_reserves_its_prompt_before_it_is_made(workspace: Workspace, model: OpenAIModel) -> None:
    """B9: reserved before a call and settled after; what a killed process used stays counted."""
    scope = CallScope(workspace_id=workspace.pk)
    reserve_calls(scope=scope, requests=[classification("a")], model=model, in_flight=8, call_seconds=10)
    abandon_calls(workspace_id=workspace.pk)
    call = ModelCall.objects.get()
    assert call.input_tokens > 100
    assert call.is_estimated


@pytest.mark.parametrize(
    ("cap", "spent"), [({"daily_token_cap": 900}, "tokens"), ({"daily_cost_cap_usd": "0.5"}, "money")]
)
def test_a_workspace_that_has_spent_its_day_makes_no_call(
    workspace: Workspace, cap: dict[str, object], spent: str
) -> None:
    """B9: caps on tokens and money per workspace and UTC day."""
    Workspace.objects.filter(pk=workspace.pk).update(**cap)
    call_id = open_call(workspace)
    ModelCall.objects.filter(pk=call_id).update(input_tokens=800, output_tokens=100, cost_usd="0.5")
    with pytest.raises(DailyCapReached, match=spent):
        open_call(workspace)


def test_what_was_spent_yesterday_is_forgotten(workspace: Workspace) -> None:
    """B9: per UTC day."""
    Workspace.objects.filter(pk=workspace.pk).update(daily_token_cap=900)
    call_id = open_call(workspace)
    ModelCall.objects.filter(pk=call_id).update(input_tokens=900, started_at=Now() - timedelta(days=1))
    assert open_call(workspace)
