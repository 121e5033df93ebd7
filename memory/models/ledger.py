"""The ledger: every call to a model, what it cost, and what it answered."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from memory.models.conversations import Conversation
from memory.models.cycles import ClusterJob, Cycle
from memory.models.episodes import Episode
from memory.models.restructuring import StructuralJob
from memory.models.tenancy import Workspace, WorkspaceQuerySet


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


EMBED, RECALL = "embed", "recall"  # the purposes of calls for vectors: of episodes and statements, and of queries


class ModelCallQuerySet(WorkspaceQuerySet):
    def about_jobs(self) -> Self:
        """Keep the calls of language models."""
        return self.exclude(purpose__in=(EMBED, RECALL))


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
                condition=Q(purpose=RECALL),
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
