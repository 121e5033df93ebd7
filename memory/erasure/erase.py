"""Erase memories: no text, vector, history, reply or belief of them is left in the database (B19).

`erase_memories` erases episodes and beliefs, `erase_user` all that is one user's, `erase_workspace` everything;
`remove_workspace` deletes the workspace itself. The same words are refused from then on, by a keyed hash (L4). What
other memories said stays: beliefs that may quote an erased episode go with it, and what else they rested on is
consolidated anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from django.apps import apps
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from memory.consolidation.episode_states import restore_superseded
from memory.consolidation.rebuild import check_no_cycle_open, consolidate_again, rebuild_some_beliefs
from memory.domain.errors import EngramError
from memory.domain.identity import KEY_BYTES, Actor, TurnIdentity, digest_of_statement, digest_of_words, digests_of_turn
from memory.domain.lifecycle import BeliefStatus, TurnState
from memory.erasure.anonymize import (
    anonymize_calls,
    anonymize_references,
    clear_statistics,
    delete_rows,
    drop_log_entries,
    drop_reasons,
    drop_sessions,
    drop_stream,
)
from memory.erasure.references import Ids, References, find_references, founding_episodes
from memory.forgetting import LockedEpisode, LockedMemories, drop_claims, lock_with_dependents
from memory.graph.edges import lock_linking
from memory.graph.linking import boxes_of, drop_orphaned_names
from memory.ingest.scheduling import count_waiting_turns
from memory.ingest.turn_episodes import to_said_turn
from memory.language.sentences import turns_that_repeat
from memory.ledger.evidence import recompute_without, supporting_rows
from memory.ledger.transactions import NotFound, lock_beliefs, lock_workspace
from memory.models import (
    ApiKey,
    Belief,
    Conversation,
    Episode,
    Erased,
    Evidence,
    Membership,
    MemoryFile,
    ModelCall,
    Project,
    Turn,
    TurnEpisode,
    Workspace,
)
from memory.models.fields import insert_new
from memory.publishing.memory_files import disable_files

log = structlog.get_logger(__name__)
_CHUNK = 2_000  # turns that are held in memory at once


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
    _lock_out_others(workspace)
    doomed = lock_with_dependents(episodes=episodes, with_repeats=True)
    return _erase_locked(workspace, doomed, beliefs, actor=actor, now=now)


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


def _lock_out_others(workspace: Workspace) -> None:
    """Lock gates and linking; raise CycleIsOpen while a cycle runs."""
    lock_workspace(workspace.pk)
    check_no_cycle_open(workspace=workspace)
    lock_linking(workspace.pk, waits=True)


def _erase_locked(
    workspace: Workspace, doomed: LockedMemories, beliefs: Collection[str], *, actor: Actor, now: datetime
) -> Erasure:
    """Erase what the caller has locked, refuse its words from now on, and put the rest of the memory in order."""
    episodes = Episode.objects.filter(pk__in=[episode.id for episode in doomed.episodes])
    traces = find_references(episodes=episodes, beliefs=beliefs)
    _deny(workspace, doomed.episodes, _lock_beliefs(traces), named=frozenset(beliefs))

    # What can only be read while the rows are there.
    gone = [episode.id for episode in doomed.episodes]
    company = founding_episodes(beliefs=traces.quoting - traces.named)
    boxes = boxes_of(episodes=episodes)
    bereft = _stated_without_support(episodes, traces)

    # Undo what they did, then delete them: the rows, their turns, and the names, log lines and sessions left over.
    restore_superseded(workspace_id=workspace.pk, by=gone, actor=actor, now=now)
    drop_claims(claims=traces.claims)
    drop_reasons(beliefs=traces.beliefs)
    fallen = anonymize_references(traces=traces)
    telling = [episode.id for episode in doomed.episodes if episode.takes_turns]
    turns = erase_turns(workspace=workspace, episodes=telling, conversations=doomed.conversations)
    delete_rows(model=Belief, ids=sorted(traces.beliefs))
    delete_rows(model=Episode, ids=gone)
    drop_orphaned_names(workspace_id=workspace.pk, boxes=boxes)
    drop_log_entries(ids=[*gone, *traces.beliefs])
    drop_sessions(workspace=workspace, sessions={episode.session for episode in doomed.episodes} - {""})

    # The rest of the memory, as if they had never been.
    released = consolidate_again(episodes=company)
    recomputed = rebuild_some_beliefs(workspace=workspace, beliefs=traces.leaning, fallen=fallen, now=now)
    stated = lock_beliefs(bereft)
    archived = recompute_without(beliefs=stated, supported=stated, actor=actor, now=now)
    clear_statistics(workspace=workspace)

    erasure = Erasure(
        episodes=len(gone),
        beliefs=len(traces.beliefs),
        turns=turns,
        calls=len(traces.calls),
        released=released,
        recomputed=len(recomputed),
        archived=len(archived),
        ids=BeliefIds(erased=traces.beliefs, recomputed=recomputed, archived=archived),
    )
    log.info("memories_erased", workspace=workspace.pk, actor=str(actor), **erasure.counts)
    return erasure


def _lock_beliefs(traces: References) -> list[Belief]:
    locked = Belief.objects.select_for_update().filter(pk__in=traces.beliefs).defer("search")
    return list(locked.order_by("pk"))


def _deny(workspace: Workspace, doomed: Sequence[LockedEpisode], beliefs: Sequence[Belief], *, named: Ids) -> None:
    """Refuse the words of episodes from now on, and the statements of beliefs that somebody does not want."""
    unwanted = [
        belief
        for belief in beliefs
        if belief.pk in named or belief.status == BeliefStatus.FORGOTTEN or belief.archived_by_person_at
    ]
    deny_words(
        workspace=workspace,
        words=[(episode.user, episode.content_hash) for episode in doomed],
        statements=[(belief.user, belief.statement) for belief in unwanted],
    )


def _stated_without_support(episodes: QuerySet[Episode], traces: References) -> list[str]:
    """Find the beliefs that no cycle made and that lose support: a replay knows nothing of them."""
    gone = Q(episode__in=episodes.order_by().values("pk")) | Q(claim__in=traces.claims)
    lost = supporting_rows(rows=Evidence.objects.filter(gone))
    bereft = traces.leaning.intersection(lost.values_list("belief_id", flat=True))
    of_no_cycle = Q(created_in=None) | Q(created_in__undone_at__isnull=False)
    return list(Belief.objects.filter(of_no_cycle, pk__in=bereft).values_list("pk", flat=True))


@transaction.atomic
def erase_user(*, workspace: Workspace, user: str, actor: Actor, now: datetime) -> Erasure:
    """Erase all that is one user's in a workspace: conversations, episodes, and the beliefs that are theirs alone.

    Beliefs of nobody in particular that may quote one of the episodes go as well.
    """
    _lock_out_others(workspace)
    theirs = Conversation.objects.for_workspace(workspace.pk).filter(user=user)
    episodes = Episode.objects.for_workspace(workspace.pk).filter(user=user)
    beliefs = Belief.objects.for_workspace(workspace.pk).filter(user=user)
    doomed = lock_with_dependents(episodes=episodes, conversations=theirs)
    said = set(theirs.filter(pk__in=doomed.conversations).values_list("pk", flat=True))
    turns = erase_conversations(workspace=workspace, conversations=said)
    others = replace(doomed, conversations=set(doomed.conversations) - said)
    named = list(beliefs.values_list("pk", flat=True))
    erasure = _erase_locked(workspace, others, named, actor=actor, now=now)
    drop_stream(workspace=workspace, user=user)
    return replace(erasure, turns=erasure.turns + turns)


@transaction.atomic
def erase_workspace(*, workspace: Workspace, actor: Actor) -> Erasure:
    """Erase every memory of a workspace, and what was refused in it: as new, but for its people, keys and projects.

    It publishes no more (P11). Raise CycleIsOpen, or SectionStays where a MEMORY.md would keep its beliefs.
    """
    _lock_out_others(workspace)
    disable_files(files=MemoryFile.objects.for_workspace(workspace))
    ids = [list(model.objects.for_workspace(workspace.pk).values_list("pk", flat=True)) for model in (Episode, Belief)]
    calls, turns = (model.objects.for_workspace(workspace.pk).count() for model in (ModelCall, Turn))
    drop_log_entries(ids=[*ids[0], *ids[1]])
    wipe_workspace(workspace=workspace)
    clear_statistics(workspace=workspace)
    erasure = Erasure(episodes=len(ids[0]), beliefs=len(ids[1]), turns=turns, calls=calls)
    log.info("workspace_erased", workspace=workspace.pk, actor=str(actor), **erasure.counts)
    return erasure


@transaction.atomic
def remove_workspace(*, name: str) -> bool:
    """Delete a workspace and every row of it; false where there is none of this name.

    Raise SectionStays where a MEMORY.md would keep its beliefs (P11).
    """
    disable_files(files=MemoryFile.objects.filter(workspace__name=name))
    deleted, _ = Workspace.objects.filter(name=name).delete()
    return bool(deleted)


KEPT: tuple[type[Model], ...] = (Membership, ApiKey, Project)


def wipe_workspace(*, workspace: Workspace) -> None:
    """Delete every row of a workspace but those of its people, keys and projects.

    The database asks at the end of the transaction whether all references still lead somewhere, so that the order of
    tables does not matter.
    """
    with connection.cursor() as cursor:
        for model in memory_models():
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(f"DELETE FROM {table} WHERE workspace_id = %s", [workspace.pk])  # noqa: S608  (a table's name)
    Workspace.objects.filter(pk=workspace.pk).update(erasure_key=None)


def memory_models() -> Iterator[type[Model]]:
    """Yield what a workspace's memories are kept in."""
    for model in apps.get_app_config("memory").get_models():
        names = {field.name for field in model._meta.concrete_fields}
        if "workspace" in names and model not in KEPT:
            yield model


