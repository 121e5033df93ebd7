"""What happened and why: belief events, status transitions, gate decisions and model calls.

Also what recall showed, what was undone or erased, and counters of the installation. Triggers write the events;
rows of history never change afterwards.
"""

from __future__ import annotations

from typing import Any, Self

import pghistory
import pgtrigger
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from memory.models.beliefs import EVIDENCE_VERDICTS, Basis, Belief, EvidenceKind, LineageKind
from memory.models.conversations import Conversation
from memory.models.cycles import ClusterJob, Cycle, StructuralJob
from memory.models.episodes import Episode
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet

# A change of any of these is kept. All else of a belief follows from its evidence or tells of its use.
TRACKED_COLUMNS = (
    "statement", "subject", "predicate", "context", "timeframe", "status", "status_reason", "alpha", "beta",
    "is_pinned", "valid_from", "valid_until",
)  # fmt: skip

# What goes along, so that a belief can be shown as it stood; `updated_at` is the domain time of the change.
_CONTEXT_COLUMNS = (
    "workspace", "scope", "project", "user", "fact_type", "language", "importance", "evidence_count",
    "peak_confidence", "prediction_error", "storage_strength", "created_at", "updated_at", "last_reinforced_at",
    "last_verified_at",
)  # fmt: skip
RECORDED_COLUMNS = (*TRACKED_COLUMNS, *_CONTEXT_COLUMNS)


class _BigAutoEvent(pghistory.models.Event):  # type: ignore[django-manager-missing]  # pghistory has one
    """An event whose number may grow beyond 32 bits."""

    pgh_id = models.BigAutoField(primary_key=True)

    class Meta:
        abstract = True


_BeliefRecord: Any = pghistory.create_event_model(
    Belief,
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent("changed", condition=pghistory.AnyChange(*TRACKED_COLUMNS)),
    fields=[*RECORDED_COLUMNS],
    base_model=_BigAutoEvent,
    obj_field=pghistory.ObjForeignKey(related_name="+", on_delete=models.CASCADE, db_constraint=True, db_index=False),
    context_field=pghistory.ContextJSONField(),
    context_id_field=None,  # type: ignore[arg-type]  # none is what its documentation says to give
    level=pgtrigger.Statement,  # a third of what a trigger per row costs
)


class BeliefEvent(_BeliefRecord):  # type: ignore[misc]  # pghistory makes the class when it runs
    """A belief as it stood after one change, written by a trigger whoever made the change.

    `pgh_context` holds actor and reason where they were said, `pgh_created_at` the wall time of the change.
    """

    confidence = models.GeneratedField(
        expression=F("alpha") / (F("alpha") + F("beta")), output_field=models.FloatField(), db_persist=True
    )

    # Without indexes: rows are found by their belief, and every change would pay for them.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    project = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, null=True, db_constraint=False, db_index=False, related_name="+"
    )

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["pgh_obj", "-pgh_id"], name="belief_as_of")]
        triggers = [pgtrigger.Protect(name="history_never_changes", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.pgh_obj_id} {self.pgh_label}"

    @property
    def actor(self) -> str:
        """Return who made the change, "" for one that was made by hand in the database."""
        return str((self.pgh_context or {}).get("actor", ""))

    @property
    def reason(self) -> str:
        """Return why it was made, "" likewise."""
        return str((self.pgh_context or {}).get("reason", ""))


class Transition(models.Model):
    """One change of the status of a belief or an episode."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="transitions")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, null=True, blank=True, related_name="transitions")
    old = models.CharField(max_length=12)
    new = models.CharField(max_length=12)
    reason = models.CharField(max_length=200)
    actor = models.CharField(max_length=200)
    at = models.DateTimeField(help_text="Domain time.")
    recorded_at = models.DateTimeField(db_default=Now(), help_text="Wall time, by the database's clock.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(belief__isnull=True) ^ Q(episode__isnull=True), name="transition_of_one_memory"
            ),
            models.CheckConstraint(condition=~Q(old=F("new")), name="transition_changes_something"),
            models.CheckConstraint(condition=~Q(actor="") & ~Q(reason=""), name="transition_says_who_and_why"),
        ]
        indexes = [models.Index(fields=["workspace", "-id"], name="transition_newest")]
        triggers = [pgtrigger.Protect(name="transitions_never_change", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.belief_id or self.episode_id}: {self.old} → {self.new}"


class GateDecision(models.Model):
    """What a gate decided about a belief, passed or not, with the facts it saw."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    cycle = models.ForeignKey(
        Cycle,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="decisions",
        help_text="In which it was decided; empty where evidence that came by another way asked for it.",
    )
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="decisions")
    twin = models.ForeignKey(
        Belief, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", help_text="Seen by the merge gate."
    )
    gate = models.CharField(max_length=12)
    passed = models.BooleanField()
    reason = models.CharField(max_length=60)
    facts = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cycle", "belief", "gate"], name="one_decision_per_cycle_and_gate")
        ]
        indexes = [models.Index(fields=["belief", "-created_at"], name="decision_of_belief")]

    def __str__(self) -> str:
        return f"{self.gate} {'passed' if self.passed else 'refused'} {self.belief_id}"


