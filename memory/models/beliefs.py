"""Beliefs, the evidence behind each, their lineage and links, and pairs that may contradict each other."""

from __future__ import annotations

from typing import Any, Self

import pgtrigger
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Q
from pgvector.django import HalfVectorField

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus, Reason
from memory.models.episodes import DIMENSIONS, Episode
from memory.models.fields import IdField, choices_of, new_belief_id, search_vector
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet

EVIDENCE_VERDICTS = (Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.PARTIAL)


class Timeframe(models.TextChoices):
    CURRENT = "current", "current"
    PAST = "past", "past"
    ALWAYS = "always", "always"


class FactType(models.TextChoices):
    FACTUAL = "factual", "factual"
    PREFERENCE = "preference", "preference"
    PROCEDURAL = "procedural", "procedural"
    ARCHITECTURAL = "architectural", "architectural"
    META = "meta", "meta"
    INSIGHT = "insight", "insight"


class Scope(models.TextChoices):
    GLOBAL = "global", "global"
    PROJECT = "project", "project"


class BeliefQuerySet(WorkspaceQuerySet):
    def active(self) -> Self:
        """Keep what is recalled by default."""
        return self.filter(status=BeliefStatus.ACTIVE)

    def judgeable(self) -> Self:
        """Keep what episodes are judged against: live and archived beliefs, and closed ones, by those of their time."""
        return self.filter(status__in=(*LIVE, BeliefStatus.ARCHIVED)) | self.closed()

    def closed(self) -> Self:
        """C2: keep what held until it changed."""
        return self.filter(status=BeliefStatus.INVALIDATED, status_reason=Reason.CHANGED, valid_until__isnull=False)

    def tombstones(self) -> Self:
        """B22: keep what a person archived or had forgotten: nothing that says the same is created beside it."""
        return self.filter(
            Q(status=BeliefStatus.FORGOTTEN) | Q(status=BeliefStatus.ARCHIVED, archived_by_person_at__isnull=False)
        )

    def visible_in(self, project_id: int | None) -> Self:
        """B21: keep global beliefs and, with a project, that project's own."""
        if project_id is None:
            return self.filter(project=None)
        return self.filter(Q(project=None) | Q(project=project_id))


# P11: a change of what files tell of a belief is noted with it, whoever made it. Where nothing is published, which is
# almost everywhere, this is one look at an empty table.
_CHANGED = """(
    SELECT now.workspace_id FROM new_beliefs now JOIN old_beliefs was USING (id)
    WHERE (now.status, now.alpha, now.beta, now.additive_confidence, now.evidence_count, now.statement)
        IS DISTINCT FROM (was.status, was.alpha, was.beta, was.additive_confidence, was.evidence_count, was.statement)
)"""
_REFERENCE: Any = pgtrigger.Referencing  # it has no types
_PUBLICATION_DUE = """
    IF EXISTS (SELECT FROM memory_memoryfile) THEN
        INSERT INTO memory_publicationdue (workspace_id)
        SELECT DISTINCT changed.workspace_id FROM {changed} AS changed
        WHERE EXISTS (SELECT FROM memory_memoryfile file WHERE file.workspace_id = changed.workspace_id);
    END IF;
    RETURN NULL;
"""


