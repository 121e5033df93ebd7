"""R1: remember a text, at once or by a worker.

`remember` stores the episode before anything else and starts its job; `run_remember_job` brings a job to its end: read
the text's facts, match them with what is believed, ask a model about contradictions as they come up, write the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import zip_longest

import structlog
from django.conf import settings
from django.db import transaction

from memory.claims import (
    is_speech,
    plan_claim_requests,
    read_episodes_into_claims,
    reader_of,
    store_model_claims,
    store_own_words,
)
from memory.consolidation.curation import settle_curated
from memory.consolidation.cycle import (
    BeliefsDisabled,
    budget_policy,
    check_beliefs_enabled,
    database_now,
    describe_pause,
    find_pause,
)
from memory.domain.lifecycle import BeliefStatus
from memory.domain.policy_memories import RememberPolicy
from memory.domain.time_limits import ANSWER_SECONDS, holds_a_call, step_seconds
from memory.facts.fact_matching import (
    ContradictionQuestion,
    FactMatcher,
    NeedsRuling,
    ReadFact,
    Ruling,
    embed_unmatched_facts,
    list_unmatched_facts,
    match_late_vector,
)
from memory.facts.job import (
    JobLease,
    NoModelAnswer,
    as_episode_text,
    ask_model,
    begin_own_vector,
    collapse_spaces,
    embed_texts,
    give_up,
    lease_job,
)
from memory.ingest.schemas import IngestContext, Rejected, Stored
from memory.ingest.store import store_raw_episodes
from memory.language.explicit_requests import find_request
from memory.language.facts import OWNER, FactToRemember, clamp_fact, distinct_facts, whole_text_as_fact
from memory.language.sentences import strip_echo
from memory.language.third_person import name_of_user
from memory.ledger.beliefs import EmbeddingUnavailable
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.transactions import NotFound, lock_workspace
from memory.llm.call_log import CallBudget, DailyCapReached, LeaseLost, OutOfBudget, RetryLater
from memory.llm.embeddings import embedder_of
from memory.llm.registry import language_model
from memory.llm.replies import ClaimsReply, Contradiction, StatedFacts
from memory.llm.requests import ContradictionRequest, RememberRequest
from memory.llm.types import FailureKind
from memory.models import (
    Claim,
    Episode,
    FactType,
    Lineage,
    LineageKind,
    RememberedFact,
    RememberJob,
    RememberJobState,
    RivalOutcome,
    Workspace,
)
from memory.models.conversations import REASON_CONTRADICTED
from memory.search.vectors import Vectors
from memory.signals import is_shutting_down, remembrance_ready

log = structlog.get_logger(__name__)
_SUBJECT_LENGTH = 200
_NO_BELIEFS = "the workspace keeps no beliefs"
_WITHOUT_VECTOR = "the embedding model does not answer"
_ASKED_TO_WAIT = "a model server asked to wait"
_CHANGED_TOO_OFTEN = "what is believed changed while it was compared"
_FORGOTTEN = "forgotten"
_ROUNDS_PER_FACT = 4  # of asking: each fact once, and once more where somebody else was faster


def remember(*, line: Mapping[str, object], arrival: IngestContext) -> Remembered | Rejected:
    """Store a text as an episode, and let its facts meet what is believed; the same text again changes nothing more.

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
    if not may_ask_now(workspace=arrival.workspace):
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
    """Tell whether a model is worth asking while a caller waits: none is where rules answer, or a workspace rests."""
    return not language_model().is_offline and find_pause(workspace=workspace) is None


def _ensure_job(outcome: Stored, arrival: IngestContext) -> RememberJob | None:
    """Note that an episode's facts are wanted, once; nothing is wanted of what was forgotten."""
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
    """List what a remembrance did to beliefs, each belief once, in the order of its facts."""
    actions: dict[str, str] = {}
    for fact in remembrance.facts.all():
        if fact.belief_id:
            actions.setdefault(fact.belief_id, fact.outcome)
        if fact.rival_id:
            actions.setdefault(fact.rival_id, fact.rival_outcome)
            for key, outcome in _other_contradicted(fact):
                actions.setdefault(key, outcome)
    return tuple(BeliefAction(id=key, action=action) for key, action in actions.items())


