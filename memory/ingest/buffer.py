"""Accept turns of conversations: redacted, scanned for signals and buffered, in one transaction a batch (L1, L2).

`buffer_raw_turns` checks and stores turns; a conversation's row is locked while its turns are numbered, and workers
are told at most once a batch. Erased turns are refused when they come again (L4).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction

from memory.access import ensure_projects, find_projects
from memory.domain.identity import TurnIdentity, digests_of_turn
from memory.domain.lifecycle import DueReason, TurnState, why_due
from memory.domain.policy_memories import TurnsPolicy
from memory.domain.taxonomy import Role
from memory.ingest.schemas import ERASED, BadLine, IngestContext, Rejected, TurnLine, read_turn
from memory.ingest.store import OUTSIDE_PROJECTS
from memory.language.explicit_requests import Signal, scan_signal
from memory.language.sentences import strip_echo
from memory.models import Conversation, Erased, Turn, Workspace
from memory.models.fields import insert_new
from memory.redaction.service import redact_lines
from memory.signals import turns_due

ALL_ECHO = "all of it was ours"
# Rows are locked in the order of their ids, as everywhere, so that no two batches wait for each other in a circle.
_LOCK = """
    SELECT c.session, c."user", c.project_id, c.id, c.turn_count, c.buffered, c.due_since IS NOT NULL,
        COALESCE(c.leased_until > statement_timestamp(), false), COALESCE(c.extracted_at, c.created_at),
        (SELECT erasure_key FROM memory_workspace WHERE id = c.workspace_id)
    FROM unnest(%s::text[], %s::text[], %s::bigint[]) AS given (session, "user", project_id)
    JOIN memory_conversation c ON c.session = given.session AND c."user" = given."user"
        AND c.project_id IS NOT DISTINCT FROM given.project_id
    WHERE c.workspace_id = %s ORDER BY c.id FOR NO KEY UPDATE OF c
"""
# One look into the unique index for each, as a join of a table that has just grown may be planned badly.
_KNOWN = """
    SELECT given.conversation_id, given.turn_id, turn.line_hash
    FROM unnest(%s::bigint[], %s::text[]) AS given (conversation_id, turn_id) CROSS JOIN LATERAL (
        SELECT line_hash FROM memory_turn
        WHERE conversation_id = given.conversation_id AND turn_id = given.turn_id LIMIT 1
    ) AS turn
"""
_GROW = """
    UPDATE memory_conversation c SET
        turn_count = c.turn_count + given.turns, buffered = c.buffered + given.buffered, last_turn_at = %s,
        due_since = CASE WHEN given.due <> '' THEN statement_timestamp() ELSE c.due_since END,
        due_reason = CASE WHEN given.due <> '' THEN given.due ELSE c.due_reason END,
        sent_at = CASE WHEN given.is_sent THEN statement_timestamp() ELSE c.sent_at END
    FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::text[], %s::bool[])
        AS given (id, turns, buffered, due, is_sent)
    WHERE c.id = given.id RETURNING (SELECT erasure_key FROM memory_workspace WHERE id = c.workspace_id)
