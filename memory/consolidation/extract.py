"""Step 1: lease new episodes, corrections first, and embed those without a vector.

`extract_episodes` is the step. What cannot be embedded stays pending with its reason, and never stops the rest.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import structlog
from django.conf import settings
from django.db.models import Case, IntegerField, QuerySet, Value, When

from memory.consolidation.cycle import (
    TIME_SPENT,
    budget_policy,
    claim_attempt,
    enter_step,
    has_time_for_call,
    mark_budget_spent,
    renew_cycle,
)
from memory.consolidation.episode_states import fail_unembedded, settle_echoes, weigh_turns
from memory.consolidation.jobs import dead_letter_broken
from memory.consolidation.leases import keep_renewed
from memory.consolidation.model_calls import embed_with_retries
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import OWN_ERRORS, ConsolidationState, describe_own_error
from memory.domain.time_limits import holds_a_call, step_seconds
from memory.language.sentences import strip_echo
from memory.llm.call_log import CallScope, DailyCapReached
from memory.llm.embeddings import embedder_of
from memory.llm.runner import FATAL_KINDS
from memory.llm.types import CallFailed, Embedder, FailureKind
from memory.models import Cycle, CycleStep, Episode
from memory.search.vectors import store_episode_vectors

log = structlog.get_logger(__name__)
EMBEDDING_BATCH = 256
_MAX_REFUSALS = 32  # enough to find one or two bad texts in a batch
_PROBE_TEXT = "The sky is blue."  # breaks no model that works at all


def extract_episodes(*, cycle_id: str, attempt: int) -> bool:
    """Lease new episodes for the cycle and embed those without a vector; false if the attempt must end here."""
    with enter_step(cycle_id=cycle_id, attempt=attempt, name="extract", enter=claim_attempt) as step:
        if step is None:
            return False
        if not step.is_done:
            leased = _lease_new(cycle_id=cycle_id, workspace_id=step.cycle.workspace_id)
            step.counts = {"episodes": leased, "waiting": count_waiting_episodes(workspace_id=step.cycle.workspace_id)}
    _embed_leased(cycle=step.cycle, attempt=attempt)
    return True


def _lease_new(*, cycle_id: str, workspace_id: int) -> int:
    ids = list(select_waiting_episodes(workspace_id=workspace_id, is_locking=True).values_list("pk", flat=True))
    return Episode.objects.filter(pk__in=ids).update(state=ConsolidationState.LEASED, leased_by=cycle_id)


def select_waiting_episodes(*, workspace_id: int, is_locking: bool = False) -> QuerySet[Episode]:
    """Select the new and failed episodes that a cycle takes up, corrections first (B8.1)."""
    waiting = (
        Episode.objects.for_workspace(workspace_id)
        .active()
        .filter(state__in=(ConsolidationState.NEW, ConsolidationState.FAILED), dead_at=None, is_derived=False)
    )
    sound_first = Case(When(failures=0, then=Value(0)), default=Value(1), output_field=IntegerField())
    corrections_first = Case(When(category="correction", then=Value(0)), default=Value(1), output_field=IntegerField())
    chosen = waiting.order_by(sound_first, corrections_first, "occurred_at", "content_hash", "origin")
    chosen = chosen.select_for_update(skip_locked=True) if is_locking else chosen
    return chosen[: settings.POLICY.consolidation.lease_episodes]


def count_waiting_episodes(*, workspace_id: int) -> int:
    """Count the episodes that wait for consolidation or are in it."""
    waiting: int = Episode.objects.for_workspace(workspace_id).pending().count()
    return waiting


def _embed_leased(*, cycle: Cycle, attempt: int) -> None:
    """Embed the leased episodes that have no vector of the workspace's model; those that fail stay pending so."""
    model = embedder_of(cycle.workspace_id)
    missing = Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle)
    blank = missing.exclude(embedding__model=model.name).order_by("failures", "occurred_at", "content_hash", "origin")
    rows = blank.values_list("pk", "text", "speaker")
    matters = _strip_texts(cycle, rows)
    settle_echoes(cycle=cycle, ids=[key for key, matter in matters.items() if not matter])
    waiting = [(key, matter) for key, matter in matters.items() if matter]
    with keep_renewed(lambda: renew_cycle(cycle_id=cycle.pk, attempt=attempt)):
        embedding = _EpisodeEmbedding(cycle=cycle, model=model)
        embedding.embed(waiting)
    if embedding.blamed:
        _note_blamed(cycle=cycle, blamed=embedding.blamed)


