"""R1, F5: remember a text, at once or by a worker: a reading of one message, with its answer.

`remember` stores the episode before anything else and starts its job; `run_remember_job` brings a job to its end: read
the text against what is believed, apply the reply, write down what it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.curation import settle_curated
from memory.consolidation.cycle import (
    BeliefsDisabled,
    budget_policy,
    check_beliefs_enabled,
    database_now,
    describe_pause,
    find_pause,
)
from memory.consolidation.leases import leased_stream
from memory.consolidation.read import name_reader
from memory.domain.identity import read_actor
from memory.domain.lifecycle import EpisodeStatus
from memory.domain.time_limits import ANSWER_SECONDS, holds_a_call, room_for_a_call, step_seconds
from memory.facts.job import (
    JobLease,
    NoModelAnswer,
    ask_model,
    embed_own_text,
    embed_texts,
    give_up,
    lease_job,
    longest_call,
)
from memory.facts.remembered_facts import (
    facts_of_evidence,
    facts_of_reading,
    link_new_beliefs,
    list_unmatched_facts,
    match_late_vector,
)
from memory.ingest.schemas import IngestContext, Rejected, Stored
from memory.ingest.store import store_raw_episodes
from memory.ledger.beliefs import EmbeddingUnavailable
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.transactions import Author, NotFound, lock_workspace
from memory.llm.call_log import CallBudget, DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.embeddings import embedder_of
from memory.llm.reader import reader
from memory.llm.registry import language_model
from memory.llm.replies import NewStatement, Reading
from memory.llm.requests import ReadingRequest
from memory.llm.types import FailureKind
from memory.models import Episode, RememberedFact, RememberJob, RememberJobState, Source, Workspace
from memory.models.conversations import REASON_REMEMBERED
from memory.reading.apply import AnsweredReading, apply_reading, compare_statements
from memory.reading.messages import build_request, stream_of
from memory.search.vectors import Vectors
from memory.signals import is_shutting_down, remembrance_ready
from memory.text.quotes import quote
from memory.text.words import is_question

log = structlog.get_logger(__name__)
QUOTED = "the text as it stands"  # the reader of what no model could read
_NO_BELIEFS = "the workspace keeps no beliefs"
_WITHOUT_VECTOR = "the embedding model does not answer"
_ASKED_TO_WAIT = "a model server asked to wait"
_CHANGED_MEANWHILE = "what it was read with changed meanwhile"
_STREAM_BUSY = "other messages of the same person are being read"
_STREAM_PAUSE = 1.0  # seconds until a worker looks again whether somebody still reads its stream
_OF_AN_ASSISTANT = "an assistant asserts nothing of its user"
_DERIVED = "what is derived is no evidence"
_UNREADABLE = "no reply could be read, and the text is no statement as it stands"
_FORGOTTEN = "forgotten"


def remember(*, line: Mapping[str, object], arrival: IngestContext) -> Remembered | Rejected:
    """Store a text as an episode and read it against what is believed; the same text again changes nothing more.

    With no model to ask now, the answer is *queued*, and a worker goes on.
    """
    with transaction.atomic():
        [outcome] = store_raw_episodes(raw_lines=[dict(line)], arrival=arrival)
        if isinstance(outcome, Rejected):
            return outcome
        remembrance = _ensure_job(outcome, arrival)
    if remembrance and remembrance.state == RememberJobState.QUEUED:
        _start_job(remembrance, arrival)
    return _answer(outcome, remembrance)


LONGER_THAN_ANSWERS = f"a call may take longer than an answer waits ({ANSWER_SECONDS}): a worker goes on"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefAction:
    """What a remembered text did to one belief: created, reinforced, weakened or superseded."""

    id: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The episode that stands for a text, how far it has come, and what it did to beliefs by now."""

    episode_id: str
    state: str
    beliefs: tuple[BeliefAction, ...]
    is_duplicate: bool
    is_forgotten: bool
    reason: str = ""  # why beliefs are still to come, where something stands in their way