"""


def buffer_turns(*, turns: Sequence[TurnLine], arrival: IngestContext) -> list[TurnAnswer]:
    """Store checked turns in their order; answer each in its place.

    A turn_id that its conversation has is answered as it was, and adds nothing; with other content it is refused, as
    is what was erased (L4).
    """
    drafts = _draft_all(redact_lines(workspace_id=arrival.workspace.pk, lines=turns), arrival)
    good = {index: draft for index, draft in enumerate(drafts) if isinstance(draft, _Draft)}
    accepted = _store_all(good, arrival) if good else {}
    return [draft if isinstance(draft, Rejected) else accepted[index] for index, draft in enumerate(drafts)]


def buffer_raw_turns(*, raw_lines: Sequence[object], arrival: IngestContext) -> list[TurnAnswer]:
    """Check turns as JSON gave them and accept the good ones; answer each in its place."""
    answers: dict[int, TurnAnswer] = {}
    lines: dict[int, TurnLine] = {}
    for index, raw in enumerate(raw_lines):
        try:
            lines[index] = read_turn(raw=raw, now=arrival.now)
        except BadLine as bad:
            answers[index] = Rejected.for_line(bad)
    answers.update(zip(lines, buffer_turns(turns=list(lines.values()), arrival=arrival), strict=True))
    return [answers[index] for index in range(len(raw_lines))]


_CONFLICT = Rejected(
    status=409,
    detail="This turn_id was used in this conversation for another turn.",
    errors={"turn_id": ["It was used for another turn."]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedTurn:
    """A turn that is stored now, or was before, and how its conversation stands."""

    signal: Signal
    buffered: int  # turns of its conversation that waited to be read when it had been added
    is_queued: bool  # they are to be read now
    is_duplicate: bool = False


TurnAnswer = BufferedTurn | Rejected


class _ErasedMeanwhile(Exception):
    """The first erasure of the workspace came in between: nobody looked for what it erased."""


class ConversationKey(NamedTuple):
    """What a conversation is known by inside its workspace."""

    session: str
    user: str
    project_id: int | None


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A turn on its way to its row."""

    line: TurnLine
    place: ConversationKey
    told: TurnIdentity
    line_hash: str
    signal: Signal
    is_echo: bool
    number: int = 0


def _draft_all(turns: Sequence[TurnLine], arrival: IngestContext) -> list[_Draft | Rejected]:
    slugs = {slug for turn in turns if (slug := turn.project or arrival.default_project)}
    if arrival.allowed_projects is None:
        projects = ensure_projects(workspace=arrival.workspace, slugs=slugs, now=arrival.now)
    else:
        projects = find_projects(workspace=arrival.workspace, slugs=slugs)
    return [_draft(turn, arrival, projects) for turn in turns]


def _draft(line: TurnLine, arrival: IngestContext, projects: Mapping[str, int]) -> _Draft | Rejected:
    slug = line.project or arrival.default_project or ""
    project_id = projects.get(slug)
    if arrival.allowed_projects is not None and project_id not in arrival.allowed_projects:
        return OUTSIDE_PROJECTS
    matter = strip_echo(line.content, line.speaker or "")
    return _Draft(
        line=line,
        place=ConversationKey(line.session, line.user or "", project_id),
        told=told_turn(line=line, project=slug),
        line_hash=line.fingerprint(),
        signal=_signal_of(Role(line.role), matter),
        is_echo=not matter,
    )


def _signal_of(role: Role, matter: str) -> Signal:
    """Scan what people and models say; what a tool prints, or a system is told, asks for nothing.

    A model's own emphasis is no reason to hurry: it counts as a hint.
    """
    if role in (Role.TOOL, Role.SYSTEM) or not matter:
        return Signal.NONE
    signal = scan_signal(text=matter, cues=settings.SIGNAL_CUES, policy=_policy())
    return Signal.MEDIUM if signal == Signal.HIGH and role == Role.ASSISTANT else signal


def _store_all(drafts: Mapping[int, _Draft], arrival: IngestContext) -> dict[int, TurnAnswer]:
    """Store drafts in one transaction; conversations that are new are made before it, so that it locks in one order.

    What was erased is looked for under the locks that whoever erases it needs, and first of all: of an erased
    conversation not even the name of its session comes back.
    """
    workspace_id, refused = arrival.workspace.pk, dict[int, TurnAnswer]()
    while left := {index: draft for index, draft in drafts.items() if index not in refused}:
        places = {draft.place for draft in left.values()}
        with suppress(_ErasedMeanwhile), transaction.atomic():
            held = lock_conversations(workspace_id=workspace_id, places=places)
            key = next(iter(held.values())).erasure_key if held else erasure_key_of(workspace_id)
            turns = {index: draft.told for index, draft in left.items()}
            if erased := find_erased_turns(workspace_id=workspace_id, key=key, turns=turns):
                refused |= dict.fromkeys(erased, ERASED)
                continue
            if len(held) == len(places):
                return refused | _store(left, held, arrival)
        create_conversations(workspace_id=workspace_id, places=places - held.keys(), now=arrival.now)
    return refused