def _strip_texts(cycle: Cycle, rows: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return what counts of each text; one that breaks even that is set aside (E6)."""
    matters, broken = {}, {}
    for key, text, speaker in rows:
        try:
            matters[key] = strip_echo(text, speaker)
        except OWN_ERRORS as error:
            broken[key] = describe_own_error(error)
    dead_letter_broken(cycle=cycle, reasons=broken)
    return matters


def _note_blamed(*, cycle: Cycle, blamed: int) -> None:
    """Count with the step the episodes that came nearer to the dead letters in it: the cycle got that done (B11)."""
    step = CycleStep.objects.get(cycle=cycle, name="extract")
    step.counts = step.counts | {"blamed": step.counts.get("blamed", 0) + blamed}
    step.save(update_fields=["counts"])


class _EpisodeEmbedding:
    """The embedding of one cycle's episodes, batch by batch, for as long as a server answers."""

    def __init__(self, *, cycle: Cycle, model: Embedder) -> None:
        self.cycle, self.model, self.refused, self.blamed = cycle, model, 0, 0
        self.has_answered = model.is_local  # nothing but a text can be why a model of this machine gives no vector
        self.ends_at = time.monotonic() + step_seconds(budget=budget_policy())

    def seconds_left(self) -> float:
        """Return the seconds that the step has left: beyond them its task is ended."""
        return self.ends_at - time.monotonic()

    def embed(self, waiting: Sequence[StrippedText]) -> None:
        """Embed and store while there is time; what comes after a server's failure stays pending with it.

        What the step has no time for goes back, and the cycle goes on with what has its vectors.
        """
        batches = deque(_cut_batches(waiting, size=EMBEDDING_BATCH))
        while batches:
            if not self.model.is_local and not holds_a_call(seconds=self.seconds_left(), budget=budget_policy()):
                log.info("embedding_put_off", cycle=self.cycle.pk, episodes=sum(map(len, batches)))
                return
            if not self.model.is_local and not has_time_for_call(cycle_id=self.cycle.pk):
                mark_budget_spent(cycle_id=self.cycle.pk, reason=TIME_SPENT)
                return
            batch = batches.popleft()
            try:
                self._embed_batch(batch)
            except DailyCapReached as spent:
                mark_budget_spent(cycle_id=self.cycle.pk, reason=str(spent))
                return
            except CallFailed as failure:
                if not self._is_about_texts(batch, failure):
                    if failure.kind in FATAL_KINDS:
                        mark_budget_spent(cycle_id=self.cycle.pk, reason=f"embedding: {failure.kind}")
                    self._fail([*batch, *chain.from_iterable(batches)], failure)
                    return
                batches.extendleft(reversed(self._divide(batch, failure)))
            except OWN_ERRORS as error:
                batches.extendleft(reversed(self._corner(batch, error)))

    def _corner(self, batch: Sequence[StrippedText], error: Exception) -> list[Sequence[StrippedText]]:
        """Halve what our own code broke on; a text that breaks it alone, where others do not, is set aside (E6)."""
        log.exception("embedding_broke", cycle=self.cycle.pk, episodes=len(batch))
        if len(batch) > 1:
            return list(_cut_batches(batch, size=-(-len(batch) // 2)))
        if not self._is_well():
            raise error
        dead_letter_broken(cycle=self.cycle, reasons={batch[0][0]: describe_own_error(error)})
        return []

    def _embed_batch(self, batch: Sequence[StrippedText]) -> None:
        vectors = embed_with_retries(
            scope=CallScope(workspace_id=self.cycle.workspace_id, cycle_id=self.cycle.pk),
            model=self.model,
            texts=[text for _, text in batch],
            episodes=[key for key, _ in batch],
            seconds=self.seconds_left(),
        )
        self.has_answered = True
        store_episode_vectors(
            workspace_id=self.cycle.workspace_id,
            model=self.model.name,
            vectors={key: vector for (key, _), vector in zip(batch, vectors, strict=True)},
            chunked=[key for key, text in batch if self.model.is_overlong(text)],
        )
        weigh_turns(  # the turns among them that waited for their vectors (D5)
            workspace_id=self.cycle.workspace_id,
            ids=[key for key, _ in batch],
            actor=cycle_actor(self.cycle.pk),
            now=self.cycle.now,
        )

    def _is_about_texts(self, batch: Sequence[StrippedText], failure: CallFailed) -> bool:
        """Tell whether fewer texts may fare better; some servers refuse everything, and some are not there."""
        self.refused += 1
        if failure.kind not in _PARTS_AFTER_FAILURE or self.refused > _MAX_REFUSALS:
            return False
        return failure.kind is FailureKind.BAD_REQUEST or len(batch) > 1 or self.has_answered

    def _divide(self, batch: Sequence[StrippedText], failure: CallFailed) -> list[Sequence[StrippedText]]:
        """Cut a batch that failed into parts, so that one bad text takes none with it; one alone fails.

        However many are bad, each is found as long as the server takes the others.
        """
        if len(batch) == 1:
            is_blamed = self._is_well()
            self._fail(batch, failure, is_blamed=is_blamed)
            if is_blamed:
                self.refused, self.blamed = 0, self.blamed + 1
            return []
        return list(_cut_batches(batch, size=-(-len(batch) // _PARTS_AFTER_FAILURE[failure.kind])))

    def _is_well(self) -> bool:
        """Tell whether the server embeds at all; where only bad texts are left, a word of our own tells."""
        if not self.has_answered:
            try:
                scope = CallScope(workspace_id=self.cycle.workspace_id, cycle_id=self.cycle.pk)
                embed_with_retries(scope=scope, model=self.model, texts=[_PROBE_TEXT])
            except (CallFailed, DailyCapReached):
                return False
            self.has_answered = True
        return self.has_answered

    def _fail(self, batch: Sequence[StrippedText], failure: CallFailed, *, is_blamed: bool = False) -> None:
        ids = [key for key, _ in batch]
        fail_unembedded(cycle=self.cycle, ids=ids, kind=failure.kind, is_blamed=is_blamed)


StrippedText = tuple[str, str]  # an episode's id and what of its text counts


def _cut_batches(matters: Sequence[StrippedText], *, size: int) -> Iterator[Sequence[StrippedText]]:
    for start in range(0, len(matters), size):
        yield matters[start : start + size]


# How a batch that failed is cut: a refusal comes at once, a timeout costs its whole time again for every part.
_PARTS_AFTER_FAILURE = {FailureKind.BAD_REQUEST: 2, FailureKind.TIMEOUT: 8}