def _start_job(remembrance: RememberJob, arrival: IngestContext) -> None:
    """Work while the caller waits, or tell a worker: also where a call may take longer than a caller waits."""
    seconds = settings.POLICY.remember.answer_seconds
    if Episode.objects.filter(pk=remembrance.episode_id, read_at__isnull=False).exists():
        _try_now(remembrance, arrival.now, seconds)  # a cycle has read it: no model is asked
    elif not may_ask_now(workspace=arrival.workspace):
        _wake_worker(remembrance.pk)
    elif holds_a_call(seconds=seconds, budget=settings.POLICY.budget):
        _try_now(remembrance, arrival.now, seconds)
    else:
        RememberJob.objects.queued().filter(pk=remembrance.pk, state_reason="").update(state_reason=LONGER_THAN_ANSWERS)
        remembrance.refresh_from_db(fields=["state", "state_reason"])
        _wake_worker(remembrance.pk)


def _try_now(remembrance: RememberJob, now: datetime, seconds: float) -> None:
    """Work for so long; whatever fails, the text is stored, and the sweeper comes back to it."""
    try:
        run_remember_job(remembrance_id=remembrance.pk, now=now, seconds=seconds)
    except Exception:
        log.exception("remembering_failed", remembrance=remembrance.pk)
    remembrance.refresh_from_db(fields=["state", "state_reason"])


def may_ask_now(*, workspace: Workspace) -> bool:
    """Tell whether to ask while a caller waits: not where this machine reads, nor where a workspace rests."""
    return not language_model().is_offline and find_pause(workspace=workspace) is None


def _ensure_job(outcome: Stored, arrival: IngestContext) -> RememberJob | None:
    """Note that an episode is to be read, once; nothing is wanted of what was forgotten."""
    if outcome.is_forgotten or not arrival.workspace.keeps_beliefs:
        return None
    remembrance, _ = RememberJob.objects.get_or_create(
        episode_id=outcome.id,
        defaults={
            "workspace": arrival.workspace,
            "actor": str(arrival.actor),
            "is_limited": arrival.allowed_projects is not None,
            "created_at": arrival.now,
            "due_at": database_now(plus=settings.POLICY.remember.resend_seconds),
        },
    )
    return remembrance


def _wake_worker(remembrance_id: int) -> None:
    remembrance_ready.send(sender=RememberJob, remembrance_id=remembrance_id)


def _answer(outcome: Stored, remembrance: RememberJob | None) -> Remembered:
    return Remembered(
        episode_id=outcome.id,
        state=RememberJobState.QUEUED if remembrance and _is_unfinished(remembrance) else RememberJobState.DONE,
        beliefs=actions_of(remembrance=remembrance) if remembrance else (),
        is_duplicate=outcome.is_duplicate,
        is_forgotten=outcome.is_forgotten,
        reason=_reason_of(remembrance) if remembrance and _is_unfinished(remembrance) else "",
    )


def _reason_of(remembrance: RememberJob) -> str:
    """Say why a text waits, or was left to consolidation; what a server said of it is for people who run this alone."""
    kind = remembrance.state_reason.partition(":")[0]
    reason = f"no model answers ({kind})" if kind in set(FailureKind) else remembrance.state_reason
    return f"left to consolidation: {reason}" if remembrance.state == RememberJobState.FAILED else reason


def _is_unfinished(remembrance: RememberJob) -> bool:
    """Tell whether beliefs may still follow: of what failed they do by consolidation."""
    return remembrance.state != RememberJobState.DONE


def actions_of(*, remembrance: RememberJob) -> tuple[BeliefAction, ...]:
    """List what a remembered text did to beliefs, each belief once, in the order of its facts."""
    actions: dict[str, str] = {}
    for fact in remembrance.facts.all():
        if fact.belief_id:
            actions.setdefault(fact.belief_id, fact.outcome)
        if fact.rival_id:
            actions.setdefault(fact.rival_id, fact.rival_outcome)
    return tuple(BeliefAction(id=key, action=action) for key, action in actions.items())


def run_remember_job(*, remembrance_id: int, now: datetime, seconds: float | None = None) -> None:
    """Bring a remembrance to its end, unless somebody else works on it; what stops it is written down, and waits.

    A worker has the time of any step; a caller who waits gives it so many seconds.
    """
    with lease_job(remembrance_id=remembrance_id) as hold:
        if hold is None:
            return
        if pause := find_pause(workspace=hold.remembrance.workspace):
            hold.postpone(seconds=settings.POLICY.remember.resend_seconds, reason=describe_pause(pause))
            return
        _run_leased(hold, now, seconds)