class Belief(models.Model):
    """B2: a generalisation whose confidence comes from its evidence rows and from nothing else."""

    id = IdField(default=new_belief_id)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="beliefs")
    scope = models.CharField(max_length=7, choices=Scope.choices, default=Scope.GLOBAL)
    project = models.ForeignKey(Project, on_delete=models.RESTRICT, null=True, blank=True, related_name="beliefs")
    user = models.CharField(max_length=200, blank=True, default="", help_text="Set when all evidence is one user's.")

    statement = models.TextField()
    statement_hash = models.CharField(max_length=64, editable=False)
    subject = models.CharField(max_length=200, blank=True, default="")
    predicate = models.TextField(blank=True, default="")
    context = models.TextField(blank=True, default="general")
    timeframe = models.CharField(max_length=7, choices=Timeframe.choices, default=Timeframe.CURRENT)
    fact_type = models.CharField(max_length=13, choices=FactType.choices, default=FactType.FACTUAL)
    language = models.CharField(max_length=8, blank=True, default="")
    importance = models.PositiveSmallIntegerField(default=5)

    alpha = models.FloatField(default=1.0)
    beta = models.FloatField(default=1.0)
    confidence = models.GeneratedField(
        expression=F("alpha") / (F("alpha") + F("beta")), output_field=models.FloatField(), db_persist=True
    )
    additive_confidence = models.FloatField(
        null=True, blank=True, help_text="By the additive model, which the workspace may have chosen."
    )
    peak_confidence = models.FloatField(default=0.5)
    prediction_error = models.FloatField(default=0.0)
    evidence_count = models.PositiveIntegerField(default=0, help_text="Evidence rows present, echoes left out.")
    storage_strength = models.PositiveIntegerField(default=0, help_text="Evidence rows there ever were.")
    lineage_depth = models.PositiveIntegerField(
        default=0, help_text="Structural changes between this belief and the first of its line."
    )

    status = models.CharField(max_length=11, choices=choices_of(BeliefStatus), default=BeliefStatus.ACTIVE)
    status_reason = models.CharField(max_length=200, blank=True, default="")
    feedback = models.FloatField(
        default=0.0, db_default=0.0, help_text="From -1, wrong, to 1, useful; never moves the confidence."
    )
    is_pinned = models.BooleanField(default=False)
    is_told = models.BooleanField(default=False, db_default=False, help_text="Somebody said it plainly (E4).")
    restored_by_person_at = models.DateTimeField(null=True, blank=True)
    archived_by_person_at = models.DateTimeField(null=True, blank=True)

    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    statement_changed_at = models.DateTimeField()
    last_reinforced_at = models.DateTimeField(null=True, blank=True)
    last_verified_at = models.DateTimeField(null=True, blank=True)  # when a curator last bore it out
    promoted_at = models.DateTimeField(null=True, blank=True)
    demoted_at = models.DateTimeField(null=True, blank=True)
    published_confidence = models.FloatField(null=True, blank=True)
    valid_from = models.DateTimeField(null=True, blank=True, help_text="Evidence of earlier times counts nothing.")
    valid_until = models.DateTimeField(null=True, blank=True, help_text="Nor does evidence of this time or later.")
    created_in = models.ForeignKey(
        "memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="created_beliefs"
    )
    is_due = models.BooleanField(
        default=False, db_default=False, help_text="Its counted evidence changed, and no gates have seen it since."
    )
    archive_due_at = models.DateTimeField(
        null=True, blank=True, help_text="When time alone could archive it; the finish step looks at what is due."
    )

    search = models.GeneratedField(
        expression=search_vector("statement", "subject", "predicate", "context"),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    objects = BeliefQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(alpha__gt=0), name="belief_alpha_positive"),
            models.CheckConstraint(condition=Q(beta__gt=0), name="belief_beta_positive"),
            models.CheckConstraint(condition=~Q(statement=""), name="belief_has_a_statement"),
            models.CheckConstraint(condition=Q(status__in=list(BeliefStatus)), name="belief_status_known"),
            models.CheckConstraint(condition=Q(importance__range=(1, 10)), name="belief_importance_in_1_10"),
            models.CheckConstraint(condition=Q(peak_confidence__range=(0, 1)), name="belief_peak_in_0_1"),
            models.CheckConstraint(condition=Q(prediction_error__gte=0), name="belief_error_not_negative"),
            models.CheckConstraint(condition=Q(feedback__range=(-1, 1)), name="belief_feedback_in_range"),
            models.CheckConstraint(
                condition=Q(scope=Scope.PROJECT, project__isnull=False) | Q(scope=Scope.GLOBAL, project__isnull=True),
                name="belief_scope_fits_its_project",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "status", "-confidence", "id"], name="belief_most_trusted"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="belief_newest"),
            models.Index(
                fields=["workspace", "archive_due_at"],
                condition=Q(status__in=sorted(LIVE), archive_due_at__isnull=False),
                name="belief_archive_due",
            ),
            models.Index(fields=["workspace"], condition=Q(is_due=True), name="belief_due"),
            GinIndex(fields=["search"], name="belief_search"),
            models.Index(fields=["workspace", "status", "promoted_at"], name="belief_promoted"),
        ]
        triggers = [
            pgtrigger.Trigger(
                name=f"publication_due_on_{operation}",
                level=pgtrigger.Statement,
                when=pgtrigger.After,
                operation=pgtrigger.Update if operation == "update" else pgtrigger.Delete,
                referencing=referencing,
                func=_PUBLICATION_DUE.format(changed=changed),
            )
            for operation, referencing, changed in (
                ("update", _REFERENCE(old="old_beliefs", new="new_beliefs"), _CHANGED),
                ("delete", _REFERENCE(old="old_beliefs"), "old_beliefs"),
            )
        ]

    def __str__(self) -> str:
        return self.statement[:80]


