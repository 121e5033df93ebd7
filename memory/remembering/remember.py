"""R1: remember a text: its episode is stored before anything else, and its facts follow at once or by a worker."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.clock import database_now
from memory.consolidation.pausing import find_pause
from memory.domain.lifecycle import BeliefStatus
from memory.domain.time_limits import ANSWER_SECONDS, holds_a_call
from memory.ingest.schemas import IngestContext, Rejected, Stored
from memory.ingest.store import store_raw_episodes
from memory.llm.model import FailureKind, language_model
from memory.models import Lineage, LineageKind, RememberedFact, Remembrance, RemembranceState, RivalOutcome, Workspace
from memory.models.conversations import REASON_CONTRADICTED
from memory.remembering.working import work_remembrance
from memory.signals import remembrance_ready

log = structlog.get_logger(__name__)

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


def remember(*, line: Mapping[str, object], arrival: IngestContext) -> Remembered | Rejected:
    """Store a text as an episode, and let its facts meet what is believed; the same text again changes nothing more.

    With no model to ask now, the answer is *queued*, and a worker goes on.
    """
    with transaction.atomic():
        [outcome] = store_raw_episodes(raw_lines=[dict(line)], arrival=arrival)
        if isinstance(outcome, Rejected):
            return outcome
        remembrance = _take_down(outcome, arrival)
    if remembrance and remembrance.state == RemembranceState.QUEUED:
        _begin(remembrance, arrival)
    return _answer(outcome, remembrance)


def _begin(remembrance: Remembrance, arrival: IngestContext) -> None:
    """Work while the caller waits, or tell a worker: also where a call may take longer than a caller waits."""
    seconds = settings.POLICY.remember.answer_seconds
    if not may_ask_now(workspace=arrival.workspace):
        _send(remembrance.pk)
    elif holds_a_call(seconds=seconds, budget=settings.POLICY.budget):
        _try_now(remembrance, arrival.now, seconds)
    else:
        Remembrance.objects.queued().filter(pk=remembrance.pk, state_reason="").update(state_reason=LONGER_THAN_ANSWERS)
        remembrance.refresh_from_db(fields=["state", "state_reason"])
        _send(remembrance.pk)


def _try_now(remembrance: Remembrance, now: datetime, seconds: float) -> None:
    """Work for so long; whatever fails, the text is stored, and the sweeper comes back to it."""
    try:
        work_remembrance(remembrance_id=remembrance.pk, now=now, seconds=seconds)
    except Exception:
        log.exception("remembering_failed", remembrance=remembrance.pk)
    remembrance.refresh_from_db(fields=["state", "state_reason"])


def may_ask_now(*, workspace: Workspace) -> bool:
    """Tell whether a model is worth asking while a caller waits: none is where rules answer, or a workspace rests."""
    return not language_model().is_offline and find_pause(workspace=workspace) is None


def _take_down(outcome: Stored, arrival: IngestContext) -> Remembrance | None:
    """Note that an episode's facts are wanted, once; nothing is wanted of what was forgotten."""
    if outcome.is_forgotten or not arrival.workspace.keeps_beliefs:
        return None
    remembrance, _ = Remembrance.objects.get_or_create(
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


def _send(remembrance_id: int) -> None:
    remembrance_ready.send(sender=Remembrance, remembrance_id=remembrance_id)


def _answer(outcome: Stored, remembrance: Remembrance | None) -> Remembered:
    return Remembered(
        episode_id=outcome.id,
        state=RemembranceState.QUEUED if remembrance and _waits(remembrance) else RemembranceState.DONE,
        beliefs=actions_of(remembrance=remembrance) if remembrance else (),
        is_duplicate=outcome.is_duplicate,
        is_forgotten=outcome.is_forgotten,
        reason=_reason_of(remembrance) if remembrance and _waits(remembrance) else "",
    )


def _reason_of(remembrance: Remembrance) -> str:
    """Say why a text waits, or was left to consolidation; what a server said of it is for people who run this alone."""
    kind = remembrance.state_reason.partition(":")[0]
    reason = f"no model answers ({kind})" if kind in set(FailureKind) else remembrance.state_reason
    return f"left to consolidation: {reason}" if remembrance.state == RemembranceState.FAILED else reason


def _waits(remembrance: Remembrance) -> bool:
    """Tell whether beliefs may still follow: of what failed they do by consolidation."""
    return remembrance.state != RemembranceState.DONE


def actions_of(*, remembrance: Remembrance) -> tuple[BeliefAction, ...]:
    """List what a remembrance did to beliefs, each belief once, in the order of its facts."""
    actions: dict[str, str] = {}
    for fact in remembrance.facts.all():
        if fact.belief_id:
            actions.setdefault(fact.belief_id, fact.outcome)
        if fact.rival_id:
            actions.setdefault(fact.rival_id, fact.rival_outcome)
            for key, outcome in _further_rivals(fact):
                actions.setdefault(key, outcome)
    return tuple(BeliefAction(id=key, action=action) for key, action in actions.items())


def _further_rivals(fact: RememberedFact) -> Iterator[tuple[str, RivalOutcome]]:
    """Yield what else a fact contradicts than the belief that its row names, which the lineage tells."""
    superseded = Lineage.objects.filter(child=fact.belief_id, kind=LineageKind.SUPERSESSION, reason=REASON_CONTRADICTED)
    others = superseded.exclude(parent=fact.rival_id).order_by("pk")
    for parent, status in others.values_list("parent", "parent__status"):
        is_over = status in (BeliefStatus.CHALLENGED, BeliefStatus.INVALIDATED)
        yield parent, RivalOutcome.SUPERSEDED if is_over else RivalOutcome.WEAKENED