def _other_contradicted(fact: RememberedFact) -> Iterator[tuple[str, RivalOutcome]]:
    """Yield what else a fact contradicts than the belief that its row names, which the lineage tells."""
    superseded = Lineage.objects.filter(child=fact.belief_id, kind=LineageKind.SUPERSESSION, reason=REASON_CONTRADICTED)
    others = superseded.exclude(parent=fact.rival_id).order_by("pk")
    for parent, status in others.values_list("parent", "parent__status"):
        is_over = status in (BeliefStatus.CHALLENGED, BeliefStatus.INVALIDATED)
        yield parent, RivalOutcome.SUPERSEDED if is_over else RivalOutcome.WEAKENED


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
    seconds = step_seconds(budget=budget_policy()) if seconds is None else seconds
    budget = CallBudget.of_step(seconds=seconds, policy=budget_policy())
    try:
        if facts := list_unmatched_facts(hold=hold):
            _match_late_facts(hold, budget, facts, now)
        else:
            check_not_forgotten(episode=hold.remembrance.episode)
            reading = read_text(hold=hold, budget=budget)
            _match_facts(hold, budget, len(reading.facts), partial(apply_reading, hold=hold, reading=reading, now=now))
    except DailyCapReached as spent:
        hold.postpone(seconds=policy.cap_seconds, reason=str(spent))
    except RetryLater as wait:
        hold.postpone(seconds=wait.seconds, reason=_ASKED_TO_WAIT)
    except (OutOfBudget, NoModelAnswer) as failed:
        _postpone(hold, failed, is_worker=is_worker)
    except EmbeddingUnavailable as moved:
        hold.postpone(seconds=0.0, reason=str(moved), is_failure=True)
    except NotFound:
        hold.postpone(seconds=0.0, reason=_CHANGED_TOO_OFTEN)
    except BeliefsDisabled:
        give_up(remembrance=hold.remembrance, reason=_NO_BELIEFS)
    except TextForgotten:
        _finish(hold, now, reason=_FORGOTTEN)
    except LeaseLost:
        log.info("remembrance_taken_over", remembrance=hold.remembrance.pk)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactReading:
    """The facts of a text, and the model that their vectors are of."""

    facts: Sequence[ReadFact]
    model: str


def read_text(*, hold: JobLease, budget: CallBudget) -> FactReading:
    """Read an episode's facts and embed them; what cannot be embedded is compared later.

    Raises NoModelAnswer, or what stops calls: RetryLater, OutOfBudget, LeaseLost.
    """
    episode = hold.remembrance.episode
    matter = strip_echo(episode.text, episode.speaker)
    model = embedder_of(episode.workspace_id)
    if not matter:
        return FactReading(facts=(), model=model.name)
    own = begin_own_vector(episode=episode, matter=matter)
    claims: list[Claim] = []
    try:
        is_read, call_id = _read_into_claims(hold, budget) if is_speech(episode) else (False, None)
        if is_read:
            claims = _claims_to_remember(episode, matter, hold.remembrance.created_at)
            facts = [_fact_from_claim(claim) for claim in claims]
        else:
            facts, call_id = _extract_facts(hold, budget, matter)
    finally:
        vector = own.collect()
    known = {} if vector is None else {collapse_spaces(matter): vector}
    others = [fact.text for fact in facts if collapse_spaces(fact.text) not in known]
    found = known | embed_texts(texts=others, episode=episode)
    read = [
        ReadFact(fact=fact, vector=found.get(collapse_spaces(fact.text)), call_id=call_id, claim=claim)
        for fact, claim in zip_longest(facts, claims)
    ]
    return FactReading(facts=read, model=model.name)


_FACT_TYPES = {"preference": FactType.PREFERENCE}