class CallOutcome(models.TextChoices):
    OPEN = "open", "in flight"
    OK = "ok", "answered"
    RATE_LIMITED = "rate_limited", "rate limited"
    TIMEOUT = "timeout", "timed out"
    CONNECTION = "connection", "connection failed"
    SERVER = "server", "server error"
    AUTH = "auth", "not authorised"
    BILLING = "billing", "not paid for"
    MALFORMED = "malformed", "malformed reply"
    BAD_REQUEST = "bad_request", "refused as malformed"
    OWN_ERROR = "own_error", "an error of our own"
    ABANDONED = "abandoned", "nobody waited for the answer"


PURPOSE_EMBED, PURPOSE_RECALL = (
    "embed",
    "recall",
)  # the purposes of calls for vectors: of episodes and statements, and of queries


class ModelCallQuerySet(WorkspaceQuerySet):
    def about_jobs(self) -> Self:
        """Keep the calls of language models."""
        return self.exclude(purpose__in=(PURPOSE_EMBED, PURPOSE_RECALL))


class ModelCall(models.Model):
    """One call. Its reply is stored before it is applied; only validated ones are reused, in their workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="model_calls")
    cycle = models.ForeignKey(Cycle, on_delete=models.SET_NULL, null=True, blank=True, related_name="calls")
    job = models.ForeignKey(ClusterJob, on_delete=models.SET_NULL, null=True, blank=True, related_name="calls")
    structural_job = models.ForeignKey(
        StructuralJob, on_delete=models.SET_NULL, null=True, blank=True, related_name="calls"
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, blank=True, related_name="calls", db_index=False
    )
    purpose = models.CharField(max_length=20)
    model = models.CharField(max_length=100)
    parameters = models.JSONField(default=dict, blank=True)
    prompt_version = models.CharField(max_length=40, blank=True, default="")
    input_hash = models.CharField(max_length=64)
    outcome = models.CharField(max_length=12, choices=CallOutcome.choices, default=CallOutcome.OPEN)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    is_estimated = models.BooleanField(default=False, help_text="The server gave no token counts.")
    cost_usd = models.DecimalField(max_digits=12, decimal_places=8, default=0)
    latency_ms = models.PositiveIntegerField(null=True, blank=True)
    reply = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    episodes: models.ManyToManyField[Episode, ModelCallEpisode] = models.ManyToManyField(
        Episode, through="ModelCallEpisode", related_name="model_calls"
    )

    objects = ModelCallQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(outcome__in=CallOutcome.values), name="call_outcome_known"),
            models.CheckConstraint(condition=Q(cost_usd__gte=0), name="call_cost_not_negative"),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "input_hash", "purpose"], condition=Q(outcome="ok"), name="call_reusable"
            ),
            models.Index(fields=["workspace", "started_at"], condition=Q(outcome="open"), name="call_in_flight"),
            models.Index(fields=["workspace", "-started_at"], name="call_newest"),
            models.Index(fields=["conversation"], condition=Q(conversation__isnull=False), name="call_of_conversation"),
            models.Index(  # adding up all calls reads this alone, and never the wide rows
                fields=["purpose", "outcome"],
                include=["input_tokens", "output_tokens", "cost_usd", "latency_ms", "finished_at"],
                name="call_totals",
            ),
            models.Index(
                fields=["workspace", "started_at"],
                include=["input_tokens", "output_tokens"],
                condition=Q(purpose=PURPOSE_RECALL),
                name="call_of_recall",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} {self.outcome}"


class ModelCallEpisode(models.Model):
    """An episode that a call saw, so that erasing the episode finds the replies that quote it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    call = models.ForeignKey(ModelCall, on_delete=models.CASCADE, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["call", "episode"], name="call_saw_episode_once")]

    def __str__(self) -> str:
        return f"{self.call_id} saw {self.episode_id}"