class BeliefEmbedding(models.Model):
    """A belief's vector, with what searches filter by copied in so that they need no join.

    One, but while a workspace moves to another model: then one of each.
    """

    pk = models.CompositePrimaryKey("belief", "model")
    belief = models.ForeignKey(
        Belief, on_delete=models.CASCADE, db_index=False, related_name="embeddings", related_query_name="embedding"
    )
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, null=True, related_name="+")
    user = models.CharField(max_length=200, blank=True, default="")
    is_active = models.BooleanField(default=True)
    model = models.CharField(max_length=100)
    vector = HalfVectorField(dimensions=DIMENSIONS)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["workspace", "model", "project", "user"],
                condition=Q(is_active=True),
                name="belief_vectors_of_scope",
            )
        ]

    def __str__(self) -> str:
        return self.belief_id


class BeliefAccess(models.Model):
    """B5: when a belief was recalled, and how slowly it fades: a narrow row, so that counting stays cheap."""

    belief = models.OneToOneField(Belief, on_delete=models.CASCADE, primary_key=True, related_name="access")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    accessed_at = models.DateTimeField(null=True)
    access_count = models.PositiveIntegerField(default=0)
    stability = models.FloatField(default=1.0)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(stability__gt=0), name="belief_stability_positive")]

    def __str__(self) -> str:
        return self.belief_id


class EvidenceKind(models.TextChoices):
    ORDINARY = "ordinary", "ordinary"
    CURATOR = "curator", "a curator's word"
    ANNOUNCED = "announced", "an announced change"
    ENDED = "ended", "the person concerned says that it holds no longer"
    ECHO = "echo", "echo of what was surfaced"


class Basis(models.TextChoices):
    """How a verdict was reached."""

    GUARD = "guard", "near-identical, and the polarity guard passed"
    MODEL = "model", "a model's verdict"
    SLOT = "slot", "slots, values and words of a claim, by rules"
    PERSON = "person", "a person's word"
    UNITED = "united", "two verdicts that clash, united by a merge"


class Evidence(models.Model):
    """B4: one verdict of one episode on one belief; the only source of the belief's confidence."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="evidence")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="evidence")
    verdict = models.CharField(max_length=11, choices=[(v, v.lower()) for v in EVIDENCE_VERDICTS])
    kind = models.CharField(max_length=9, choices=EvidenceKind.choices, default=EvidenceKind.ORDINARY)
    base_weight = models.FloatField(
        default=1.0, help_text="Before the origin's series: 0 echo, 1 ordinary, 3 announced, 5 curator."
    )
    is_founding = models.BooleanField(
        default=False, help_text="The belief was made of it, at birth or by a structural change."
    )
    basis = models.CharField(max_length=6, choices=Basis.choices)
    reason = models.TextField(blank=True, default="")
    claim = models.ForeignKey(
        "memory.Claim",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="evidence",
        help_text="That counts.",
    )
    cycle = models.ForeignKey("memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="evidence")
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    valid_at = models.DateTimeField(
        null=True, blank=True, help_text="When it is so, where its claim names another time than its episode's."
    )
    created_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "belief", "episode"], name="evidence_counts_once"),
            models.CheckConstraint(condition=Q(base_weight__gte=0), name="evidence_weight_not_negative"),
            models.CheckConstraint(condition=Q(verdict__in=EVIDENCE_VERDICTS), name="evidence_verdict_known"),
        ]
        triggers = [
            pgtrigger.ReadOnly(name="evidence_names_never_change", fields=["workspace", "belief", "episode", "kind"])
        ]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.verdict} {self.belief_id}"


class LineageKind(models.TextChoices):
    REVISION = "revision", "revision"
    SPLIT = "split", "split"
    MERGE = "merge", "merge"
    SUPERSESSION = "supersession", "supersession"
    SYNTHESIS = "synthesis", "synthesis"
    RETURN = "return", "return"


class Lineage(models.Model):
    """Which belief came from which; a merge has two parents."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    parent = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="children_lineage")
    child = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="parents_lineage")
    kind = models.CharField(max_length=12, choices=LineageKind.choices)
    reason = models.TextField(blank=True, default="")
    cycle = models.ForeignKey("memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="lineage")
    created_at = models.DateTimeField()

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "lineage"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "parent", "child", "kind"], name="lineage_stated_once"),
            models.CheckConstraint(condition=~Q(parent=F("child")), name="no_belief_is_its_own_parent"),
        ]

    def __str__(self) -> str:
        return f"{self.parent_id} → {self.child_id}"