def erase_conversations(*, workspace: Workspace, conversations: Collection[int]) -> int:
    """Delete conversations that the caller holds, with all their turns; return how many these were.

    Of the calls that saw them nothing but the cost is left.
    """
    anonymize_calls(calls=ModelCall.objects.filter(conversation__in=conversations).values_list("pk", flat=True))
    gone = _delete_turns(workspace, Turn.objects.filter(conversation__in=conversations))
    Conversation.objects.filter(pk__in=conversations).delete()
    return gone


def erase_turns(*, workspace: Workspace, episodes: Collection[str], conversations: Collection[int]) -> int:
    """Delete the turns that some episodes came of, and the conversations of which no turn is left.

    The caller holds these conversations. Other turns of theirs that hold all of an episode's words go as well, unless
    they are episodes of their own. Return how many turns went.
    """
    told = TurnEpisode.objects.filter(episode__in=episodes, turn__conversation__in=conversations)
    turns = set(told.values_list("turn_id", flat=True)) | _repeating(conversations, episodes)
    Episode.objects.filter(turns__in=turns).exclude(verbatim="").update(verbatim="")  # the words of the whole turn
    gone = _delete_turns(workspace, Turn.objects.filter(pk__in=turns))
    left = Exists(Turn.objects.filter(conversation=OuterRef("pk")))
    Conversation.objects.filter(~left, pk__in=conversations).delete()
    _recount(conversations)
    return gone