class ShownMemory(models.Model):
    """Echo: a memory that was shown to a session, and when it was first."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    session = models.CharField(max_length=200)
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, null=True, related_name="+")
    surfaced_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "surfaced"
        constraints = [
            models.CheckConstraint(
                condition=Q(belief__isnull=True) ^ Q(episode__isnull=True), name="surfaced_one_memory"
            ),
            models.CheckConstraint(condition=~Q(session=""), name="surfaced_to_a_session"),
            models.UniqueConstraint(fields=["workspace", "session", "belief"], name="belief_surfaced_once"),
            models.UniqueConstraint(fields=["workspace", "session", "episode"], name="episode_surfaced_once"),
        ]

    def __str__(self) -> str:
        return f"{self.belief_id or self.episode_id} in {self.session}"


class RevokedEvidence(models.Model):
    """A row of evidence that counted from `created_at` until `undone_at`, both domain time."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=11, choices=[(v, v.lower()) for v in EVIDENCE_VERDICTS])
    kind = models.CharField(max_length=9, choices=EvidenceKind.choices)
    base_weight = models.FloatField()
    basis = models.CharField(max_length=6, choices=Basis.choices)
    reason = models.TextField(blank=True, default="")
    cycle = models.ForeignKey("memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    valid_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    undone_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.episode_id} {self.verdict} {self.belief_id}, undone"


class RevokedLineage(models.Model):
    """A row of lineage that stood from `created_at` until `undone_at`, both domain time."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    parent = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    child = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12, choices=LineageKind.choices)
    reason = models.TextField(blank=True, default="")
    cycle = models.ForeignKey("memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()
    undone_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.parent_id} → {self.child_id}, undone"


class Erased(models.Model):
    """Words that do not come back: of an episode, or of a belief."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64, help_text="Under the workspace's own key.")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "erased"
        constraints = [models.UniqueConstraint(fields=["workspace", "digest"], name="erased_once")]

    def __str__(self) -> str:
        return self.digest[:12]


REDELIVERIES = "redeliveries"
DROPPED_LINES = "dropped_lines"  # of replies to readings, by model
REDELIVERY_REASONS = ("redelivered", "retried")  # by the broker; after a lost worker or an outage


class TallyQuerySet(models.QuerySet["MetricCounter"]):
    def add(self, *, name: str, label: str, count: int = 1) -> None:
        """Count so many more; any number of processes may do so at once."""
        self.bulk_create([MetricCounter(name=name, label=label)], ignore_conflicts=True)
        self.filter(name=name, label=label).update(count=F("count") + count)


class MetricCounter(models.Model):
    """A count by name and label. Belongs to no workspace."""

    name = models.CharField(max_length=40)
    label = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField(default=0)

    objects = TallyQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="one_tally_per_label")]

    def __str__(self) -> str:
        return f"{self.name} {self.label}"


class Heartbeat(models.Model):
    """When something that must keep running was last seen, by the database's clock. Belongs to no workspace."""

    name = models.CharField(max_length=40, primary_key=True)
    seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
