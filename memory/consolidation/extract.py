"""Step 1: lease new episodes, corrections first, embed those without a vector, and read their claims.

`extract_episodes` is the step. What cannot be embedded or read stays pending with its reason, and never stops the
rest.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, IntegerField, QuerySet, Value, When

from memory.claims import plan_claim_requests, read_episodes_into_claims, reader_of, store_model_claims
from memory.consolidation.cluster import select_announced_claims
from memory.consolidation.cycle import (
    TIME_SPENT,
    budget_policy,
    claim_attempt,
    enter_step,
    has_time_for_call,
    mark_budget_spent,
    renew_cycle,
    renew_unless_cancelled,
    seconds_left,
)
from memory.consolidation.episode_states import UNREAD, fail_unembedded, fail_unread, settle_echoes, weigh_turns
from memory.consolidation.jobs import dead_letter_broken, is_to_blame
from memory.consolidation.leases import keep_renewed
from memory.consolidation.model_calls import SERVER_BUSY, embed_with_retries
from memory.domain.identity import cycle_actor
from memory.domain.lifecycle import OWN_ERRORS, ConsolidationState, describe_own_error
from memory.domain.policy_consolidation import BudgetPolicy
from memory.domain.time_limits import holds_a_call, step_seconds
from memory.language.sentences import strip_echo
from memory.llm.call_log import CallBudget, CallScope, DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.embeddings import embedder_of
from memory.llm.registry import language_model
from memory.llm.replies import ClaimsReply
from memory.llm.requests import ClaimsRequest
from memory.llm.runner import FATAL_KINDS, FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.llm.types import CallFailed, Embedder, FailureKind
from memory.models import Claim, Cycle, CycleStep, Episode
from memory.models.episodes import EpisodeQuerySet
from memory.search.vectors import store_claim_vectors, store_episode_vectors
from memory.signals import is_shutting_down

log = structlog.get_logger(__name__)
EMBEDDING_BATCH = 256
_MAX_REFUSALS = 32  # enough to find one or two bad texts in a batch
_PROBE_TEXT = "The sky is blue."  # breaks no model that works at all


def extract_episodes(*, cycle_id: str, attempt: int) -> bool:
    """Lease new episodes for the cycle and embed those without a vector; false if the attempt must end here."""
    began = time.monotonic()
    with enter_step(cycle_id=cycle_id, attempt=attempt, name="extract", enter=claim_attempt) as step:
        if step is None:
            return False
        if not step.is_done:
            leased = _lease_new(cycle_id=cycle_id, workspace_id=step.cycle.workspace_id)
            step.counts = {"episodes": leased, "waiting": count_waiting_episodes(workspace_id=step.cycle.workspace_id)}
    _embed_leased(cycle=step.cycle, attempt=attempt)
    read_claims_of_leased(cycle=step.cycle, attempt=attempt, began=began)
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

        self._weigh([key for key, _ in batch])

    @transaction.atomic
    def _weigh(self, ids: Sequence[str]) -> None:
        """Weigh the turns among them that waited for their vectors (D5)."""
        actor = cycle_actor(self.cycle.pk)
        weigh_turns(workspace_id=self.cycle.workspace_id, ids=ids, actor=actor, now=self.cycle.now)

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


def read_claims_of_leased(*, cycle: Cycle, attempt: int, began: float) -> None:
    """Read the claims of the leased episodes that have a vector, and embed those that are not their whole text."""
    model = embedder_of(cycle.workspace_id)
    leased = Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle, embedding__model=model.name)
    leaves_speech = not language_model().is_offline
    with keep_renewed(lambda: renew_cycle(cycle_id=cycle.pk, attempt=attempt)):
        unread = list(leased.filter(read_at=None).order_by("occurred_at", "pk").values_list("pk", flat=True))
        for start in range(0, len(unread), EMBEDDING_BATCH):
            batch = unread[start : start + EMBEDDING_BATCH]
            broken = read_episodes_into_claims(episodes=batch, now=cycle.now, leaves_speech=leaves_speech)
            dead_letter_broken(cycle=cycle, reasons=broken)
        if leaves_speech:
            read_speech(cycle=cycle, attempt=attempt, episodes=leased.speech(), began=began)
        embed_claims(cycle=cycle, model=model)


def embed_claims(*, cycle: Cycle, model: Embedder) -> None:
    """Embed the claims that lack a vector of the workspace's model, while a server answers.

    Those of leased episodes, and those whose announced day has come.
    """
    of_workspace = Claim.objects.for_workspace(cycle.workspace_id)
    mine = of_workspace.evidence().filter(episode__leased_by=cycle, is_whole=False)
    mine |= of_workspace.filter(
        pk__in=select_announced_claims(workspace_id=cycle.workspace_id, now=cycle.now).values("pk")
    )
    blank = list(mine.exclude(embedding__model=model.name).values_list("pk", "sentence", "episode_id"))
    for start in range(0, len(blank), EMBEDDING_BATCH):
        batch = blank[start : start + EMBEDDING_BATCH]
        if not model.is_local and not has_time_for_call(cycle_id=cycle.pk):
            mark_budget_spent(cycle_id=cycle.pk, reason=TIME_SPENT)
            return
        try:
            vectors = embed_with_retries(
                scope=CallScope(workspace_id=cycle.workspace_id, cycle_id=cycle.pk),
                model=model,
                texts=[sentence for _, sentence, _ in batch],
                episodes=sorted({episode for _, _, episode in batch}),
            )
        except DailyCapReached as spent:
            mark_budget_spent(cycle_id=cycle.pk, reason=str(spent))
            return
        except CallFailed as failure:
            fail_unembedded(cycle=cycle, ids=[episode for _, _, episode in batch], kind=failure.kind)
            continue
        given = dict(zip([key for key, _, _ in batch], vectors, strict=True))
        store_claim_vectors(workspace_id=cycle.workspace_id, model=model.name, vectors=given)


# How a batch that failed is cut: a refusal comes at once, a timeout costs its whole time again for every part.
_PARTS_AFTER_FAILURE = {FailureKind.BAD_REQUEST: 2, FailureKind.TIMEOUT: 8}


def read_speech(*, cycle: Cycle, attempt: int, episodes: EpisodeQuerySet, began: float) -> None:
    """Read the unread among some leased episodes; `began` is the reading of time.monotonic() when the step did."""
    episodes = episodes.active()
    failed_before = episodes.filter(failures__gt=0, state_reason__startswith=UNREAD)
    requests = plan_claim_requests(
        workspace_id=cycle.workspace_id,
        episodes=episodes,
        now=cycle.now,
        alone=set(failed_before.values_list("pk", flat=True)),
    )
    asks = [ModelRequest(key=str(number), request=request) for number, request in enumerate(requests)]
    if asks:
        _ask_reader(cycle=cycle, attempt=attempt, asks=asks, began=began)


def _ask_reader(*, cycle: Cycle, attempt: int, asks: Sequence[ModelRequest], began: float) -> None:
    """Answer all asks, storing what each tells; whatever stops that is in the cycle's row by then."""
    of_cycle = seconds_left(cycle_id=cycle.pk)
    of_step = _seconds_left_in_step(began)
    try:
        failures = run_requests(
            asks=asks,
            scope=CallScope(workspace_id=cycle.workspace_id, cycle_id=cycle.pk),
            budget=CallBudget.of_step(seconds=min(of_cycle, of_step), policy=_reading_budget(asks)),
            model=language_model(),
            store=partial(_store_readings, cycle=cycle),
            fence=lambda: renew_unless_cancelled(cycle_id=cycle.pk, attempt=attempt),
        )
    except RetryLater:
        mark_budget_spent(cycle_id=cycle.pk, reason=SERVER_BUSY)
    except DailyCapReached as spent:
        mark_budget_spent(cycle_id=cycle.pk, reason=str(spent))
    except OutOfBudget:
        if of_cycle <= of_step and not is_shutting_down():
            mark_budget_spent(cycle_id=cycle.pk, reason=TIME_SPENT)
    except LeaseLost:
        return
    else:
        _fail_unread_speech(cycle, failures)


