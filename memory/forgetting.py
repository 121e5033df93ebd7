"""Forget a memory: it is seen and counted no more, and its row stays, so that it does not come back (B19).

`forget_episode` takes an episode, and what retells it, from recall and from evidence; `forget_belief` leaves a
tombstone. `lock_with_dependents` locks what goes, in the order that everybody keeps: episodes, then conversations.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.access import Viewer, visible_beliefs
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.episode_states import restore_superseded
from memory.consolidation.rebuild import LOST_OUTCOME, consolidate_again
from memory.domain.errors import EngramError
from memory.domain.identity import Actor, holds_words
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.language.subjects import normalise_entity
from memory.ledger.evidence import EvidenceWithdrawal, recompute_without, supporting_rows, withdraw_evidence
from memory.ledger.transactions import (
    NotFound,
    change_episode_status,
    lock_beliefs,
    lock_existing_beliefs,
    lock_workspace,
)
from memory.models import (
    Belief,
    Claim,
    ClusterJob,
    ClusterMember,
    Conversation,
    Episode,
    Evidence,
    JobVerdict,
    Mention,
    Turn,
    TurnEpisode,
)
from memory.redaction.service import redact_for

log = structlog.get_logger(__name__)


@transaction.atomic
def forget_episode(*, episode: Episode, actor: Actor, now: datetime, reason: str = "") -> Forgotten:
    """Take an episode from recall and from the evidence of every belief; forgotten already, it changes nothing.

    What was merged into it, and summaries of what it was read from, go as it does. A cycle that works on it goes on
    without it: the lock of the workspace stands between this and every gate. Raise NotFound for one that was erased
    since it was looked up.
    """
    lock_workspace(episode.workspace_id)
    held = lock_with_dependents(episodes=Episode.objects.filter(pk=episode.pk)).episodes
    if not held:
        raise NotFound(f"There is no {episode.pk} any more.")
    said = redact_for(workspace_id=episode.workspace_id, text=reason) or FORGOTTEN
    changed = change_episode_status(ids=[episode.pk], new=EpisodeStatus.FORGOTTEN, reason=said, actor=actor, now=now)
    along = forget_dependents(episode=episode, held=held, actor=actor, now=now)
    restore_superseded(workspace_id=episode.workspace_id, by=[*changed, *along.all], actor=actor, now=now)
    gone = Evidence.objects.filter(episode__in=[*changed, *along.all])
    bereft = withdraw_evidence(rows=gone, actor=actor, now=now) | drop_dependent_claims(
        workspace_id=episode.workspace_id, episodes=[*changed, *along.all], actor=actor, now=now
    )
    log.info(
        "episode_forgotten", episode=episode.pk, workspace=episode.workspace_id, beliefs=len(bereft.beliefs),
        along=len(along.all),
    )  # fmt: skip
    return Forgotten(id=episode.pk, bereft=bereft, along=along)


@transaction.atomic
def forget_belief(
    *, belief: Belief, actor: Actor, now: datetime, reason: str = "", even_pinned: bool = False
) -> Forgotten:
    """Let a belief stay as a tombstone, so that nothing that says the same comes in its place (B22).

    Raise PinnedBelief for a pinned one unless the caller may pin, IllegalTransitionError for one forgotten already, and
    NotFound for one that was erased since it was looked up.
    """
    lock_workspace(belief.workspace_id)
    [held] = lock_existing_beliefs([belief.pk])
    if held.is_pinned and not even_pinned:
        raise PinnedBelief(f"{belief.pk} is pinned: only who may curate can forget it, or take the pin off.")
    curate_belief(belief_id=belief.pk, act=CuratorAction.FORGET, reason=reason or FORGOTTEN, actor=actor, now=now)
    log.info("belief_forgotten", belief=belief.pk, workspace=belief.workspace_id)
    return Forgotten(id=belief.pk, bereft=EvidenceWithdrawal())


FORGOTTEN = "forgotten"  # the reason, where nobody gives one


class PinnedBelief(EngramError, PermissionError):
    """A pin keeps a belief from being forgotten by whoever may not take it off (D9)."""

    status = HTTPStatus.FORBIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependents:
    """The episodes that went with one, by their ids."""

    merged: Sequence[str] = ()
    summaries: Sequence[str] = ()

    @property
    def all(self) -> list[str]:
        """Return both."""
        return [*self.merged, *self.summaries]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was forgotten, what told of it and went along, and what that meant for beliefs."""

    id: str
    bereft: EvidenceWithdrawal
    along: Dependents = field(default_factory=Dependents)


def bereft_in_sight(*, bereft: EvidenceWithdrawal, viewer: Viewer) -> EvidenceWithdrawal:
    """Keep of the beliefs that lost evidence those that a viewer may see (B21)."""
    seen = frozenset(visible_beliefs(viewer=viewer).filter(pk__in=bereft.beliefs).values_list("pk", flat=True))
    return EvidenceWithdrawal(beliefs=seen, archived=bereft.archived & seen)


