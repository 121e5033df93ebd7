"""GET /metrics."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from memory.consolidation.schedule import sweep
from memory.graph.linking import link_memories
from memory.metrics import count_redelivery
from memory.models import CallOutcome, Conversation, Cycle, CycleStep, ModelCall, Trigger, Workspace
from tests import factories
from tests.api.caller import is_problem

pytestmark = pytest.mark.django_db

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def _scrape() -> Samples:
    response = Client().get("/metrics")
    assert response.status_code == 200
    families = text_string_to_metric_families(response.content.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def _value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def _call(workspace: Workspace, **given: Any) -> ModelCall:
    fields = {"purpose": "classify", "model": "m", "input_hash": "h", "outcome": "ok", "finished_at": Now()}
    return ModelCall.objects.create(workspace=workspace, **fields | given)


def _cycle(workspace: Workspace, *, state: str, seconds: float = 4.0, **given: Any) -> Cycle:
    ended = factories.NOW + timedelta(seconds=seconds)
    times = {"started_at": factories.NOW, "finished_at": ended}
    return Cycle.objects.create(
        workspace=workspace, now=factories.NOW, trigger=Trigger.PERSON, state=state, **times | given
    )


def test_every_label_value_is_there_from_the_start_at_zero() -> None:
    """A rate over a series that begins at one would miss its first event."""
    samples = _scrape()
    assert set(samples.values()) == {0.0}
    names = {name for name, _ in samples}
    assert {
        "engram_cycles_total", "engram_cycle_takeovers_total", "engram_open_cycles", "engram_step_seconds_bucket",
        "engram_step_seconds_count", "engram_step_seconds_sum", "engram_cycle_seconds_bucket",
        "engram_model_calls_total", "engram_model_tokens_total", "engram_model_cost_usd_total",
        "engram_model_call_seconds_count", "engram_model_call_seconds_sum", "engram_open_model_calls",
        "engram_pending_episodes", "engram_pooled_episodes", "engram_dead_letters", "engram_oldest_pending_seconds",
        "engram_queued_remembrances",
        "engram_failed_remembrances", "engram_entities", "engram_edges", "engram_boxes", "engram_unlinked_episodes",
        "engram_waiting_turns", "engram_oldest_turn_seconds", "engram_dead_turns", "engram_extraction_seconds_count",
        "engram_extraction_seconds_sum", "engram_beliefs", "engram_redeliveries_total",
        "engram_last_sweep_timestamp_seconds",
    } <= names  # fmt: skip
    outcomes = {dict(labels)["outcome"] for name, labels in samples if name == "engram_model_calls_total"}
    assert outcomes == set(CallOutcome.values) - {"open"}


def test_cycles_are_counted_by_outcome_over_all_workspaces(workspace: Workspace) -> None:
    _cycle(workspace, state="finished", attempt=3)
    _cycle(factories.workspace(), state="finished", attempt=1)
    _cycle(workspace, state="failed", attempt=1)
    samples = _scrape()
    assert _value(samples, "engram_cycles_total", state="finished") == 2
    assert _value(samples, "engram_cycles_total", state="failed") == 1
    assert _value(samples, "engram_cycle_takeovers_total") == 2


def test_durations_of_steps_and_cycles_fall_into_buckets(workspace: Workspace) -> None:
    cycle = _cycle(workspace, state="finished", seconds=4.0)
    ended = factories.NOW + timedelta(seconds=0.7)
    CycleStep.objects.create(workspace=workspace, cycle=cycle, name="gate", started_at=factories.NOW, finished_at=ended)
    samples = _scrape()
    within = {top: _value(samples, "engram_step_seconds_bucket", step="gate", le=top) for top in ("0.5", "1.0", "+Inf")}
    assert within == {"0.5": 0, "1.0": 1, "+Inf": 1}
    assert _value(samples, "engram_step_seconds_sum", step="gate") == pytest.approx(0.7)
    assert _value(samples, "engram_cycle_seconds_sum", state="finished") == pytest.approx(4.0)


def test_calls_tokens_and_money_are_added_up_by_purpose(workspace: Workspace) -> None:
    _call(workspace, input_tokens=300, output_tokens=20, cost_usd="0.0002", latency_ms=1500)
    _call(workspace, input_tokens=100, output_tokens=0, cost_usd="0.0001", latency_ms=500, outcome="timeout")
    samples = _scrape()
    assert _value(samples, "engram_model_calls_total", purpose="classify", outcome="ok") == 1
    assert _value(samples, "engram_model_calls_total", purpose="classify", outcome="timeout") == 1
    assert _value(samples, "engram_model_tokens_total", purpose="classify", direction="input") == 400
    assert _value(samples, "engram_model_tokens_total", purpose="classify", direction="output") == 20
    assert _value(samples, "engram_model_cost_usd_total", purpose="classify") == pytest.approx(0.0003)
    assert _value(samples, "engram_model_call_seconds_sum", purpose="classify") == pytest.approx(2.0)


def test_a_call_counts_once_it_can_no_longer_change(workspace: Workspace) -> None:
    """Its tokens are an estimate until it is settled; a counter that went down would look like a restart."""
    _call(workspace, outcome="open", input_tokens=400, finished_at=None)
    _call(workspace, outcome="abandoned", input_tokens=400)  # its answer may yet come
    samples = _scrape()
    assert _value(samples, "engram_open_model_calls") == 1
    assert _value(samples, "engram_model_tokens_total", purpose="classify", direction="input") == 0

    ModelCall.objects.filter(outcome="abandoned").update(finished_at=Now() - timedelta(minutes=3))
    assert _value(_scrape(), "engram_model_calls_total", purpose="classify", outcome="abandoned") == 1


def test_what_waits_is_counted_and_its_age_told(workspace: Workspace) -> None:
    factories.episode(workspace=workspace, created_at=Now() - timedelta(hours=2))
    factories.episode(workspace=workspace, created_at=Now(), state="failed")
    factories.episode(workspace=workspace, created_at=Now() - timedelta(days=3), state="failed", dead_at=Now())
    factories.episode(workspace=workspace, created_at=Now() - timedelta(days=9), state="pooled")
    samples = _scrape()
    assert _value(samples, "engram_pending_episodes", state="new") == 1
    assert _value(samples, "engram_pending_episodes", state="failed") == 1
    assert _value(samples, "engram_dead_letters") == 1
    assert _value(samples, "engram_pooled_episodes") == 1
    assert _value(samples, "engram_oldest_pending_seconds") == pytest.approx(7200, abs=60)


def test_turns_that_wait_are_counted_and_what_reading_took(workspace: Workspace) -> None:
    """L2: over all workspaces."""
    read = factories.turn(workspace=workspace, state="extracted").conversation
    Conversation.objects.filter(pk=read.pk).update(extraction_count=3, extraction_seconds=4.5)
    factories.turn(workspace=workspace, created_at=Now() - timedelta(minutes=2))
    factories.turn(workspace=factories.workspace(), state="leased", created_at=Now())
    factories.turn(workspace=workspace, state="failed", created_at=Now() - timedelta(days=3))
    samples = _scrape()
    assert _value(samples, "engram_waiting_turns", state="buffered") == 1
    assert _value(samples, "engram_waiting_turns", state="leased") == 1
    assert _value(samples, "engram_dead_turns") == 1
    assert _value(samples, "engram_oldest_turn_seconds") == pytest.approx(120, abs=30)
    assert _value(samples, "engram_extraction_seconds_count") == 3
    assert _value(samples, "engram_extraction_seconds_sum") == 4.5


def test_redeliveries_and_the_last_sweep_are_told() -> None:
    for _ in range(2):
        count_redelivery(task="workers.gate", reason="redelivered")
    sweep()
    samples = _scrape()
    assert _value(samples, "engram_redeliveries_total", task="workers.gate", reason="redelivered") == 2
    assert _value(samples, "engram_last_sweep_timestamp_seconds") > 0


def test_a_caller_from_elsewhere_is_refused(settings: Any) -> None:
    assert is_problem(Client().get("/metrics", REMOTE_ADDR="10.0.0.7"), 403)


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via"])
def test_what_a_proxy_passes_on_is_not_taken_for_this_machine(header: str) -> None:
    assert is_problem(Client().get("/metrics", headers={header: "10.0.0.7"}), 403)


def test_a_site_with_other_names_needs_the_token(settings: Any) -> None:
    """There may be a proxy in front of it, to which every caller comes from loopback."""
    settings.IS_LOOPBACK = False
    assert is_problem(Client().get("/metrics"), 403)


def test_who_has_the_token_may_come_from_anywhere(settings: Any) -> None:
    settings.ENGRAM_METRICS_TOKEN = "a token of some length"
    right, wrong = "Bearer a token of some length", "Bearer another"
    assert Client().get("/metrics", REMOTE_ADDR="10.0.0.7", headers={"Authorization": right}).status_code == 200
    assert is_problem(Client().get("/metrics", headers={"Authorization": wrong}), 403)
    assert is_problem(Client().get("/metrics"), 403)


def test_what_links_memories_is_counted_over_all_workspaces(workspace: Workspace) -> None:
    """L19, L7."""
    for text in ("Zoe rows.", "Zoe sails."):
        factories.episode(workspace=workspace, text=text, entities=["zoe"], session="s")
    link_memories(workspace_id=workspace.pk)
    factories.episode(workspace=factories.workspace())
    samples = _scrape()
    assert (_value(samples, "engram_entities"), _value(samples, "engram_unlinked_episodes")) == (1.0, 1.0)
    assert (_value(samples, "engram_edges", kind="entity"), _value(samples, "engram_edges", kind="time")) == (1.0, 1.0)
    assert (_value(samples, "engram_boxes", state="open"), _value(samples, "engram_boxes", state="sealed")) == (
        1.0,
        0.0,
    )