def _read_into_claims(hold: JobLease, budget: CallBudget) -> tuple[bool, int | None]:
    """Have an episode read into claims once, by rules or a model (E1); tell whether it is, and by which call."""
    episode, now = hold.remembrance.episode, hold.remembrance.created_at
    model = language_model()
    if model.is_offline:
        read_episodes_into_claims(episodes=[episode.pk], now=now)
        return True, None
    unread = Episode.objects.filter(pk=episode.pk, read_at=None)
    requests = plan_claim_requests(workspace_id=episode.workspace_id, episodes=unread, now=now, alone={episode.pk})
    if not requests:
        return True, None
    heard = ask_model(hold=hold, budget=budget, request=requests[0])
    if isinstance(heard.reply, ClaimsReply):
        reader = reader_of(model_for=model.model_for)
        store_model_claims(request=requests[0], reply=heard.reply, reader=reader, now=now)
    return isinstance(heard.reply, ClaimsReply), heard.call_id


def _claims_to_remember(episode: Episode, matter: str, now: datetime) -> list[Claim]:
    """Return what an episode claims of its speaker's life; what was to be remembered is never lost."""
    claims = list(Claim.objects.filter(episode=episode).evidence())
    if not claims and (wished := find_request(matter)):
        return [store_own_words(episode=episode, words=wished, now=now)]
    return claims


def _fact_from_claim(claim: Claim) -> FactToRemember:
    return FactToRemember(
        text=claim.sentence,
        fact_type=_FACT_TYPES.get(claim.kind, FactType.FACTUAL),
        importance=settings.POLICY.remember.importance,
        subject=claim.subject[:_SUBJECT_LENGTH],
    )


def _extract_facts(hold: JobLease, budget: CallBudget, matter: str) -> tuple[list[FactToRemember], int | None]:
    """Return the facts of a text; after a reply that nobody can read, the text itself."""
    policy: RememberPolicy = settings.POLICY.remember
    episode = hold.remembrance.episode
    request = RememberRequest(
        episodes=(as_episode_text(episode=episode, matter=matter),), person=name_of_user(user=episode.user)
    )
    heard = ask_model(hold=hold, budget=budget, request=request)
    if not isinstance(heard.reply, StatedFacts):
        return [whole_text_as_fact(text=matter, policy=policy)], None
    return distinct_facts(
        facts=[
            FactToRemember(
                text=clamp_fact(text=said.fact, policy=policy),
                fact_type=said.fact_type,
                importance=said.importance,
                subject=(said.subject.lower() or OWNER)[:_SUBJECT_LENGTH],
            )
            for said in heard.reply.facts
            if said.fact
        ][: policy.facts]
    ), heard.call_id


def _match_facts(hold: JobLease, budget: CallBudget, facts: int, apply: Callable[..., None]) -> None:
    """Let facts meet what is believed, asking about contradictions as they come up: that may change meanwhile."""
    rulings: dict[ContradictionQuestion, Ruling] = {}
    for _ in range(_ROUNDS_PER_FACT * max(facts, 1)):
        try:
            apply(rulings=rulings)
        except NeedsRuling as open_one:
            rulings[open_one.question] = ask_for_ruling(hold=hold, budget=budget, question=open_one.question)
        else:
            return
    hold.postpone(seconds=settings.POLICY.remember.resend_seconds, reason=_CHANGED_TOO_OFTEN)


@transaction.atomic
def apply_reading(
    *, hold: JobLease, reading: FactReading, rulings: Mapping[ContradictionQuestion, Ruling], now: datetime
) -> None:
    """Match all facts of a text with what is believed, or none, and end the job.

    Raises NeedsRuling, LeaseLost, TextForgotten, BeliefsDisabled, NotFound, or EmbeddingUnavailable where the
    workspace moved to another embedding model.
    """
    _lock_job(hold)
    check_not_forgotten(episode=hold.remembrance.episode)
    meeting = FactMatcher(remembrance=hold.remembrance, rulings=rulings, model=reading.model, now=now)
    rows = meeting.settle(reading.facts)
    RememberedFact.objects.bulk_create(rows)
    settle_curated(episodes=[hold.remembrance.episode_id])
    if any(row.is_unmatched for row in rows):
        hold.postpone(seconds=hold.next_pause(), reason=_WITHOUT_VECTOR)
    else:
        _finish(hold, now)
    log.info("remembered", episode=hold.remembrance.episode_id, outcomes=[str(row.outcome) for row in rows])