def _seconds_left_in_step(began: float) -> float:
    """Return the seconds that the step has left, so that its last call ends before its message comes again (B9)."""
    policy = budget_policy()
    return policy.last_call_seconds + policy.call_seconds - (time.monotonic() - began)


def _reading_budget(asks: Sequence[ModelRequest]) -> BudgetPolicy:
    """Return the budget of calls that read: longer ones, and attempts enough to corner a bad text in each batch."""
    policy = budget_policy()
    seconds = max(policy.call_seconds, settings.POLICY.reading.seconds)
    return replace(policy, call_seconds=seconds, call_attempts=policy.call_attempts * len(asks))


def _store_readings(answers: Sequence[ModelAnswer], *, cycle: Cycle) -> None:
    reader = reader_of(model_for=language_model().model_for)
    for answer in answers:
        if not isinstance(answer.request, ClaimsRequest) or not isinstance(answer.reply, ClaimsReply):
            raise TypeError(f"Claims were asked for, and {type(answer.reply).__name__} came.")
        store_model_claims(request=answer.request, reply=answer.reply, reader=reader, now=cycle.now)


def _fail_unread_speech(cycle: Cycle, failures: Sequence[FailedRequest]) -> None:
    """Mark what no model could read; one that failed alone is to blame for it, a refused key ends the cycle's calls."""
    for failure in failures:
        if failure.kind in FATAL_KINDS:
            mark_budget_spent(cycle_id=cycle.pk, reason=f"{UNREAD}{failure.kind}")
        ids = [message.id for message in failure.request.read] if isinstance(failure.request, ClaimsRequest) else []
        is_blamed = len(ids) == 1 and is_to_blame(cycle_id=cycle.pk, kind=failure.kind)
        fail_unread(cycle=cycle, ids=ids, kind=failure.kind, is_blamed=is_blamed)
