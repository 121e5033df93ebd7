"""Conversations with their buffered turns, and texts that are to be remembered at once with the facts found in them."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from memory.domain.lifecycle import EpisodeStatus, TurnState
from memory.domain.taxonomy import Role
from memory.language.explicit_requests import Signal
from memory.models.beliefs import Belief, FactType
from memory.models.episodes import Episode
from memory.models.fields import choices_of
from memory.models.leases import Leased, LeasedQuerySet, Postponable, PostponableQuerySet
from memory.models.tenancy import Project, Workspace, WorkspaceQuerySet

WAITING_STATES = (TurnState.BUFFERED, TurnState.LEASED)


class ConversationQuerySet(PostponableQuerySet):
    def due(self) -> Self:
        """Keep those that something wants to be read now, and those whose reading was broken off."""
        return self.filter(Q(due_since__isnull=False) | Q(leased__gt=0))

    def wanted(self) -> Self:
        """Keep those that are due, and those that may be summed up by now."""
        return self.filter(Q(due_since__isnull=False) | Q(leased__gt=0) | Q(sum_due_at__lte=Now()))


class Conversation(Postponable):
    """A session of a project and a user; it is leased as a whole, so that its turns are read in their order."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="conversations")
    project = models.ForeignKey(Project, on_delete=models.RESTRICT, null=True, blank=True, related_name="conversations")
    user = models.CharField(max_length=200, blank=True, default="")
    session = models.CharField(max_length=200)
    created_at = models.DateTimeField(help_text="When its first turn was stored.")
    last_turn_at = models.DateTimeField(help_text="When its newest turn was stored.")
    turn_count = models.PositiveIntegerField(db_default=0, help_text="All its turns; the newest one's number.")
    buffered = models.PositiveIntegerField(db_default=0, help_text="Turns that wait to be read.")
    leased = models.PositiveIntegerField(db_default=0, help_text="Turns that are being read, or will be read again.")

    extracted_at = models.DateTimeField(null=True, blank=True, help_text="Domain time of its last extraction.")
    extraction_count = models.PositiveIntegerField(db_default=0)
    extraction_seconds = models.FloatField(db_default=0.0, help_text="What all its extractions took together.")
    due_since = models.DateTimeField(
        null=True, blank=True, help_text="Since when something wants it read; by the database's clock, as all below."
    )
    due_reason = models.CharField(max_length=100, blank=True, db_default="", help_text="What that is.")
    sent_at = models.DateTimeField(null=True, blank=True, help_text="When workers were told; none has come yet.")
    summed_up = models.PositiveIntegerField(db_default=0, help_text="The last turn that is summed up, or was let be.")
    sum_due_at = models.DateTimeField(null=True, blank=True, help_text="When it is looked what can be summed up.")
    sum_tries = models.PositiveIntegerField(db_default=0, help_text="Failures of the next summary.")

    objects = ConversationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "session", "user", "project"],
                name="one_conversation_per_session",
                nulls_distinct=False,
            ),
            models.CheckConstraint(condition=~Q(session=""), name="conversation_has_a_session"),
            models.CheckConstraint(
                condition=Q(due_since__isnull=True) | Q(buffered__gt=0), name="due_conversation_has_turns"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-last_turn_at"], name="conversation_newest"),
            models.Index(
                fields=["workspace"], condition=Q(due_since__isnull=False) | Q(leased__gt=0), name="conversation_due"
            ),
            models.Index(fields=["workspace"], condition=Q(buffered__gt=0), name="conversation_buffered"),
            models.Index(fields=["sum_due_at"], condition=Q(sum_due_at__isnull=False), name="conversation_sum_due"),
        ]

    def __str__(self) -> str:
        return self.session


