"""Cycles of consolidation and their jobs, with every verdict.

Cluster jobs make beliefs or judge episodes against them; structural jobs revise, split, merge or close a belief. A
structural job keeps all that is needed to do it again without a model: the beliefs and their versions, the gate's
facts, the proposal and its call, each child with every verdict on it, and the ids of the beliefs that were made.
"""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Now
from pgvector.django import HalfVectorField

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import CycleState, JobState
from memory.models.beliefs import Basis, Belief, EvidenceKind, Timeframe
from memory.models.episodes import DIMENSIONS, Claim, Episode
from memory.models.fields import IdField, choices_of, new_cycle_id
from memory.models.leases import Postponable, PostponableQuerySet
from memory.models.tenancy import Workspace, WorkspaceQuerySet

OPEN_CYCLE_STATES = (CycleState.QUEUED, CycleState.RUNNING)
OPEN_JOB_STATES = (JobState.QUEUED, JobState.SYNTHESIZED, JobState.CLASSIFIED)


class Trigger(models.TextChoices):
    SCHEDULE = "schedule", "the schedule"
    EPISODES = "episodes", "enough new episodes"
    PERSON = "person", "a person or an agent"
    REPLAY = "replay", "a replayed history"
    BACKLOG = "backlog", "episodes that the last cycle left"


class CycleQuerySet(WorkspaceQuerySet):
    def open(self) -> Self:
        """Keep the cycles that are queued or running."""
        return self.filter(state__in=OPEN_CYCLE_STATES)

    def abandoned(self) -> Self:
        """Keep the open cycles whose lease has run out, by the database's clock."""
        return self.open().filter(leased_until__lt=Now())


class Cycle(models.Model):
    """One run of consolidation for one workspace."""

    id = IdField(default=new_cycle_id)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="cycles")
    state = models.CharField(max_length=11, choices=choices_of(CycleState), default=CycleState.QUEUED)
    state_reason = models.CharField(max_length=200, blank=True, default="")
    trigger = models.CharField(max_length=8, choices=Trigger.choices)
    now = models.DateTimeField(help_text="Domain time: every step of the cycle reads it from here.")

    attempt = models.PositiveIntegerField(default=0, help_text="Messages of an older attempt find nothing to do.")
    taken_attempt = models.PositiveIntegerField(db_default=0, help_text="The last attempt that a worker took up.")
    claims = models.PositiveIntegerField(db_default=0, help_text="Attempts that a worker took up.")
    leased_until = models.DateTimeField(db_default=Now(), help_text="By the database's clock, as all below.")
    seen_at = models.DateTimeField(db_default=Now(), help_text="Last sign of life.")
    deadline_at = models.DateTimeField(null=True, blank=True, help_text="When the attempt's working time is up.")
    budget_spent = models.CharField(max_length=100, blank=True, default="", help_text="Why no more work is started.")
    cancelled_by = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="Who wants it to end."
    )
    undone_at = models.DateTimeField(
        null=True, blank=True, help_text="Domain time: when all that it did was taken back."
    )
    undone_by = models.CharField(max_length=200, blank=True, default="", db_default="", help_text="Who took it back.")
    opened_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    checkpoint_at = models.DateTimeField(null=True, blank=True, help_text="Newest episode seen; information only.")
    counts = models.JSONField(default=dict, blank=True)
    has_backlog = models.BooleanField(
        default=False, db_default=False, help_text="It left episodes that the next cycle takes up at once."
    )

    objects = CycleQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"], condition=Q(state__in=OPEN_CYCLE_STATES), name="one_open_cycle_per_workspace"
            ),
            models.CheckConstraint(condition=Q(state__in=list(CycleState)), name="cycle_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=OPEN_CYCLE_STATES, finished_at__isnull=True)
                | (~Q(state__in=OPEN_CYCLE_STATES) & Q(finished_at__isnull=False)),
                name="ended_cycle_has_its_end",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-opened_at"], name="cycle_newest"),
            models.Index(fields=["workspace"], condition=Q(has_backlog=True), name="cycle_backlog"),
        ]

    def __str__(self) -> str:
        return self.id