class LinkKind(models.TextChoices):
    NEIGHBOUR = "neighbour", "near each other"
    SOURCE = "source", "made of it"
    DUPLICATE = "duplicate", "may say the same"


class LinkQuerySet(WorkspaceQuerySet):
    def touching(self, ids: list[str]) -> Self:
        """Keep the links from or to some beliefs: they are walked in either direction."""
        return self.filter(Q(belief__in=ids) | Q(other__in=ids))


class Link(models.Model):
    """R4: one belief is linked to another; of a belief about beliefs, `other` is what it was made of."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="links")
    other = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="links_here")
    kind = models.CharField(max_length=9, choices=LinkKind.choices, default=LinkKind.NEIGHBOUR)
    similarity = models.FloatField(help_text="On the reference scale, when it was made.")
    created_at = models.DateTimeField()

    objects = LinkQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["belief", "other", "kind"], name="beliefs_are_linked_once"),
            models.CheckConstraint(condition=~Q(belief=F("other")), name="no_belief_is_linked_to_itself"),
            models.CheckConstraint(condition=Q(kind__in=LinkKind.values), name="link_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.belief_id} – {self.other_id}"


class ContradictionState(models.TextChoices):
    OPEN = "open", "nobody was asked"
    CONTRADICTS = "contradicts", "a model finds that they contradict each other"
    COMPATIBLE = "compatible", "a model finds no contradiction"
    NEEDS_A_PERSON = "needs_a_person", "no model could tell"
    DISMISSED = "dismissed", "a curator wants to see it no more"


class ContradictionQuerySet(WorkspaceQuerySet):
    def standing(self) -> Self:
        """Keep the pairs of which both are believed: what was revised, split or merged takes its pairs along."""
        return self.filter(first__status=BeliefStatus.ACTIVE, second__status=BeliefStatus.ACTIVE)

    def suspected(self) -> Self:
        """Leave out the pairs that are only alike."""
        return self.exclude(state=ContradictionState.OPEN, rule="")

    def only_alike(self) -> Self:
        """Keep the pairs that nobody was asked about, and that contradict each other by no rule."""
        return self.filter(state=ContradictionState.OPEN, rule="")

    def unasked(self) -> Self:
        """Keep the pairs that nobody was asked about."""
        return self.filter(state=ContradictionState.OPEN)


class ContradictionCandidate(models.Model):
    """R11: two beliefs of one project, user and language that may contradict each other, by a rule or by likeness."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    first = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+", help_text="The lesser id.")
    second = models.ForeignKey(Belief, on_delete=models.CASCADE, related_name="+")
    similarity = models.FloatField(help_text="On the reference scale, when it was found.")
    state = models.CharField(max_length=14, choices=ContradictionState.choices, default=ContradictionState.OPEN)
    reason = models.TextField(blank=True, default="", help_text="The model's, or why no model could tell.")
    rule = models.CharField(
        max_length=200,
        blank=True,
        default="",
        help_text="By which rule both cannot hold; empty where they are only alike.",
    )
    checked_at = models.DateTimeField(null=True, blank=True)
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()

    objects = ContradictionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["first", "second"], name="beliefs_are_rivals_once"),
            models.CheckConstraint(condition=Q(first__lt=F("second")), name="rivals_are_in_order"),
            models.CheckConstraint(condition=Q(state__in=ContradictionState.values), name="rival_state_known"),
        ]
        indexes = [models.Index(fields=["workspace", "state", "-similarity"], name="rivals_by_state")]

    @property
    def why(self) -> str:
        """Say what whoever was asked said, else by which rule both cannot hold."""
        return self.reason or self.rule

    def __str__(self) -> str:
        return f"{self.first_id} and {self.second_id}: {self.state}"
