"""What Prometheus is told, read from the rows: it survives restarts, and every process says the same.

A counter may only grow. So calls count once nothing about them can change any more, and each label value is there from
the first scrape, at zero. Only removing rows (a workspace, erased memories) makes counters smaller, which Prometheus
takes for a restart.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import product

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, F, Min, Q, QuerySet, Sum
from django.db.models.functions import Coalesce, Extract, Now
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from memory.consolidation.schedule import SWEEP_HEARTBEAT
from memory.domain.graph import EdgeKind
from memory.domain.lifecycle import BeliefStatus, ConsolidationState, CycleState
from memory.graph.edges import count_unlinked
from memory.llm.requests import Purpose
from memory.models import (
    Belief,
    Box,
    CallOutcome,
    Conversation,
    Cycle,
    CycleStep,
    Edge,
    Entity,
    Episode,
    Heartbeat,
    MetricCounter,
    ModelCall,
    Redaction,
    RememberJob,
    Turn,
)
from memory.models.audit import DROPPED_LINES, PURPOSE_EMBED, PURPOSE_RECALL, REDELIVERIES, REDELIVERY_REASONS
from memory.models.conversations import WAITING_STATES
from memory.models.cycles import OPEN_CYCLE_STATES
from memory.models.episodes import PENDING_STATES
from memory.models.fields import EXACT_UP_TO, count_about, estimate_rows
from memory.redaction.detectors import SecretKind

STEPS = ("extract", "read", "cluster", "gate", "restructure", "finish")
BUCKETS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)  # seconds

_PURPOSES = (*Purpose, PURPOSE_EMBED, PURPOSE_RECALL)
_ENDED = tuple(state for state in CycleState if state not in OPEN_CYCLE_STATES)
_SETTLED = tuple(outcome for outcome in CallOutcome.values if outcome != CallOutcome.OPEN)
_LATE = timedelta(minutes=2)  # an answer that nobody waited for may still come, and changes its row


class RowCollector(Collector):
    """Reads the rows anew at every scrape; `tasks` are the names that a message may carry."""

    def __init__(self, *, tasks: Sequence[str]) -> None:
        self._tasks = tasks

    def collect(self) -> Iterator[Metric]:
        """Yield every family of metrics."""
        yield from _cycles()
        yield from _durations()
        yield from _calls()
        yield from _memory()
        yield from _conversations()
        yield from _graph()
        yield _redactions()
        yield from _deliveries(self._tasks)
        yield _dropped_lines()
        yield _sweeps()


def render_metrics(*, tasks: Sequence[str]) -> bytes:
    """Return the metrics in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RowCollector(tasks=tasks))
    return generate_latest(registry)


def count_redelivery(*, task: str, reason: str) -> None:
    """Count a message that a worker was given again."""
    MetricCounter.objects.add(name=REDELIVERIES, label=f"{task} {reason}")


def _cycles() -> Iterator[Metric]:
    rows = Cycle.objects.order_by().values_list("state").annotate(count=Count("*"), attempts=Sum("attempt"))
    found = {state: (count, attempts) for state, count, attempts in rows}
    ended = CounterMetricFamily("engram_cycles", "Consolidation cycles that have ended, by outcome", labels=["state"])
    _fill(ended, {(state,): found.get(state, (0, 0))[0] for state in _ENDED})
    yield ended
    under_way = GaugeMetricFamily("engram_open_cycles", "Cycles under way", labels=["state"])
    _fill(under_way, {(state,): found.get(state, (0, 0))[0] for state in OPEN_CYCLE_STATES})
    yield under_way
    further = sum(attempts - count for count, attempts in found.values())
    yield CounterMetricFamily(
        "engram_cycle_takeovers", "Attempts at cycles after their first: a worker or a message was lost", value=further
    )


def _durations() -> Iterator[Metric]:
    steps = CycleStep.objects.filter(finished_at__isnull=False).order_by()
    yield _histogram("engram_step_seconds", "How long steps of cycles took", "step", "name", steps, STEPS)
    cycles = Cycle.objects.filter(state__in=_ENDED, started_at__isnull=False).order_by()
    yield _histogram("engram_cycle_seconds", "How long cycles took from their start", "state", "state", cycles, _ENDED)