def _run_leased(hold: JobLease, now: datetime, seconds: float | None) -> None:
    policy, is_worker = settings.POLICY.remember, seconds is None
    usual = budget_policy()
    limits = replace(usual, call_seconds=longest_call(is_worker=is_worker)[0])
    seconds = step_seconds(budget=usual) if seconds is None else seconds
    budget = CallBudget.of_step(seconds=seconds, policy=limits)
    patience = 0.0 if is_worker else max(seconds - room_for_a_call(budget=limits), 0.0)
    try:
        if facts := list_unmatched_facts(job=hold.remembrance):
            _match_late(hold, facts, now)
        else:
            _read_text(hold, budget, now, patience=patience)
    except DailyCapReached as spent:
        hold.postpone(seconds=policy.cap_seconds, reason=str(spent))
    except RetryLater as wait:
        hold.postpone(seconds=wait.seconds, reason=_ASKED_TO_WAIT)
    except (OutOfBudget, NoModelAnswer) as failed:
        _postpone(hold, failed, is_worker=is_worker)
    except EmbeddingUnavailable as moved:
        hold.postpone(seconds=0.0, reason=str(moved), is_failure=True)
    except NotFound:
        hold.postpone(seconds=0.0, reason=_CHANGED_MEANWHILE)
    except BeliefsDisabled:
        give_up(remembrance=hold.remembrance, reason=_NO_BELIEFS)
    except NothingToQuote:
        give_up(remembrance=hold.remembrance, reason=_UNREADABLE)
    except AssertsNothing as nothing:
        _finish(hold, now, reason=str(nothing))
    except LeaseLost:
        log.info("remembrance_taken_over", remembrance=hold.remembrance.pk)


class AssertsNothing(Exception):
    """A text of which nothing is to be believed; the message says why."""


class NothingToQuote(Exception):
    """A text that no model could read, and too long, or too empty, to be a statement as it stands."""


def _read_text(hold: JobLease, budget: CallBudget, now: datetime, *, patience: float) -> None:
    """Read a text alone of its stream, and apply what it says; wait for others who read there, but not for long."""
    episode = hold.remembrance.episode
    with leased_stream(workspace_id=episode.workspace_id, name=stream_of(episode), wait=patience) as is_ours:
        if not is_ours:
            hold.postpone(seconds=_STREAM_PAUSE, reason=_STREAM_BUSY)
            return
        episode.refresh_from_db(fields=["status", "read_at"])  # that may have taken a while
        check_asserts_something(episode=episode)
        answered = None if episode.read_at else ask_for_reading(hold=hold, budget=budget, now=now)
        if answered is not None:
            compare_statements(answered=answered)
        _apply(hold, answered, now)


def check_asserts_something(*, episode: Episode) -> None:
    """Raise AssertsNothing for a text that was withdrawn meanwhile, a summary, and an assistant's words to its user."""
    if episode.status in WITHDRAWN_STATUSES:
        raise AssertsNothing(_FORGOTTEN)
    if episode.status != EpisodeStatus.ACTIVE:
        raise AssertsNothing(f"the text is {episode.status}")
    if episode.is_derived:
        raise AssertsNothing(_DERIVED)
    if episode.source == Source.AI and episode.user:
        raise AssertsNothing(_OF_AN_ASSISTANT)


def ask_for_reading(*, hold: JobLease, budget: CallBudget, now: datetime) -> AnsweredReading | None:
    """Return the reading of a text with its statements' vectors, if such can be had; None for our own words alone.

    Raises NoModelAnswer, NothingToQuote, or what stops calls: RetryLater, OutOfBudget, LeaseLost.
    """
    episode = hold.remembrance.episode
    own = embed_own_text(episode=episode)
    request = build_request(
        messages=[episode], now=now, is_to_be_remembered=True, with_global=not hold.remembrance.is_limited
    )
    if request is None:
        return None
    heard = ask_model(hold=hold, budget=budget, request=request)
    reply, reader = heard.reply, name_reader()
    if not isinstance(reply, Reading):  # nobody compared it with what is believed: vectors will
        request = replace(request, beliefs=())
        reply, reader = _quote_text(request), QUOTED
    return AnsweredReading(
        request=request,
        reply=reply,
        reader=reader,
        call_id=heard.call_id,
        model=embedder_of(episode.workspace_id).name,
        vectors=_embed_statements(request, reply, own, episode),
    )