def _repeating(conversations: Collection[int], episodes: Collection[str]) -> set[int]:
    """Find the turns of some conversations that hold all the words of an episode that came of one of them."""
    own = TurnEpisode.objects.filter(turn__conversation__in=conversations, is_verbatim=True)
    standing = set(own.exclude(episode__in=episodes).values_list("turn_id", flat=True))
    found: set[int] = set()
    for key in conversations:
        told = Episode.objects.filter(pk__in=episodes, turns__conversation=key).distinct()
        turns = {turn.number: turn for turn in Turn.objects.filter(conversation=key)}
        texts = list(told.values_list("text", flat=True))
        repeating = turns_that_repeat(texts=texts, turns=[to_said_turn(turn) for turn in turns.values()])
        found |= {turns[one.number].pk for one in repeating}
    return found - standing


def _recount(conversations: Collection[int]) -> None:
    """Count anew what waits: turns that nobody has read yet may be gone."""
    for key in conversations:
        counts = count_waiting_turns(conversation_id=key)
        rows = Conversation.objects.filter(pk=key)
        rows.update(**counts, **({} if counts["buffered"] else {"due_since": None, "due_reason": ""}))


def _delete_turns(workspace: Workspace, turns: QuerySet[Turn]) -> int:
    """Delete turns, and see that they are refused from now on (L4); return how many they were."""
    deny_turns(workspace=workspace, turns=turns)
    TurnEpisode.objects.filter(turn__in=turns.values("pk")).delete()
    gone, _ = turns.delete()
    return gone


