"""A remembrance at work: its text is read, its facts meet what is believed, what stops it is written down (R1)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.by_hand import settle_by_hand
from memory.consolidation.cycle import BeliefsAreOff, budget_policy, check_believing
from memory.consolidation.pausing import describe_pause, find_pause
from memory.domain.matter import matter_of
from memory.domain.time_limits import step_seconds
from memory.domain.user_names import name_of_user
from memory.ending import is_ending
from memory.ledger.beliefs import EmbeddingUnavailable
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.transactions import NotFound, lock_workspace
from memory.llm.budget import CallBudget, DailyCapReached, LeaseLost, MustWait, OutOfBudget
from memory.llm.replies import Contradiction
from memory.llm.requests import ContradictionRequest
from memory.llm.workspace_model import embedder_of
from memory.models import Episode, RememberedFact, RemembranceState
from memory.remembering.catching_up import catch_up, embed_facts, unmatched_facts
from memory.remembering.holds import Hold, give_up, held
from memory.remembering.meeting import Meeting, Question, Ruling, Unasked
from memory.remembering.reading import Reading, Unanswered, ask, read_text, text_of
from memory.search.vectors import Vectors

log = structlog.get_logger(__name__)

_NO_BELIEFS = "the workspace keeps no beliefs"
_WITHOUT_VECTOR = "the embedding model does not answer"
_ASKED_TO_WAIT = "a model server asked to wait"
_CHANGED_TOO_OFTEN = "what is believed changed while it was compared"
_FORGOTTEN = "forgotten"
_ROUNDS = 4  # of asking: each fact once, and once more where somebody else was faster


class LeftMeanwhile(Exception):
    """The text was forgotten while it waited: nothing is to be believed of it."""


def work_remembrance(*, remembrance_id: int, now: datetime, seconds: float | None = None) -> None:
    """Bring a remembrance to its end, unless somebody else works on it; what stops it is written down, and waits.

    A worker has the time of any step; a caller who waits gives it so many seconds.
    """
    with held(remembrance_id=remembrance_id) as hold:
        if hold is None:
            return
        if pause := find_pause(workspace=hold.remembrance.workspace):
            hold.postpone(seconds=settings.POLICY.remember.resend_seconds, reason=describe_pause(pause))
            return
        _work(hold, now, seconds)


def _work(hold: Hold, now: datetime, seconds: float | None) -> None:
    policy, is_worker = settings.POLICY.remember, seconds is None
    seconds = step_seconds(budget=budget_policy()) if seconds is None else seconds
    budget = CallBudget.of_step(seconds=seconds, policy=budget_policy())
    try:
        if facts := unmatched_facts(hold=hold):
            _catch_up(hold, budget, facts, now)
        else:
            check_wanted(episode=hold.remembrance.episode)
            reading = read_text(hold=hold, budget=budget)
            _meet(hold, budget, len(reading.facts), partial(apply_reading, hold=hold, reading=reading, now=now))
    except DailyCapReached as spent:
        hold.postpone(seconds=policy.cap_seconds, reason=str(spent))
    except MustWait as wait:
        hold.postpone(seconds=wait.seconds, reason=_ASKED_TO_WAIT)
    except (OutOfBudget, Unanswered) as failed:
        _put_off(hold, failed, is_worker=is_worker)
    except EmbeddingUnavailable as moved:
        hold.postpone(seconds=0.0, reason=str(moved), is_failure=True)
    except NotFound:
        hold.postpone(seconds=0.0, reason=_CHANGED_TOO_OFTEN)
    except BeliefsAreOff:
        give_up(remembrance=hold.remembrance, reason=_NO_BELIEFS)
    except LeftMeanwhile:
        _end(hold, now, reason=_FORGOTTEN)
    except LeaseLost:
        log.info("remembrance_taken_over", remembrance=hold.remembrance.pk)


def _put_off(hold: Hold, failed: OutOfBudget | Unanswered, *, is_worker: bool) -> None:
    """Let a text wait whose model did not answer, ever longer; a worker that is told to end is nobody's failure."""
    if isinstance(failed, OutOfBudget) and is_ending():
        hold.postpone(seconds=0.0, reason=str(failed))
    elif failed.is_slow:
        hold.put_off_slow(may_end=is_worker)
    else:
        hold.postpone(seconds=hold.next_pause(), reason=str(failed), is_failure=True)


