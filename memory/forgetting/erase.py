"""B19: a memory is erased: no text, vector, history, reply or belief of it is left in the database.

What is left refuses the same words, by a keyed hash (L4). What other memories said stays: beliefs that may quote an
erased episode go with it, and what else they rested on is consolidated anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from memory.consolidation.rebuild.repair import take_up_again
from memory.consolidation.rebuild.service import check_no_cycle_open, rebuild_some
from memory.consolidation.weighing import restore_superseded
from memory.domain.actor import Actor
from memory.domain.lifecycle import BeliefStatus
from memory.forgetting.conversations import erase_conversations, erase_turns
from memory.forgetting.drawn import drop_claims
from memory.forgetting.emptying import empty_workspace
from memory.forgetting.holding import Doomed, DoomedEpisode, hold_doomed
from memory.forgetting.refusing import refuse_from_now_on
from memory.forgetting.scrubbing import clear_statistics, delete_rows, drop_log_entries, drop_sessions, scrub_traces
from memory.forgetting.traces import Ids, Traces, find_traces, founding_company
from memory.graph.edges import lock_linking
from memory.graph.linking import boxes_of, drop_orphaned_names
from memory.ledger.evidence import recompute_without, supporting_rows
from memory.ledger.transactions import lock_beliefs, lock_workspace
from memory.models import Belief, Conversation, Episode, Evidence, ModelCall, Turn, Workspace

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefIds:
    """Which beliefs the numbers of an erasure are about."""

    erased: Ids = frozenset()
    recomputed: Ids = frozenset()
    archived: Ids = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """How much is gone, and what that meant for the rest."""

    episodes: int
    beliefs: int
    calls: int  # whose replies are gone; what they cost stays counted
    turns: int = 0  # of conversations
    released: int = 0  # other episodes that beliefs which are gone were made of: they are consolidated anew
    recomputed: int = 0  # beliefs that do not stand as before
    archived: int = 0  # those among them without support
    ids: BeliefIds = field(default_factory=BeliefIds)

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        names = ("episodes", "beliefs", "turns", "calls", "released", "recomputed", "archived")
        return {name: getattr(self, name) for name in names}


@transaction.atomic
def erase_memories(
    *,
    workspace: Workspace,
    episodes: QuerySet[Episode],
    beliefs: Collection[str] = (),
    actor: Actor,
    now: datetime,
) -> Erasure:
    """Erase episodes, and beliefs by their ids, of one workspace, whatever their status.

    Raise CycleIsOpen while a cycle runs: workers would write down what they hold in their hands.
    """
    _stop_others(workspace)
    doomed = hold_doomed(episodes=episodes, with_repeats=True)
    return _erase_held(workspace, doomed, beliefs, actor=actor, now=now)


@transaction.atomic
def erase_user(*, workspace: Workspace, user: str, actor: Actor, now: datetime) -> Erasure:
    """Erase all that is one user's in a workspace: conversations, episodes, and the beliefs that are theirs alone.

    Beliefs of nobody in particular that may quote one of the episodes go as well.
    """
    _stop_others(workspace)
    theirs = Conversation.objects.for_workspace(workspace.pk).filter(user=user)
    episodes = Episode.objects.for_workspace(workspace.pk).filter(user=user)
    beliefs = Belief.objects.for_workspace(workspace.pk).filter(user=user)
    doomed = hold_doomed(episodes=episodes, conversations=theirs)
    said = set(theirs.filter(pk__in=doomed.conversations).values_list("pk", flat=True))
    turns = erase_conversations(workspace=workspace, conversations=said)
    others = replace(doomed, conversations=set(doomed.conversations) - said)
    named = list(beliefs.values_list("pk", flat=True))
    erasure = _erase_held(workspace, others, named, actor=actor, now=now)
    return replace(erasure, turns=erasure.turns + turns)


@transaction.atomic
def erase_workspace(*, workspace: Workspace, actor: Actor) -> Erasure:
    """Erase every memory of a workspace, and what was refused in it: as new, but for its people, keys and projects."""
    _stop_others(workspace)
    ids = [list(model.objects.for_workspace(workspace.pk).values_list("pk", flat=True)) for model in (Episode, Belief)]
    calls, turns = (model.objects.for_workspace(workspace.pk).count() for model in (ModelCall, Turn))
    drop_log_entries(ids=[*ids[0], *ids[1]])
    empty_workspace(workspace=workspace)
    clear_statistics(workspace=workspace)
    erasure = Erasure(episodes=len(ids[0]), beliefs=len(ids[1]), turns=turns, calls=calls)
    log.info("workspace_erased", workspace=workspace.pk, actor=str(actor), **erasure.counts)
    return erasure


def _stop_others(workspace: Workspace) -> None:
    """Lock gates and linking; raise CycleIsOpen while a cycle runs."""
    lock_workspace(workspace.pk)
    check_no_cycle_open(workspace=workspace)
    lock_linking(workspace.pk, waits=True)


def _erase_held(
    workspace: Workspace, doomed: Doomed, beliefs: Collection[str], *, actor: Actor, now: datetime
) -> Erasure:
    episodes = Episode.objects.filter(pk__in=[episode.id for episode in doomed.episodes])
    traces = find_traces(episodes=episodes, beliefs=beliefs)
    _refuse(workspace, doomed.episodes, _hold_beliefs(traces), named=frozenset(beliefs))
    erasure = _erase(workspace, episodes, doomed, traces, actor=actor, now=now)
    clear_statistics(workspace=workspace)
    log.info("memories_erased", workspace=workspace.pk, actor=str(actor), **erasure.counts)
    return erasure


def _hold_beliefs(traces: Traces) -> list[Belief]:
    locked = Belief.objects.select_for_update().filter(pk__in=traces.beliefs).defer("search")
    return list(locked.order_by("pk"))


def _refuse(workspace: Workspace, doomed: Sequence[DoomedEpisode], beliefs: Sequence[Belief], *, named: Ids) -> None:
    """Refuse the words of episodes from now on, and the statements of beliefs that somebody does not want."""
    unwanted = [
        belief
        for belief in beliefs
        if belief.pk in named or belief.status == BeliefStatus.FORGOTTEN or belief.archived_by_person_at
    ]
    refuse_from_now_on(
        workspace=workspace,
        words=[(episode.user, episode.content_hash) for episode in doomed],
        statements=[(belief.user, belief.statement) for belief in unwanted],
    )


def _erase(
    workspace: Workspace,
    episodes: QuerySet[Episode],
    doomed: Doomed,
    traces: Traces,
    *,
    actor: Actor,
    now: datetime,
) -> Erasure:
    gone = [episode.id for episode in doomed.episodes]
    company = founding_company(beliefs=traces.quoting - traces.named)
    boxes = boxes_of(episodes=episodes)
    bereft = _stated_and_bereft(episodes, traces)
    restore_superseded(workspace_id=workspace.pk, by=gone, actor=actor, now=now)
    drop_claims(claims=traces.claims)
    fallen = scrub_traces(traces=traces)
    telling = [episode.id for episode in doomed.episodes if episode.takes_turns]
    turns = erase_turns(workspace=workspace, episodes=telling, conversations=doomed.conversations)
    delete_rows(model=Belief, ids=sorted(traces.beliefs))
    delete_rows(model=Episode, ids=gone)
    drop_orphaned_names(workspace_id=workspace.pk, boxes=boxes)
    drop_log_entries(ids=[*gone, *traces.beliefs])
    drop_sessions(workspace=workspace, sessions={episode.session for episode in doomed.episodes} - {""})
    released = take_up_again(episodes=company)
    recomputed = rebuild_some(workspace=workspace, beliefs=traces.leaning, fallen=fallen, now=now)
    stated = lock_beliefs(bereft)
    archived = recompute_without(beliefs=stated, supported=stated, actor=actor, now=now)
    return Erasure(
        episodes=len(gone),
        beliefs=len(traces.beliefs),
        turns=turns,
        calls=len(traces.calls),
        released=released,
        recomputed=len(recomputed),
        archived=len(archived),
        ids=BeliefIds(erased=traces.beliefs, recomputed=recomputed, archived=archived),
    )


def _stated_and_bereft(episodes: QuerySet[Episode], traces: Traces) -> list[str]:
    """Find the beliefs that no cycle made and that lose support: a replay knows nothing of them."""
    gone = Q(episode__in=episodes.order_by().values("pk")) | Q(claim__in=traces.claims)
    lost = supporting_rows(rows=Evidence.objects.filter(gone))
    bereft = traces.leaning.intersection(lost.values_list("belief_id", flat=True))
    of_no_cycle = Q(born_in=None) | Q(born_in__undone_at__isnull=False)
    return list(Belief.objects.filter(of_no_cycle, pk__in=bereft).values_list("pk", flat=True))
