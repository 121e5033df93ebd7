"""Structural jobs: a revision, split or merge that a gate decided, and what came of it.

A job keeps all that is needed to do it again without a model: the beliefs and their versions, the gate's facts, the
proposal and its call, each child with every verdict on it, and the ids of the beliefs that were made.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from memory.domain.lifecycle import JobState
from memory.domain.verdicts import Verdict
from memory.models.beliefs import Basis, Belief, EvidenceKind, Timeframe
from memory.models.choices import choices_of
from memory.models.cycles import OPEN_CYCLE_STATES, OPEN_JOB_STATES, Cycle
from memory.models.episodes import DIMENSIONS, Episode
from memory.models.tenancy import Workspace, WorkspaceQuerySet


class StructuralKind(models.TextChoices):
    REVISE = "revise", "revision"
    SPLIT = "split", "split"
    MERGE = "merge", "merge"
    CLOSE = "close", "change"


UNDONE = "undone"  # why a job was refused whose cycle was undone before it was made


class StructuralJobQuerySet(WorkspaceQuerySet):
    def open(self) -> Self:
        """Keep the jobs that are not ended."""
        return self.filter(state__in=OPEN_JOB_STATES)

    def free(self) -> Self:
        """Keep the jobs that nobody holds and that need not wait, by the database's clock."""
        return self.filter(
            Q(leased_until__isnull=True) | Q(leased_until__lt=Now()),
            Q(not_before__isnull=True) | Q(not_before__lte=Now()),
        )

    def carried_over(self) -> Self:
        """Keep the open jobs that wait for a later cycle; what an ended one left behind does, whoever left it."""
        return self.open().filter(Q(cycle=None) | ~Q(cycle__state__in=OPEN_CYCLE_STATES))

    def undone(self) -> Self:
        """Keep what was taken back with its cycle, made or merely decided, each with when (`undone_at`)."""
        taken_back = self.filter(Q(state=JobState.APPLIED, cycle__undone_at__isnull=False) | Q(refusal=UNDONE))
        when = Case(When(refusal=UNDONE, then=F("decided_in__undone_at")), default=F("cycle__undone_at"))
        return taken_back.annotate(undone_at=when)


class StructuralJob(models.Model):
    """One structural change on its way: queued, proposed (*synthesized*), judged (*classified*), then at its end."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=6, choices=StructuralKind.choices)
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="structural_jobs")
    twin = models.ForeignKey(
        Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="+", help_text="The other one of a merge."
    )
    belief_version = models.CharField(max_length=64, help_text="Hash of the belief's evidence when it was decided.")
    twin_version = models.CharField(max_length=64, blank=True, default="")
    decided_in = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="+")
    cycle = models.ForeignKey(
        Cycle, on_delete=models.CASCADE, null=True, blank=True, related_name="structural_jobs",
        help_text="That works on it, or ended it; empty while it waits for a later one.",
    )  # fmt: skip
    facts = models.JSONField(default=dict, help_text="What the gate saw.")

    state = models.CharField(max_length=11, choices=choices_of(JobState), default=JobState.QUEUED)
    state_reason = models.CharField(max_length=200, blank=True, default="")
    refusal = models.CharField(max_length=40, blank=True, default="", help_text="Why nothing was changed.")
    proposal = models.JSONField(null=True, blank=True, help_text="As the model gave it.")
    proposal_call = models.ForeignKey(
        "memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    lease_owner = models.CharField(max_length=64, blank=True, default="")
    leased_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True, help_text="A model asked us to wait until then.")
    claims = models.PositiveIntegerField(default=0)

    objects = StructuralJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(JobState)), name="structural_state_known"),
            models.CheckConstraint(condition=Q(kind__in=StructuralKind.values), name="structural_kind_known"),
            models.CheckConstraint(
                condition=Q(kind="merge", twin__isnull=False) | (~Q(kind="merge") & Q(twin__isnull=True)),
                name="only_a_merge_has_a_twin",
            ),
            models.UniqueConstraint(
                fields=["belief"], condition=Q(state__in=OPEN_JOB_STATES), name="one_open_structural_job_per_belief"
            ),
            models.UniqueConstraint(
                fields=["twin"], condition=Q(state__in=OPEN_JOB_STATES), name="one_open_structural_job_per_twin"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace"], condition=Q(state__in=OPEN_JOB_STATES), name="structural_job_open")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.belief_id}"


class StructuralChild(models.Model):
    """A belief that a structural job proposes, and what became of it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(StructuralJob, on_delete=models.CASCADE, related_name="children")
    number = models.PositiveSmallIntegerField()
    statement = models.TextField()
    statement_hash = models.CharField(max_length=64)
    subject = models.CharField(max_length=200, blank=True, default="")
    predicate = models.TextField(blank=True, default="")
    context = models.TextField(blank=True, default="general")
    timeframe = models.CharField(max_length=7, choices=Timeframe.choices, default=Timeframe.CURRENT)
    language = models.CharField(max_length=8, blank=True, default="")
    vector = HalfVectorField(dimensions=DIMENSIONS, null=True, blank=True)
    vector_model = models.CharField(max_length=100, blank=True, default="")
    refusal = models.CharField(max_length=40, blank=True, default="", help_text="Why it was not made.")
    belief = models.ForeignKey(Belief, on_delete=models.SET_NULL, null=True, blank=True, related_name="made_by")
    is_joined = models.BooleanField(
        default=False, db_default=False, help_text="A belief said it already, and took its evidence."
    )
    suppressed_by = models.ForeignKey(
        Belief, on_delete=models.SET_NULL, null=True, blank=True, related_name="+",
        help_text="What a person archived or had forgotten, and the child would say again.",
    )  # fmt: skip

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "structural children"
        constraints = [models.UniqueConstraint(fields=["job", "number"], name="one_child_per_number")]
        ordering = ("number",)

    def __str__(self) -> str:
        return self.statement[:80]


class ChildVerdict(models.Model):
    """What one episode of the old evidence says of a child; IRRELEVANT ones stay here and are not evidence."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    child = models.ForeignKey(StructuralChild, on_delete=models.CASCADE, related_name="verdicts")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    verdict = models.CharField(max_length=11, choices=choices_of(Verdict))
    kind = models.CharField(max_length=9, choices=EvidenceKind.choices, default=EvidenceKind.ORDINARY)
    base_weight = models.FloatField(default=1.0)
    basis = models.CharField(max_length=6, choices=Basis.choices)
    reason = models.TextField(blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="")
    prompt_version = models.CharField(max_length=40, blank=True, default="")
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["child", "episode"], name="one_verdict_per_child_and_episode"),
            models.CheckConstraint(condition=Q(verdict__in=list(Verdict)), name="child_verdict_known"),
        ]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.verdict}"
