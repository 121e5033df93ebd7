"""Conversations are summed up as they are read (R8), and it is remembered which turns tell what."""

from collections.abc import Iterable

import structlog
from django.conf import settings
from django.db import transaction

from memory.domain.conversation import Role, SaidTurn, Talk
from memory.domain.summaries import is_summary_due
from memory.ingest.arrival import Arrival, Stored
from memory.ingest.summaries import summarize_conversation
from memory.ingest.turns.leasing import ConversationLease
from memory.llm.budget import CallBudget, DailyCapReached
from memory.llm.model import CallFailed
from memory.models import Turn, TurnEpisode
from memory.models.rows import insert_new

log = structlog.get_logger(__name__)


def sum_up(*, lease: ConversationLease, arrival: Arrival, talk: Talk, budget: CallBudget) -> None:
    """Sum up each stretch that ends among the turns that are read; what no model sums up is left so.

    Raises MustWait, OutOfBudget or LeaseLost where it is to be tried again with these turns.
    """
    policy = settings.POLICY.extraction
    ends = [turn.number for turn in lease.turns if is_summary_due(turns=turn.number, policy=policy)]
    for end in ends:
        earlier = Turn.objects.filter(conversation=lease.conversation, number__lte=end).order_by("-number")
        stretch = list(earlier[: policy.summary_turns])[::-1]
        try:
            outcome = summarize_conversation(
                turns=[as_said(turn) for turn in stretch],
                talk=talk,
                arrival=arrival,
                budget=budget,
                fence=lease.renew,
                conversation_id=lease.conversation.pk,
            )
        except (CallFailed, DailyCapReached) as failure:  # facts that are paid for do not wait for a summary
            log.warning("not_summed_up", conversation=lease.conversation.pk, turn=end, reason=str(failure))
            continue
        if isinstance(outcome, Stored):
            _link_summary(lease, stretch, outcome.id)


@transaction.atomic
def _link_summary(lease: ConversationLease, stretch: list[Turn], episode_id: str) -> None:
    """Link a summary to its turns, unless these have been erased meanwhile."""
    if lease.held.select_for_update(no_key=True).exists():
        link_turns(pairs=[(turn, episode_id) for turn in stretch])


def link_turns(*, pairs: Iterable[tuple[Turn, str]]) -> None:
    """Remember that turns tell episodes; what is known already stays as it is."""
    rows = [
        {"workspace_id": turn.workspace_id, "turn_id": turn.pk, "episode_id": key}
        for turn, key in {(turn.pk, key): (turn, key) for turn, key in pairs}.values()
    ]
    insert_new(model=TurnEpisode, rows=rows)


def as_said(turn: Turn) -> SaidTurn:
    """Return a turn as a reader is given it."""
    return SaidTurn(
        role=Role(turn.role),
        speaker=turn.speaker,
        text=turn.content,
        occurred_at=turn.occurred_at,
        number=turn.number,
    )