def _store(
    drafts: Mapping[int, _Draft], held: Mapping[ConversationKey, LockedConversation], arrival: IngestContext
) -> dict[int, TurnAnswer]:
    answers: dict[int, TurnAnswer] = {}
    wanted = [(held[draft.place].id, draft.line.turn_id) for draft in drafts.values() if draft.line.turn_id]
    known = find_known_turns(ids=wanted)
    batches = {place: _Batch(held=row, now=arrival.now) for place, row in held.items()}
    rows = []
    for index, draft in drafts.items():
        batch, key = batches[draft.place], (held[draft.place].id, draft.line.turn_id or "")
        if key in known:
            answers[index] = batch.answer_again(draft) if known[key] == draft.line_hash else _CONFLICT
            continue
        if draft.line.turn_id:
            known[key] = draft.line_hash
        answers[index] = batch.add(draft)
        rows.append(_row(draft, batch.held.id, arrival))
    insert_turns(rows=rows)
    return _finish(answers, drafts, batches, arrival)


def _row(draft: _Draft, conversation_id: int, arrival: IngestContext) -> dict[str, object]:
    line = draft.line
    return {
        "workspace_id": arrival.workspace.pk,
        "conversation_id": conversation_id,
        "number": draft.number,
        "turn_id": line.turn_id,
        "role": line.role,
        "speaker": line.speaker or "",
        "content": line.content,
        "line_hash": draft.line_hash,
        "signal": draft.signal,
        "state": TurnState.ECHO if draft.is_echo else TurnState.BUFFERED,
        "state_reason": ALL_ECHO if draft.is_echo else "",
        "created_at": arrival.now,
        "occurred_at": line.occurred_at or arrival.now,
        "settled_at": arrival.now if draft.is_echo else None,
    }


class _Batch:
    """What a batch adds to one conversation."""

    def __init__(self, *, held: LockedConversation, now: datetime) -> None:
        self.held, self.now = held, now
        self.turns = self.buffered = 0
        self.has_high = False

    def add(self, draft: _Draft) -> BufferedTurn:
        self.turns += 1
        self.buffered += not draft.is_echo
        self.has_high = self.has_high or draft.signal == Signal.HIGH
        draft.number = self.held.turn_count + self.turns
        return BufferedTurn(signal=draft.signal, buffered=self.held.buffered + self.buffered, is_queued=False)

    def answer_again(self, draft: _Draft) -> BufferedTurn:
        """Answer for a turn that is there already."""
        buffered = self.held.buffered + self.buffered
        return BufferedTurn(signal=draft.signal, buffered=buffered, is_queued=False, is_duplicate=True)

    @property
    def newly_due(self) -> DueReason | None:
        """Name why the buffer is to be read, if it was not before."""
        if self.held.is_due or not self.buffered:
            return None
        return why_due(
            buffered=self.held.buffered + self.buffered,
            has_high=self.has_high,
            since_extraction=self.now - self.held.began,
            policy=_policy(),
        )

    @property
    def growth(self) -> ConversationGrowth:
        due = self.newly_due
        return ConversationGrowth(
            conversation_id=self.held.id,
            turns=self.turns,
            buffered=self.buffered,
            due=due,
            is_sent=due is not None and not self.held.is_leased,  # who holds it looks again when done
        )


def _finish(
    answers: dict[int, TurnAnswer],
    drafts: Mapping[int, _Draft],
    batches: Mapping[ConversationKey, _Batch],
    arrival: IngestContext,
) -> dict[int, TurnAnswer]:
    """Write down how conversations have grown, tell workers, and say in each answer whether they were told."""
    growths = {place: batch.growth for place, batch in batches.items()}
    [looked_with] = {batch.held.erasure_key for batch in batches.values()}  # of one statement
    grown = [growth for growth in growths.values() if growth.turns]
    if grown and grow_conversations(growths=grown, now=arrival.now) != looked_with:
        raise _ErasedMeanwhile
    sent = [growth.conversation_id for growth in grown if growth.is_sent]
    if sent:
        turns_due.send(sender=Conversation, conversation_ids=sent)
    queued = {place for place, batch in batches.items() if batch.held.is_due or growths[place].due}
    for index, answer in answers.items():
        if isinstance(answer, BufferedTurn) and drafts[index].place in queued:
            answers[index] = BufferedTurn(
                signal=answer.signal, buffered=answer.buffered, is_queued=True, is_duplicate=answer.is_duplicate
            )
    return answers