def forget_dependents(*, episode: Episode, held: Collection[LockedEpisode], actor: Actor, now: datetime) -> Dependents:
    """Forget what tells an episode among what is held, and let go of exact words of its turns.

    The caller holds the conversations, so that nobody sums up what is being forgotten. A summary is forgotten for
    itself: what it sums up, and other summaries of that, stay.
    """
    if episode.is_derived:
        return Dependents()
    others = [one for one in held if one.id != episode.pk]
    told = {episode.pk} | {one.id for one in others if not one.is_derived}
    turns = Turn.objects.filter(episodes__in=told).values("pk")
    Episode.objects.filter(turns__in=turns).exclude(pk__in=told).exclude(verbatim="").update(verbatim="")
    reason = f"it tells of {episode.pk}, which was forgotten"
    changed = set(
        change_episode_status(
            ids=[one.id for one in others], new=EpisodeStatus.FORGOTTEN, reason=reason, actor=actor, now=now
        )
    )
    return Dependents(
        merged=sorted(changed & told),
        summaries=sorted(changed - told),
    )


def drop_dependent_claims(
    *, workspace_id: int, episodes: Collection[str], actor: Actor, now: datetime
) -> EvidenceWithdrawal:
    """Drop the claims that drew on forgotten episodes; what they alone bore out is archived (B19)."""
    dropped = drop_claims(claims=find_dependent_claims(workspace_id=workspace_id, episodes=episodes))
    beliefs = lock_beliefs(dropped.beliefs)
    supported = [belief for belief in beliefs if belief.pk in dropped.unsupported]
    archived = recompute_without(beliefs=beliefs, supported=supported, actor=actor, now=now)
    return EvidenceWithdrawal(beliefs=dropped.beliefs, archived=archived)


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedClaims:
    """The episodes that are read again, and the beliefs that lost evidence or support with their claims."""

    episodes: frozenset[str] = frozenset()
    beliefs: frozenset[str] = frozenset()
    unsupported: frozenset[str] = frozenset()


def find_dependent_claims(*, workspace_id: int, episodes: Collection[str]) -> frozenset[int]:
    """Find the claims of other episodes that drew on some."""
    claims = Claim.objects.for_workspace(workspace_id).filter(drew_on__overlap=list(episodes))
    return frozenset(claims.exclude(episode__in=list(episodes)).values_list("pk", flat=True))


def drop_claims(*, claims: Collection[int]) -> DroppedClaims:
    """Delete claims with their verdicts and evidence, and let their episodes wait to be read once more.

    The caller holds the workspace's lock, and computes the beliefs anew. An episode is read as a whole: its other
    claims go as well, and their evidence stays.
    """
    if not claims:
        return DroppedClaims()
    rows = Evidence.objects.filter(claim__in=claims)
    beliefs = frozenset(belief.pk for belief in lock_beliefs(rows.values("belief")))
    unsupported = frozenset(supporting_rows(rows=rows).values_list("belief_id", flat=True))
    own = frozenset(Claim.objects.filter(pk__in=claims).values_list("episode_id", flat=True))
    rows.delete()
    took_part = ClusterMember.objects.filter(job=OuterRef("job"), episode=OuterRef("episode"), claim__in=claims)
    JobVerdict.objects.filter(Exists(took_part)).delete()
    # What they founded stands for itself from here on: a replay would find nothing that it was made of.
    ClusterJob.objects.filter(claim__in=claims).update(created_belief=None, outcome=LOST_OUTCOME, members_hash="")
    _take_back_traits(own)
    Claim.objects.filter(episode__in=own).delete()
    _read_again(Episode.objects.filter(pk__in=own))
    return DroppedClaims(episodes=own, beliefs=beliefs, unsupported=unsupported)


def _take_back_traits(episodes: Collection[str]) -> None:
    """Take from episodes the names and reasons that their claims gave them, which their own words do not have (E1)."""
    held = Episode.objects.filter(pk__in=episodes).select_for_update(no_key=True).order_by("pk").defer("search")
    rows = list(held.prefetch_related("claims__because"))
    for row in rows:
        claims = list(row.claims.all())
        given = {name for claim in claims for name in claim.entities if name.casefold() not in row.text.casefold()}
        reasons = {claim.because.statement for claim in claims if claim.because}
        row.entities = [name for name in row.entities if name not in given]
        row.causes = [reason for reason in row.causes if reason not in reasons]
        Mention.objects.filter(episode=row, name__in={normalise_entity(name) for name in given}).delete()
    Episode.objects.bulk_update(rows, ["entities", "causes"])