class ReadingStream(Leased):
    """F2: whose messages are read one batch after the other: a user's, or those of a project that name no user.

    Whoever reads holds the row: a cycle, a flush of turns, a text that is to be remembered.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=220)

    objects = LeasedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_stream_per_name")]

    def __str__(self) -> str:
        return self.name


class TurnQuerySet(WorkspaceQuerySet):
    def waiting(self) -> Self:
        """Keep the turns that nobody has read yet."""
        return self.filter(state__in=WAITING_STATES)

    def tellable(self) -> Self:
        """Keep the turns of which nothing was forgotten since: neither their own words nor a fact; summaries apart."""
        own = TurnEpisode.objects.filter(turn=OuterRef("pk"), episode__is_derived=False)
        return self.filter(~Exists(own.filter(episode__status=EpisodeStatus.FORGOTTEN)))

    def dead(self) -> Self:
        """Keep the dead letters: turns that could not be read so often that they wait for a person."""
        return self.filter(state=TurnState.FAILED)


class Turn(models.Model):
    """What one side of a conversation said, redacted; its role is kept, for a model's word is not its user's."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="turns")
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns", db_index=False)
    number = models.PositiveIntegerField(help_text="Its place in the conversation, in the order of storing.")
    turn_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001  (unique where given)
    role = models.CharField(max_length=9, choices=choices_of(Role))
    speaker = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    line_hash = models.CharField(max_length=64, help_text="Of the whole line, redacted.")
    signal = models.CharField(max_length=6, choices=choices_of(Signal), default=Signal.NONE)
    surprise = models.FloatField(null=True, blank=True, help_text="1 − the mean similarity of what is nearest to it.")
    state = models.CharField(max_length=9, choices=choices_of(TurnState), default=TurnState.BUFFERED)
    state_reason = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField(help_text="The time of storing.")
    occurred_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True, help_text="Domain time at which it was done with.")
    episodes: models.ManyToManyField[Episode, TurnEpisode] = models.ManyToManyField(
        Episode, through="TurnEpisode", related_name="turns"
    )

    objects = TurnQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="one_turn_per_number"),
            models.UniqueConstraint(fields=["conversation", "turn_id"], name="one_turn_per_turn_id"),
            models.CheckConstraint(condition=Q(role__in=list(Role)), name="turn_role_known"),
            models.CheckConstraint(condition=Q(signal__in=list(Signal)), name="turn_signal_known"),
            models.CheckConstraint(condition=Q(state__in=list(TurnState)), name="turn_state_known"),
            models.CheckConstraint(condition=~Q(content=""), name="turn_has_content"),
        ]
        indexes = [
            models.Index(fields=["conversation", "number"], condition=Q(state__in=WAITING_STATES), name="turn_waiting"),
            models.Index(fields=["workspace", "-settled_at"], condition=Q(state=TurnState.FAILED), name="turn_dead"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.number}"


class TurnEpisode(models.Model):
    """Which episodes came of a turn, so that erasing one finds the words it came of."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="+", db_index=False)
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="+")
    is_verbatim = models.BooleanField(
        default=False, db_default=False, help_text="It is the turn in its own words, not a fact or a summary of it."
    )

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn", "episode"], name="turn_told_episode_once")]

    def __str__(self) -> str:
        return f"{self.turn_id} told {self.episode_id}"


# Why beliefs change on the direct path, and in particular their status and lineage. The model's own reason stands with
# the evidence, from where erasing an episode takes it away (B19); what came in another belief's place for one of the
# last two does not quote that one.
REASON_REMEMBERED = "remembered"
REASON_CONTRADICTED = "contradicted by what was remembered"
REASON_EQUIVALENT = "it says what another belief says"
REASON_BACKFILLED = "subject read off the statement"  # why a belief got one that came without (R13)


class RememberJobState(models.TextChoices):
    QUEUED = "queued", "waits for a model"
    DONE = "done", "done"
    FAILED = "failed", "left to consolidation"


class RememberJobQuerySet(LeasedQuerySet):
    def queued(self) -> Self:
        """Keep what has not come to its end."""
        return self.filter(state=RememberJobState.QUEUED)

    def failed(self) -> Self:
        """Keep what was left to consolidation."""
        return self.filter(state=RememberJobState.FAILED)

    def due(self) -> Self:
        """Keep what waits, is free, and is to be sent again by now."""
        return self.queued().free().filter(due_at__lte=Now())


class RememberJob(Leased):
    """R1: an episode whose facts become beliefs without waiting for a cycle."""

    episode = models.OneToOneField(Episode, on_delete=models.CASCADE, related_name="remembrance")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    actor = models.CharField(max_length=200, help_text="Who had it remembered.")
    is_limited = models.BooleanField(default=False, help_text="By a key limited to projects: global beliefs stay.")
    state = models.CharField(max_length=6, choices=RememberJobState.choices, default=RememberJobState.QUEUED)
    created_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True, help_text="Domain time.")
    due_at = models.DateTimeField(db_default=Now(), help_text="When the sweeper sends it, unless it is done by then.")
    failures = models.PositiveIntegerField(default=0, help_text="Tries in a row that brought no answer.")

    objects = RememberJobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=RememberJobState.values), name="remembrance_state_known")
        ]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="queued"), name="remembrance_due")]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.state}"


class FactOutcome(models.TextChoices):
    CREATED = "created", "a new belief"
    REINFORCED = "reinforced", "it bears out a belief"
    SUPPRESSED = "suppressed", "a person put away what says the same"
    REFUSED = "refused", "it claims nothing"
    HEARD = "heard", "kept as a claim that founds nothing"


class RivalOutcome(models.TextChoices):
    WEAKENED = "weakened", "contradicted, and lives on"
    SUPERSEDED = "superseded", "contradicted, and invalidated"


class RememberedFact(models.Model):
    """One fact of a remembered text, and what became of it; it goes with the belief that says it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    remembrance = models.ForeignKey(RememberJob, on_delete=models.CASCADE, related_name="facts")
    number = models.PositiveSmallIntegerField()
    text = models.TextField()
    fact_type = models.CharField(max_length=13, choices=FactType.choices, default=FactType.FACTUAL)
    importance = models.PositiveSmallIntegerField(default=5)
    subject = models.CharField(max_length=200, blank=True, default="")
    outcome = models.CharField(max_length=10, choices=FactOutcome.choices)
    belief = models.ForeignKey(Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    rival = models.ForeignKey(
        Belief, on_delete=models.CASCADE, null=True, blank=True, related_name="+", help_text="What it contradicts."
    )
    rival_outcome = models.CharField(max_length=10, choices=RivalOutcome.choices, blank=True, default="")
    is_unmatched = models.BooleanField(default=False, help_text="Its belief waits for a vector, to be compared then.")
    asked_about = ArrayField(
        models.CharField(max_length=15), default=list, blank=True, help_text="Beliefs that it might have contradicted."
    )
    call = models.ForeignKey("memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    contradiction_call = models.ForeignKey(
        "memory.ModelCall", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["remembrance", "number"], name="one_fact_per_number"),
            models.CheckConstraint(condition=Q(importance__range=(1, 10)), name="fact_importance_in_1_10"),
            models.CheckConstraint(condition=Q(outcome__in=FactOutcome.values), name="fact_outcome_known"),
        ]
        indexes = [models.Index(fields=["workspace"], condition=Q(is_unmatched=True), name="fact_unmatched")]
        ordering = ("number",)

    def __str__(self) -> str:
        return self.text[:80]