class TurnIsRead(EngramError, RuntimeError):
    """A turn that was read, or is being read, cannot be forgotten by itself: what came of it can."""


_UNREAD_STATES = (TurnState.BUFFERED, TurnState.FAILED, TurnState.ECHO)


@transaction.atomic
def erase_unread_turn(*, turn: Turn) -> None:
    """Delete a turn that became nothing, and refuse it when it comes again; raise TurnIsRead for any other.

    It may have been taken up and put back: of the calls that saw its conversation nothing but the cost is left. Raise
    NotFound for one that was erased since it was looked up.
    """
    held = Conversation.objects.select_for_update(no_key=True).filter(pk=turn.conversation_id).first()
    found = Turn.objects.filter(pk=turn.pk).first()
    if held is None or found is None:
        raise NotFound("There is no such turn any more.")
    unread = Turn.objects.filter(pk=turn.pk, state__in=_UNREAD_STATES, episodes=None)
    if not unread.exists():
        raise TurnIsRead("This turn does not wait any more: see what it became, and forget that.")
    anonymize_calls(calls=ModelCall.objects.filter(conversation=held).values_list("pk", flat=True))
    _delete_turns(turn.workspace, Turn.objects.filter(pk=turn.pk))
    if Turn.objects.filter(conversation=held).exists():
        _recount([held.pk])
    else:
        held.delete()


Words = tuple[str, str]  # a user, and the hash of an episode's words
Statement = tuple[str, str]  # a user, and what a belief says


def deny_words(*, workspace: Workspace, words: Iterable[Words], statements: Iterable[Statement]) -> None:
    """Note that some words, and some statements, do not come back."""
    key = _erasure_key(workspace)
    digests = {digest_of_words(key=key, user=user, words=hashed) for user, hashed in words}
    digests |= {digest_of_statement(key=key, user=user, statement=text) for user, text in statements}
    _add_to_denylist(workspace, digests)


def deny_turns(*, workspace: Workspace, turns: QuerySet[Turn]) -> None:
    """Note that some turns do not come back, by a replay, an import or whatever else sends them."""
    key, fewest = _erasure_key(workspace), settings.POLICY.turns.erased_words
    rows = turns.select_related("conversation__project").iterator(chunk_size=_CHUNK)
    digests = {mark for turn in rows for mark in digests_of_turn(key=key, turn=_as_told(turn), fewest_words=fewest)}
    _add_to_denylist(workspace, digests)


def _as_told(turn: Turn) -> TurnIdentity:
    place = turn.conversation
    return TurnIdentity(
        user=place.user,
        session=place.session,
        project=place.project.slug if place.project else "",
        role=turn.role,
        content=turn.content,
        turn_id=turn.turn_id,
        occurred_at=None if turn.occurred_at == turn.created_at else turn.occurred_at,  # when it was stored: not said
    )


def _add_to_denylist(workspace: Workspace, digests: Iterable[str]) -> None:
    insert_new(model=Erased, rows=[{"workspace_id": workspace.pk, "digest": digest} for digest in sorted(digests)])


def _erasure_key(workspace: Workspace) -> bytes:
    """Return the workspace's key, drawn when it is needed first."""
    mine = Workspace.objects.filter(pk=workspace.pk)
    mine.filter(erasure_key=None).update(erasure_key=secrets.token_bytes(KEY_BYTES))
    return bytes(mine.values_list("erasure_key", flat=True).get() or b"")