def _read_again(episodes: QuerySet[Episode]) -> None:
    ids = list(episodes.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
    episodes.update(read_at=None)
    consolidate_again(episodes=ids)
    waiting = Episode.objects.active().filter(pk__in=ids, state=ConsolidationState.POOLED)
    waiting.update(state=ConsolidationState.NEW, state_reason="", pooled_at=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedEpisode:
    """An episode that goes: what has to be known of it afterwards."""

    id: str
    user: str
    content_hash: str
    session: str
    is_derived: bool
    is_named: bool  # by who wants it gone; otherwise it only tells what does

    @property
    def takes_turns(self) -> bool:
        """Tell whether the turns go that it came of: a summary that is pulled along leaves its other turns."""
        return self.is_named or not self.is_derived


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedMemories:
    """What goes, locked until the transaction ends."""

    episodes: Sequence[LockedEpisode]
    conversations: Collection[int]  # those that were named, and those that the episodes came of


class _MoreStored(Exception):
    """Somebody stored more of it while the conversations were waited for."""


def lock_with_dependents(
    *, episodes: QuerySet[Episode], conversations: QuerySet[Conversation] | None = None, with_repeats: bool = False
) -> LockedMemories:  # fmt: skip
    """Lock episodes with all that tells the same, and then conversations: named ones, and those they came of.

    With repeats: and other turns of these conversations that hold the words of one.

    Nobody refers to an episode any more: a recall that would note its use waits, and finds none. Whoever reads a
    conversation finds it gone, and stores nothing. What was stored before that, while a conversation was waited for,
    has its locks taken anew, in their order: those taken before are given back.
    """
    named = Conversation.objects.none() if conversations is None else conversations
    while True:
        with suppress(_MoreStored), transaction.atomic():
            going = _ids_with_dependents(episodes, with_repeats=with_repeats)
            around = going | _verbatim_beside(_conversations(going, named))
            doomed = [one for one in _lock_episodes(around, named=_ids_of(episodes)) if one.id in going]
            held = _lock_conversations(_conversations(going, named))
            if _ids_with_dependents(episodes, with_repeats=with_repeats) - going or _verbatim_beside(held) - around:
                raise _MoreStored
            return LockedMemories(episodes=doomed, conversations=held)


def _ids_with_dependents(episodes: QuerySet[Episode], *, with_repeats: bool) -> set[str]:
    told = _ids_of(with_dependents(episodes=episodes))
    if not with_repeats:
        return told
    return told | _ids_of(with_dependents(episodes=Episode.objects.filter(pk__in=_repeats_of(told))))


def _repeats_of(ids: Collection[str]) -> set[str]:
    """Find the turns, as episodes, that hold all the words of one that was said in their conversation; not of a few."""
    fewest, found = settings.POLICY.turns.erased_words, set[str]()
    own = TurnEpisode.objects.filter(is_verbatim=True)
    said = own.filter(episode__in=ids).values_list("turn__conversation", "episode__text").distinct()
    for conversation, text in said:
        if len(text.split()) >= fewest:
            others = own.filter(turn__conversation=conversation).exclude(episode__in=ids)
            rows = others.values_list("episode", "episode__text").distinct()
            found |= {key for key, other in rows if holds_words(text=other, said=text)}
    return found


def with_dependents(*, episodes: QuerySet[Episode]) -> QuerySet[Episode]:
    """Return episodes with those merged into them, and with the summaries of the turns that all these came of."""
    named = episodes.order_by().values("pk")
    merged = Episode.objects.filter(merged_into__in=named).values("pk")
    turns = TurnEpisode.objects.filter(Q(episode__in=named) | Q(episode__in=merged)).values("turn")
    derived = Episode.objects.filter(is_derived=True, turns__in=turns).values("pk")
    return Episode.objects.filter(Q(pk__in=named) | Q(pk__in=merged) | Q(pk__in=derived))


def _ids_of(episodes: QuerySet[Episode]) -> set[str]:
    return set(episodes.order_by().values_list("pk", flat=True))


def _conversations(episodes: Collection[str], named: QuerySet[Conversation]) -> set[int]:
    """Find the conversations that are named, and those that some episodes came of."""
    read = TurnEpisode.objects.filter(episode__in=episodes).values("turn__conversation")
    found = Conversation.objects.filter(Q(pk__in=read) | Q(pk__in=named.values("pk")))
    return set(found.values_list("pk", flat=True))


def _verbatim_beside(conversations: Collection[int]) -> set[str]:
    """Find the facts of some conversations that keep exact words, which may be those of a turn that goes."""
    return _ids_of(Episode.objects.filter(turns__conversation__in=conversations).exclude(verbatim="").distinct())


def _lock_episodes(ids: Collection[str], *, named: Collection[str]) -> list[LockedEpisode]:
    """Lock episodes in one statement: in a second one the ids would begin anew, and the order with them."""
    rows = Episode.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    found = rows.values("id", "user", "content_hash", "session", "is_derived")
    return [LockedEpisode(**row, is_named=row["id"] in named) for row in found]


def _lock_conversations(ids: Collection[int]) -> list[int]:
    held = Conversation.objects.select_for_update().filter(pk__in=ids)
    return list(held.order_by("pk").values_list("pk", flat=True))