def _quote_text(request: ReadingRequest) -> Reading:
    """Return the text itself as what was said: what is to be remembered is not lost; a question says nothing.

    Raises NothingToQuote for a long text: it stays unread, so that a cycle reads it.
    """
    [message] = request.read
    if is_question(message.text):
        return Reading()
    try:
        said = NewStatement(m=1, statement=quote(request.person, message.text), subject=request.person)
    except ValueError as error:  # too long, or nothing
        raise NothingToQuote from error
    return Reading.model_validate({"new": [said.model_dump(mode="json")]})


def _embed_statements(
    request: ReadingRequest, reply: Reading, own: Vectors | None, episode: Episode
) -> dict[str, Vectors]:
    """Return the vectors of a reply's statements by their words; none where the text itself got none just now."""
    if own is None:
        return {}
    [message] = request.read
    statements = dict.fromkeys(line.statement for line in reply.new if line is not None)
    others = [statement for statement in statements if statement != message.text]
    return {message.text: own} | embed_texts(texts=others, episode=episode)


@transaction.atomic
def _apply(hold: JobLease, answered: AnsweredReading | None, now: datetime) -> None:
    """Apply a reading and end the job; without one the text was read before, or holds nothing but our own words.

    Raises LeaseLost, AssertsNothing, BeliefsDisabled, NotFound, or EmbeddingUnavailable where the workspace moved to
    another embedding model.
    """
    _lock_job(hold)
    job = hold.remembrance
    check_asserts_something(episode=job.episode)
    if answered is None or job.episode.read_at:
        rows = facts_of_evidence(job=job)
    else:
        applied = apply_reading(answered=answered, author=_author_of(hold, now))
        if not Episode.objects.filter(pk=job.episode_id, read_at__isnull=False).exists():
            hold.postpone(seconds=0.0, reason=_CHANGED_MEANWHILE)
            return
        rows = facts_of_reading(job=job, answered=answered, applied=applied)
        link_new_beliefs(job=job, applied=applied, now=now)
    RememberedFact.objects.bulk_create(rows)
    settle_curated(episodes=[job.episode_id])
    if any(row.is_unmatched for row in rows):
        hold.postpone(seconds=hold.next_pause(), reason=_WITHOUT_VECTOR)
    else:
        _finish(hold, now)
    log.info("remembered", episode=job.episode_id, outcomes=[str(row.outcome) for row in rows])


def _author_of(hold: JobLease, now: datetime) -> Author:
    return Author(actor=read_actor(hold.remembrance.actor), reason=REASON_REMEMBERED, now=now)


def _match_late(hold: JobLease, facts: Sequence[RememberedFact], now: datetime) -> None:
    """Embed what waits, and compare the beliefs that were made without a vector, all or none; end the job."""
    job = hold.remembrance
    if job.episode.status not in WITHDRAWN_STATUSES:
        embed_own_text(episode=job.episode)
    vectors = embed_texts(texts=list({fact.text for fact in facts}), episode=job.episode)
    if not vectors:
        raise NoModelAnswer("no vectors")
    model = embedder_of(job.workspace_id).name
    reader().load()  # nobody waits for that under the lock
    with transaction.atomic():
        _lock_job(hold)
        for fact in list_unmatched_facts(job=job):
            match_late_vector(job=job, fact=fact, vector=vectors[fact.text], model=model, author=_author_of(hold, now))
        _finish(hold, now)


def _postpone(hold: JobLease, failed: OutOfBudget | NoModelAnswer, *, is_worker: bool) -> None:
    """Let a text wait whose model did not answer, ever longer; a worker that is told to end is nobody's failure."""
    if isinstance(failed, OutOfBudget) and is_shutting_down():
        hold.postpone(seconds=0.0, reason=str(failed))
    elif failed.is_slow:
        hold.put_off_slow(is_worker=is_worker)
    else:
        hold.postpone(seconds=hold.next_pause(), reason=str(failed), is_failure=True)


def _lock_job(hold: JobLease) -> None:
    """Keep gates and other readings from the workspace's beliefs, and see the text as it stands, until the end."""
    lock_workspace(hold.remembrance.workspace_id)
    check_beliefs_enabled(workspace_id=hold.remembrance.workspace_id)
    if not hold.held.select_for_update(no_key=True).exists():
        raise LeaseLost
    locked = Episode.objects.select_for_update(no_key=True)
    hold.remembrance.episode = locked.get(pk=hold.remembrance.episode_id)


def _finish(hold: JobLease, now: datetime, *, reason: str = "") -> None:
    hold.held.update(state=RememberJobState.DONE, state_reason=reason, done_at=now, failures=0)