def _catch_up(hold: Hold, budget: CallBudget, facts: Sequence[RememberedFact], now: datetime) -> None:
    vectors = embed_facts(hold=hold, facts=facts)
    model = embedder_of(hold.remembrance.workspace_id).name
    apply = partial(apply_vectors, hold=hold, vectors=vectors, model=model, now=now)
    _meet(hold, budget, len(facts), apply)


def _meet(hold: Hold, budget: CallBudget, facts: int, apply: Callable[..., None]) -> None:
    """Let facts meet what is believed, asking about contradictions as they come up: that may change meanwhile."""
    rulings: dict[Question, Ruling] = {}
    for _ in range(_ROUNDS * max(facts, 1)):
        try:
            apply(rulings=rulings)
        except Unasked as open_one:
            rulings[open_one.question] = rule_on(hold=hold, budget=budget, question=open_one.question)
        else:
            return
    hold.postpone(seconds=settings.POLICY.remember.resend_seconds, reason=_CHANGED_TOO_OFTEN)


@transaction.atomic
def apply_reading(*, hold: Hold, reading: Reading, rulings: Mapping[Question, Ruling], now: datetime) -> None:
    """Let all facts of a text meet what is believed, or none, and end the remembrance.

    Raises Unasked, LeaseLost, LeftMeanwhile, BeliefsAreOff, Gone, or NoVector where the workspace moved to another
    embedding model.
    """
    _hold_still(hold)
    check_wanted(episode=hold.remembrance.episode)
    meeting = Meeting(remembrance=hold.remembrance, rulings=rulings, model=reading.model, now=now)
    rows = meeting.settle(reading.facts)
    RememberedFact.objects.bulk_create(rows)
    settle_by_hand(episodes=[hold.remembrance.episode_id])
    if any(row.is_unmatched for row in rows):
        hold.postpone(seconds=hold.next_pause(), reason=_WITHOUT_VECTOR)
    else:
        _end(hold, now)
    log.info("remembered", episode=hold.remembrance.episode_id, outcomes=[str(row.outcome) for row in rows])


@transaction.atomic
def apply_vectors(
    *, hold: Hold, vectors: Mapping[str, Vectors], model: str, rulings: Mapping[Question, Ruling], now: datetime
) -> None:
    """Compare the beliefs that waited for a vector, all or none, and end the remembrance; raise as `apply_reading`.

    What a text said that was forgotten since then only gets its vector: other texts may bear it out by now.
    """
    _hold_still(hold)
    meeting = Meeting(remembrance=hold.remembrance, rulings=rulings, model=model, now=now)
    for fact in unmatched_facts(hold=hold):
        catch_up(meeting=meeting, fact=fact, vector=vectors[fact.text])
    _end(hold, now)


def _hold_still(hold: Hold) -> None:
    """Keep gates and other remembrances from the workspace's beliefs, and see its text as it stands, until the end."""
    lock_workspace(hold.remembrance.workspace_id)
    check_believing(workspace_id=hold.remembrance.workspace_id)
    if not hold.mine.select_for_update(no_key=True).exists():
        raise LeaseLost
    locked = Episode.objects.select_for_update(no_key=True)
    hold.remembrance.episode = locked.get(pk=hold.remembrance.episode_id)


def check_wanted(*, episode: Episode) -> None:
    """Raise LeftMeanwhile for an episode that is evidence of nothing any more."""
    if episode.status in WITHDRAWN_STATUSES:
        raise LeftMeanwhile


def _end(hold: Hold, now: datetime, *, reason: str = "") -> None:
    hold.mine.update(state=RemembranceState.DONE, state_reason=reason, done_at=now, failures=0)


def rule_on(*, hold: Hold, budget: CallBudget, question: Question) -> Ruling:
    """Ask which beliefs a fact contradicts; a reply that names one that was not asked about counts as none (R3)."""
    episode = hold.remembrance.episode
    seen = text_of(episode=episode, matter=matter_of(episode.text, episode.speaker))
    request = ContradictionRequest(
        fact=question.fact, beliefs=question.beliefs, episodes=(seen,), person=name_of_user(user=episode.user)
    )
    heard = ask(hold=hold, budget=budget, request=request)
    reply = heard.reply
    if not isinstance(reply, Contradiction):
        return Ruling(call_id=heard.call_id)
    places = reply.places(among=len(question.ids))
    if places is None:
        log.warning("remembering.no_such_belief", numbers=reply.contradicts, of=len(question.ids))
        return Ruling(call_id=heard.call_id)
    rivals = tuple(question.ids[place] for place in places)
    return Ruling(rivals=rivals, reason=reply.reason, call_id=heard.call_id)