def _histogram(
    name: str, documentation: str, label: str, column: str, rows: QuerySet[Cycle] | QuerySet[CycleStep],
    expected: Iterable[str],
) -> HistogramMetricFamily:  # fmt: skip
    """Count rows by the seconds from their start to their finish, cumulatively, as Prometheus wants it."""
    took = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())
    within = {
        f"le{n}": Count("finished_at", filter=Q(took__lte=timedelta(seconds=top))) for n, top in enumerate(BUCKETS)
    }
    measured = rows.annotate(took=took).values(column).annotate(count=Count("*"), total=Sum("took"), **within)
    found = {row[column]: row for row in measured}
    family = HistogramMetricFamily(name, documentation, labels=[label])
    for value in dict.fromkeys([*expected, *found]):
        row = found.get(value, {})
        counts = [(str(top), row.get(f"le{n}", 0)) for n, top in enumerate(BUCKETS)]
        seconds = row["total"].total_seconds() if row else 0.0
        family.add_metric([value], buckets=[*counts, ("+Inf", row.get("count", 0))], sum_value=seconds)
    return family


def _calls() -> Iterator[Metric]:
    """Add up the ledger: one pass over an index that holds all of these columns."""
    is_final = Q(outcome__in=_SETTLED) & (~Q(outcome=CallOutcome.ABANDONED) | Q(finished_at__lt=Now() - _LATE))
    rows = list(
        ModelCall.objects.filter(is_final).order_by().values("purpose", "outcome").annotate(
            count=Count("*"), input=Sum("input_tokens"), output=Sum("output_tokens"), cost=Sum("cost_usd"),
            answered=Count("latency_ms"), milliseconds=Coalesce(Sum("latency_ms"), 0),
        )
    )  # fmt: skip
    purposes = dict.fromkeys([*_PURPOSES, *(row["purpose"] for row in rows)])
    calls = CounterMetricFamily("engram_model_calls", "Calls to models", labels=["purpose", "outcome"])
    _fill(
        calls, dict.fromkeys(product(purposes, _SETTLED), 0) | {(r["purpose"], r["outcome"]): r["count"] for r in rows}
    )
    yield calls
    tokens = CounterMetricFamily("engram_model_tokens", "Tokens of calls", labels=["purpose", "direction"])
    cost = CounterMetricFamily("engram_model_cost_usd", "US dollars that calls cost", labels=["purpose"])
    seconds = SummaryMetricFamily("engram_model_call_seconds", "How long calls took", labels=["purpose"])
    for purpose in purposes:
        own = [row for row in rows if row["purpose"] == purpose]
        for direction in ("input", "output"):
            tokens.add_metric([purpose, direction], sum(row[direction] for row in own))
        cost.add_metric([purpose], float(sum(row["cost"] for row in own)))
        seconds.add_metric(
            [purpose], sum(row["answered"] for row in own), sum(row["milliseconds"] for row in own) / 1000
        )
    yield from (tokens, cost, seconds)
    flying = ModelCall.objects.filter(outcome=CallOutcome.OPEN).count()
    yield GaugeMetricFamily("engram_open_model_calls", "Calls that have not been answered yet", value=flying)


def _memory() -> Iterator[Metric]:
    """Count what waits, and what is believed."""
    pending = Episode.objects.pending()
    waiting = dict(pending.order_by().values_list("state").annotate(count=Count("*")))
    episodes = GaugeMetricFamily("engram_pending_episodes", "Episodes that wait for consolidation", labels=["state"])
    _fill(episodes, {(state,): waiting.get(state, 0) for state in PENDING_STATES})
    yield episodes
    pooled = Episode.objects.active().filter(state=ConsolidationState.POOLED).count()
    yield GaugeMetricFamily("engram_pooled_episodes", "Episodes that wait for others like them", value=pooled)
    kept_back = Episode.objects.active().filter(state=ConsolidationState.HELD).count()
    yield GaugeMetricFamily("engram_held_episodes", "Episodes of cycles that were undone", value=kept_back)
    dead = Episode.objects.dead().count()
    yield GaugeMetricFamily("engram_dead_letters", "Episodes that failed too often and wait for a person", value=dead)
    age = pending.aggregate(age=Extract(Now() - Min("created_at"), "epoch"))["age"]
    yield GaugeMetricFamily("engram_oldest_pending_seconds", "Age of the oldest pending episode", value=age or 0.0)
    queued = RememberJob.objects.queued().count()
    yield GaugeMetricFamily("engram_queued_remembrances", "Texts that wait to be remembered", value=queued)
    failed = RememberJob.objects.failed().count()
    yield GaugeMetricFamily("engram_failed_remembrances", "Texts that were left to consolidation", value=failed)
    held = dict(Belief.objects.order_by().values_list("status").annotate(count=Count("*")))
    beliefs = GaugeMetricFamily("engram_beliefs", "Beliefs", labels=["status"])
    _fill(beliefs, {(status,): held.get(status, 0) for status in BeliefStatus})
    yield beliefs