class CycleStep(models.Model):
    """One step of a cycle, as people see it: when it began and ended, and what it counted."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    cycle = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="steps")
    name = models.CharField(max_length=12)
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict, blank=True)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cycle", "name"], name="one_row_per_step")]
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.cycle_id} {self.name}"


class JobKind(models.TextChoices):
    READING = "reading", "messages of one person, read against what is believed"
    CLUSTER = "cluster", "cluster of three or more"
    SINGLES = "singles", "single episodes near beliefs"
    CLAIM = "claim", "one statement of a reading"


class CycleJobQuerySet(PostponableQuerySet):
    def open(self) -> Self:
        """Keep the jobs that are not ended: they still have calls to make or rows to apply."""
        return self.filter(state__in=OPEN_JOB_STATES)


class CycleJob(Postponable):
    """A job of a cycle: leased as any, and valid while the cycle's attempt is."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=11, choices=choices_of(JobState), default=JobState.QUEUED)

    class Meta:
        abstract = True


class ClusterJobQuerySet(CycleJobQuerySet):
    def to_judge(self) -> Self:
        """Keep the jobs that still have calls to make."""
        return self.filter(state__in=(JobState.QUEUED, JobState.SYNTHESIZED))

    def readings(self) -> Self:
        """Keep the jobs that read messages, in the order in which these were said."""
        return self.filter(kind=JobKind.READING).order_by("number")

    def judged(self) -> Self:
        """Keep the jobs whose verdicts became rows, whatever came of them."""
        return self.filter(state__in=(JobState.APPLIED, JobState.REFUSED))


class ClusterJob(CycleJob):
    """One cluster's passage through a cycle; or beliefs with the single episodes judged against them."""

    cycle = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="jobs")
    number = models.PositiveIntegerField(help_text="The order in which the gate applies jobs.")
    kind = models.CharField(max_length=7, choices=JobKind.choices)
    stream = models.CharField(
        max_length=220, blank=True, default="", db_default="", help_text="Of a reading: whose messages these are."
    )
    members_hash = models.CharField(max_length=64, help_text="Of the member ids: a refused set waits until it changes.")
    belief = models.ForeignKey(
        Belief,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Of a singles job about one.",
    )
    pairs = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="Of a singles job: by belief, or claim of the cycle, the episodes to be judged against it.",
    )
    claim = models.ForeignKey(
        Claim, on_delete=models.SET_NULL, null=True, blank=True, related_name="jobs", help_text="Of a claim's job."
    )

    candidate = models.JSONField(null=True, blank=True, help_text="The synthesised belief, as the model gave it.")
    candidate_hash = models.CharField(max_length=64, blank=True, default="")
    candidate_language = models.CharField(max_length=8, blank=True, default="")
    candidate_vector = HalfVectorField(dimensions=DIMENSIONS, null=True, blank=True)
    refusal = models.CharField(max_length=40, blank=True, default="", help_text="Why no belief was made of it.")
    outcome = models.CharField(max_length=12, blank=True, default="", help_text="created, matched, refused, …")
    created_belief = models.ForeignKey(
        Belief, on_delete=models.SET_NULL, null=True, blank=True, related_name="created_by_job"
    )
    joined_belief = models.ForeignKey(
        Belief,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The twin that took the candidate's evidence.",
    )
    suppressed_by = models.ForeignKey(
        Belief,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="What a person archived or had forgotten, and the candidate says again.",
    )

    objects = ClusterJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cycle", "number"], name="one_job_per_number"),
            models.CheckConstraint(condition=Q(state__in=list(JobState)), name="job_state_known"),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "members_hash"],
                condition=Q(state__in=[JobState.APPLIED, JobState.REFUSED]),
                name="job_tried_members",
            ),
            GinIndex(fields=["pairs"], name="job_asks_about"),
        ]
        ordering = ("number",)

    def __str__(self) -> str:
        return f"{self.cycle_id} #{self.number}"