def _match_late_facts(hold: JobLease, budget: CallBudget, facts: Sequence[RememberedFact], now: datetime) -> None:
    vectors = embed_unmatched_facts(hold=hold, facts=facts)
    model = embedder_of(hold.remembrance.workspace_id).name
    apply = partial(apply_vectors, hold=hold, vectors=vectors, model=model, now=now)
    _match_facts(hold, budget, len(facts), apply)


@transaction.atomic
def apply_vectors(
    *,
    hold: JobLease,
    vectors: Mapping[str, Vectors],
    model: str,
    rulings: Mapping[ContradictionQuestion, Ruling],
    now: datetime,
) -> None:
    """Compare the beliefs that waited for a vector, all or none, and end the remembrance; raise as `apply_reading`.

    What a text said that was forgotten since then only gets its vector: other texts may bear it out by now.
    """
    _lock_job(hold)
    meeting = FactMatcher(remembrance=hold.remembrance, rulings=rulings, model=model, now=now)
    for fact in list_unmatched_facts(hold=hold):
        match_late_vector(meeting=meeting, fact=fact, vector=vectors[fact.text])
    _finish(hold, now)


class TextForgotten(Exception):
    """The text was forgotten while it waited: nothing is to be believed of it."""


def _postpone(hold: JobLease, failed: OutOfBudget | NoModelAnswer, *, is_worker: bool) -> None:
    """Let a text wait whose model did not answer, ever longer; a worker that is told to end is nobody's failure."""
    if isinstance(failed, OutOfBudget) and is_shutting_down():
        hold.postpone(seconds=0.0, reason=str(failed))
    elif failed.is_slow:
        hold.put_off_slow(may_end=is_worker)
    else:
        hold.postpone(seconds=hold.next_pause(), reason=str(failed), is_failure=True)


def _lock_job(hold: JobLease) -> None:
    """Keep gates and other remembrances from the workspace's beliefs, and see its text as it stands, until the end."""
    lock_workspace(hold.remembrance.workspace_id)
    check_beliefs_enabled(workspace_id=hold.remembrance.workspace_id)
    if not hold.held.select_for_update(no_key=True).exists():
        raise LeaseLost
    locked = Episode.objects.select_for_update(no_key=True)
    hold.remembrance.episode = locked.get(pk=hold.remembrance.episode_id)


def check_not_forgotten(*, episode: Episode) -> None:
    """Raise TextForgotten for an episode that is evidence of nothing any more."""
    if episode.status in WITHDRAWN_STATUSES:
        raise TextForgotten


def _finish(hold: JobLease, now: datetime, *, reason: str = "") -> None:
    hold.held.update(state=RememberJobState.DONE, state_reason=reason, done_at=now, failures=0)


def ask_for_ruling(*, hold: JobLease, budget: CallBudget, question: ContradictionQuestion) -> Ruling:
    """Ask which beliefs a fact contradicts; a reply that names one that was not asked about counts as none (R3)."""
    episode = hold.remembrance.episode
    seen = as_episode_text(episode=episode, matter=strip_echo(episode.text, episode.speaker))
    request = ContradictionRequest(
        fact=question.fact, beliefs=question.beliefs, episodes=(seen,), person=name_of_user(user=episode.user)
    )
    heard = ask_model(hold=hold, budget=budget, request=request)
    reply = heard.reply
    if not isinstance(reply, Contradiction):
        return Ruling(call_id=heard.call_id)
    places = reply.places(among=len(question.ids))
    if places is None:
        log.warning("remembering.no_such_belief", numbers=reply.contradicts, of=len(question.ids))
        return Ruling(call_id=heard.call_id)
    rivals = tuple(question.ids[place] for place in places)
    return Ruling(rivals=rivals, reason=reply.reason, call_id=heard.call_id)