def _redactions() -> Metric:
    rows = Redaction.objects.order_by().values_list("kind").annotate(total=Sum("count"))
    found = {str(kind): 0 for kind in SecretKind} | {own.kind: 0 for own in settings.ENGRAM_REDACTION_PATTERNS}
    family = CounterMetricFamily("engram_redactions", "Secrets taken out of texts, by kind", labels=["kind"])
    _fill(family, {(kind,): count for kind, count in (found | dict(rows)).items()})
    return family


def _conversations() -> Iterator[Metric]:
    """Count the turns that wait, and what reading took."""
    sums = Conversation.objects.aggregate(
        buffered=Sum("buffered", default=0), leased=Sum("leased", default=0),
        count=Sum("extraction_count", default=0), seconds=Sum("extraction_seconds", default=0.0),
    )  # fmt: skip
    waiting = GaugeMetricFamily("engram_waiting_turns", "Turns of conversations not read yet", labels=["state"])
    _fill(waiting, {(state,): sums[state] for state in WAITING_STATES})
    yield waiting
    age = Turn.objects.waiting().aggregate(age=Extract(Now() - Min("created_at"), "epoch"))["age"]
    yield GaugeMetricFamily("engram_oldest_turn_seconds", "Age of the oldest turn not read yet", value=age or 0.0)
    dead = Turn.objects.dead().count()
    yield GaugeMetricFamily("engram_dead_turns", "Turns that could not be read and wait for a person", value=dead)
    yield SummaryMetricFamily(
        "engram_extraction_seconds", "How long conversations were held to be read",
        count_value=sums["count"], sum_value=sums["seconds"],
    )  # fmt: skip


def _graph() -> Iterator[Metric]:
    """Count what links memories, and what waits to be linked."""
    yield GaugeMetricFamily("engram_entities", "Whom and what memories name", value=count_about(Entity.objects.all()))
    found = _edges_by_kind()
    edges = GaugeMetricFamily("engram_edges", "Links between episodes", labels=["kind"])
    _fill(edges, {(kind,): found.get(kind, 0) for kind in EdgeKind})
    yield edges
    boxes = GaugeMetricFamily("engram_boxes", "Episodes put together by topic", labels=["state"])
    unsealed = count_about(Box.objects.open())
    _fill(boxes, {("open",): unsealed, ("sealed",): max(count_about(Box.objects.all()) - unsealed, 0)})
    yield boxes
    yield GaugeMetricFamily("engram_unlinked_episodes", "Episodes that wait to be linked", value=count_unlinked())


def _edges_by_kind() -> dict[str, int]:
    """Count edges by kind while there are few; where there are many, estimate each kind."""
    if count_about(Edge.objects.all()) <= EXACT_UP_TO:
        return dict(Edge.objects.order_by().values_list("kind").annotate(count=Count("*")))
    return {kind: estimate_rows(Edge.objects.filter(kind=kind)) for kind in EdgeKind}


def _deliveries(tasks: Sequence[str]) -> Iterator[Metric]:
    counted = dict(MetricCounter.objects.filter(name=REDELIVERIES).values_list("label", "count"))
    family = CounterMetricFamily(
        "engram_redeliveries", "Messages that workers were given again", labels=["task", "reason"]
    )
    for task, reason in product(tasks, REDELIVERY_REASONS):
        family.add_metric([task, reason], counted.get(f"{task} {reason}", 0))
    yield family


def _dropped_lines() -> Metric:
    counted = MetricCounter.objects.filter(name=DROPPED_LINES).values_list("label", "count")
    family = CounterMetricFamily(
        "engram_dropped_reply_lines", "Lines of readings that named no message or belief, or had no sense",
        labels=["model"],
    )  # fmt: skip
    _fill(family, {(label,): count for label, count in counted})
    return family


def _sweeps() -> Metric:
    seen = Heartbeat.objects.filter(name=SWEEP_HEARTBEAT).values_list("seen_at", flat=True).first()
    return GaugeMetricFamily(
        "engram_last_sweep_timestamp_seconds", "When a sweep was last done; 0: never",
        value=seen.timestamp() if seen else 0.0,
    )  # fmt: skip


def _fill(family: CounterMetricFamily | GaugeMetricFamily, values: dict[tuple[str, ...], float]) -> None:
    for labels, value in values.items():
        family.add_metric(labels, value)