class Blame(models.TextChoices):
    NONE = "", "none"
    CONTENT = "content", "the job failed because of what it says"
    CALL = "call", "the call about it failed: its fault only where the server answered others"


class ClusterMember(models.Model):
    """An episode's place in a cluster job, most central first."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(ClusterJob, on_delete=models.CASCADE, related_name="members")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    claim = models.ForeignKey(
        Claim, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", help_text="What of it takes part."
    )
    position = models.PositiveIntegerField()
    blame = models.CharField(max_length=8, choices=Blame.choices, blank=True, db_default="", default="")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "episode"], name="one_membership_per_job"),
            models.UniqueConstraint(fields=["job", "position"], name="one_member_per_position"),
        ]
        ordering = ("position",)

    def __str__(self) -> str:
        return f"{self.job_id}/{self.position}"


class JobVerdict(models.Model):
    """One verdict within a job: what the gate turns into evidence, and what need not be asked again.

    `belief` is empty for the job's own candidate, and for a `claim` judged before it could found anything: what
    was said of that counts for what comes of it. A pair of episode and statement that one model judged under one prompt
    version is not asked again (B7); the IRRELEVANT ones stay here and are not evidence.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    job = models.ForeignKey(ClusterJob, on_delete=models.CASCADE, related_name="verdicts")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    claim = models.ForeignKey(Claim, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    ends_belief = models.BooleanField(
        default=False, db_default=False, help_text="The episode says that the belief was so and is so no longer."
    )
    valid_at = models.DateTimeField(null=True, blank=True, help_text="Since when it is so, where the episode says.")
    statement_hash = models.CharField(max_length=64)
    verdict = models.CharField(max_length=11, choices=choices_of(Verdict))
    basis = models.CharField(max_length=6, choices=Basis.choices)
    reason = models.TextField(blank=True, default="")
    similarity = models.FloatField(null=True, blank=True, help_text="On the reference scale.")
    model = models.CharField(max_length=100, blank=True, default="")
    prompt_version = models.CharField(max_length=40, blank=True, default="")
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "belief", "claim", "episode"], name="one_verdict_per_pair", nulls_distinct=False
            ),
            models.CheckConstraint(condition=Q(verdict__in=list(Verdict)), name="job_verdict_known"),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "statement_hash", "episode"],
                condition=Q(basis=Basis.MODEL),
                name="verdict_already_given",
            )
        ]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.verdict}"


class StructuralKind(models.TextChoices):
    REVISE = "revise", "revision"
    SPLIT = "split", "split"
    MERGE = "merge", "merge"
    CLOSE = "close", "change"


UNDONE = "undone"  # why a job was refused whose cycle was undone before it was made


class StructuralJobQuerySet(CycleJobQuerySet):
    def carried_over(self) -> Self:
        """Keep the open jobs that wait for a later cycle; what an ended one left behind does, whoever left it."""
        return self.open().filter(Q(cycle=None) | ~Q(cycle__state__in=OPEN_CYCLE_STATES))

    def undone(self) -> Self:
        """Keep what was taken back with its cycle, made or merely decided, each with when (`undone_at`)."""
        taken_back = self.filter(Q(state=JobState.APPLIED, cycle__undone_at__isnull=False) | Q(refusal=UNDONE))
        when = Case(When(refusal=UNDONE, then=F("decided_in__undone_at")), default=F("cycle__undone_at"))
        return taken_back.annotate(undone_at=when)


class StructuralJob(CycleJob):
    """One structural change on its way: queued, proposed (*synthesized*), judged (*classified*), then at its end."""

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

    refusal = models.CharField(max_length=40, blank=True, default="", help_text="Why nothing was changed.")
    proposal = models.JSONField(null=True, blank=True, help_text="As the model gave it.")
    proposal_call = models.ForeignKey(
        "memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

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