def _policy() -> TurnsPolicy:
    policy: TurnsPolicy = settings.POLICY.turns
    return policy


def told_turn(*, line: TurnLine, project: str) -> TurnIdentity:
    """Return what a redacted line can be told by."""
    return TurnIdentity(
        user=line.user or "",
        session=line.session,
        project=project,
        role=line.role,
        content=line.content,
        turn_id=line.turn_id,
        occurred_at=line.occurred_at,
    )


def erasure_key_of(workspace_id: int) -> bytes | None:
    """Return the key under which a workspace keeps what was erased; None where nothing was."""
    key = Workspace.objects.values_list("erasure_key", flat=True).get(pk=workspace_id)
    return None if key is None else bytes(key)


def find_erased_turns(*, workspace_id: int, key: bytes | None, turns: Mapping[int, TurnIdentity]) -> set[int]:
    """Return which of some turns were erased; without a key there is nothing to look for."""
    if key is None:
        return set()
    fewest = settings.POLICY.turns.erased_words
    digests = {place: digests_of_turn(key=key, turn=turn, fewest_words=fewest) for place, turn in turns.items()}
    asked = set().union(*digests.values())
    rows = Erased.objects.for_workspace(workspace_id).filter(digest__in=asked)
    erased = set(rows.values_list("digest", flat=True))
    return {place for place, marks in digests.items() if not erased.isdisjoint(marks)}


class LockedConversation(NamedTuple):
    """A conversation as its row stands, locked until the transaction ends."""

    id: int
    turn_count: int
    buffered: int
    is_due: bool
    is_leased: bool
    began: datetime  # since when no extraction was: the last one, or the first turn
    erasure_key: bytes | None  # the workspace's, as it was before anybody was waited for


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationGrowth:
    """What a batch adds to a conversation."""

    conversation_id: int
    turns: int
    buffered: int
    due: DueReason | None  # None: as it was
    is_sent: bool


def lock_conversations(
    *, workspace_id: int, places: Collection[ConversationKey]
) -> dict[ConversationKey, LockedConversation]:
    """Lock those of some conversations that exist, until the transaction ends."""
    columns = map(list, zip(*places, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [*columns, workspace_id])
        return {ConversationKey(*row[:3]): LockedConversation(*row[3:]) for row in cursor.fetchall()}


def create_conversations(*, workspace_id: int, places: Collection[ConversationKey], now: datetime) -> None:
    """Make conversations that are not there yet."""
    rows = [
        {**place._asdict(), "workspace_id": workspace_id, "created_at": now, "last_turn_at": now}
        for place in sorted(places, key=lambda place: (place.session, place.user, place.project_id or 0))
    ]
    insert_new(model=Conversation, rows=rows)


def find_known_turns(*, ids: Sequence[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """Return the hashes of the stored lines among some turns, by conversation and turn_id."""
    if not ids:
        return {}
    conversations, turns = zip(*ids, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [list(conversations), list(turns)])
        return {(conversation, turn): line_hash for conversation, turn, line_hash in cursor.fetchall()}


def insert_turns(*, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert turns of conversations that the caller holds: nobody else can number any."""
    insert_new(model=Turn, rows=rows)


def grow_conversations(*, growths: Sequence[ConversationGrowth], now: datetime) -> bytes | None:
    """Write down what a batch added; the caller holds the conversations. Return the workspace's erasure key by now."""
    columns: list[list[Any]] = [
        [growth.conversation_id for growth in growths],
        [growth.turns for growth in growths],
        [growth.buffered for growth in growths],
        [str(growth.due or "") for growth in growths],
        [growth.is_sent for growth in growths],
    ]
    with connection.cursor() as cursor:
        cursor.execute(_GROW, [now, *columns])
        key: bytes | None = cursor.fetchall()[0][0]
    return key
