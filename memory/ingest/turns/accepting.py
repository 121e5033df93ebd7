"""Accept turns: redacted, scanned for signals and buffered, in one transaction a batch (L1, L2).

A conversation's row is held while its turns are numbered; whoever reads it is told at most once a batch.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from memory.access import ensure_projects, find_projects
from memory.domain.buffering import DueReason, TurnState, why_due
from memory.domain.conversation import Role
from memory.domain.erasure import ToldTurn
from memory.domain.matter import matter_of
from memory.domain.policy import TurnsPolicy
from memory.domain.signals import Signal, scan_signal
from memory.ingest.arrival import ERASED, Arrival, Rejected
from memory.ingest.drafts import OUTSIDE
from memory.ingest.lines import BadLine
from memory.ingest.redaction import redact_lines
from memory.ingest.turns.erased import erasure_key_of, find_erased, told_turn
from memory.ingest.turns.lines import TurnLine, read_turn
from memory.ingest.turns.rows import (
    Growth,
    Held,
    Place,
    begin_conversations,
    find_known,
    grow_conversations,
    hold_conversations,
    insert_turns,
)
from memory.models import Conversation
from memory.signals import turns_due

ALL_ECHO = "all of it was ours"

_CONFLICT = Rejected(
    status=409,
    detail="This turn_id was used in this conversation for another turn.",
    errors={"turn_id": ["It was used for another turn."]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A turn that is stored now, or was before, and how its conversation stands."""

    signal: Signal
    buffered: int  # turns of its conversation that waited to be read when it had been added
    is_queued: bool  # they are to be read now
    is_duplicate: bool = False


TurnAnswer = Accepted | Rejected


class _ErasedMeanwhile(Exception):
    """The first erasure of the workspace came in between: nobody looked for what it erased."""


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A turn on its way to its row."""

    line: TurnLine
    place: Place
    told: ToldTurn
    line_hash: str
    signal: Signal
    is_echo: bool
    number: int = 0


def take_turns(*, raw_lines: Sequence[object], arrival: Arrival) -> list[TurnAnswer]:
    """Check turns as JSON gave them and accept the good ones; answer each in its place."""
    answers: dict[int, TurnAnswer] = {}
    lines: dict[int, TurnLine] = {}
    for index, raw in enumerate(raw_lines):
        try:
            lines[index] = read_turn(raw=raw, now=arrival.now)
        except BadLine as bad:
            answers[index] = Rejected(status=bad.status, detail=bad.detail, errors=bad.errors)
    answers.update(zip(lines, accept_turns(turns=list(lines.values()), arrival=arrival), strict=True))
    return [answers[index] for index in range(len(raw_lines))]


def accept_turns(*, turns: Sequence[TurnLine], arrival: Arrival) -> list[TurnAnswer]:
    """Store checked turns in their order; answer each in its place.

    A turn_id that its conversation has is answered as it was, and adds nothing; with other content it is refused, as
    is what was erased (L4).
    """
    drafts = _draft_all(redact_lines(workspace_id=arrival.workspace.pk, lines=turns), arrival)
    good = {index: draft for index, draft in enumerate(drafts) if isinstance(draft, _Draft)}
    accepted = _store_all(good, arrival) if good else {}
    return [draft if isinstance(draft, Rejected) else accepted[index] for index, draft in enumerate(drafts)]


def _draft_all(turns: Sequence[TurnLine], arrival: Arrival) -> list[_Draft | Rejected]:
    slugs = {slug for turn in turns if (slug := turn.project or arrival.default_project)}
    if arrival.allowed_projects is None:
        projects = ensure_projects(workspace=arrival.workspace, slugs=slugs, now=arrival.now)
    else:
        projects = find_projects(workspace=arrival.workspace, slugs=slugs)
    return [_draft(turn, arrival, projects) for turn in turns]


def _draft(line: TurnLine, arrival: Arrival, projects: Mapping[str, int]) -> _Draft | Rejected:
    slug = line.project or arrival.default_project or ""
    project_id = projects.get(slug)
    if arrival.allowed_projects is not None and project_id not in arrival.allowed_projects:
        return OUTSIDE
    matter = matter_of(line.content, line.speaker or "")
    return _Draft(
        line=line,
        place=Place(line.session, line.user or "", project_id),
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


def _store_all(drafts: Mapping[int, _Draft], arrival: Arrival) -> dict[int, TurnAnswer]:
    """Store drafts in one transaction; conversations that are new are made before it, so that it locks in one order.

    What was erased is looked for under the locks that whoever erases it needs, and first of all: of an erased
    conversation not even the name of its session comes back.
    """
    workspace_id, refused = arrival.workspace.pk, dict[int, TurnAnswer]()
    while left := {index: draft for index, draft in drafts.items() if index not in refused}:
        places = {draft.place for draft in left.values()}
        with suppress(_ErasedMeanwhile), transaction.atomic():
            held = hold_conversations(workspace_id=workspace_id, places=places)
            key = next(iter(held.values())).erasure_key if held else erasure_key_of(workspace_id)
            turns = {index: draft.told for index, draft in left.items()}
            if erased := find_erased(workspace_id=workspace_id, key=key, turns=turns):
                refused |= dict.fromkeys(erased, ERASED)
                continue
            if len(held) == len(places):
                return refused | _store(left, held, arrival)
        begin_conversations(workspace_id=workspace_id, places=places - held.keys(), now=arrival.now)
    return refused


def _store(drafts: Mapping[int, _Draft], held: Mapping[Place, Held], arrival: Arrival) -> dict[int, TurnAnswer]:
    answers: dict[int, TurnAnswer] = {}
    wanted = [(held[draft.place].id, draft.line.turn_id) for draft in drafts.values() if draft.line.turn_id]
    known = find_known(ids=wanted)
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


def _row(draft: _Draft, conversation_id: int, arrival: Arrival) -> dict[str, object]:
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

    def __init__(self, *, held: Held, now: datetime) -> None:
        self.held, self.now = held, now
        self.turns = self.buffered = 0
        self.has_high = False

    def add(self, draft: _Draft) -> Accepted:
        self.turns += 1
        self.buffered += not draft.is_echo
        self.has_high = self.has_high or draft.signal == Signal.HIGH
        draft.number = self.held.turn_count + self.turns
        return Accepted(signal=draft.signal, buffered=self.held.buffered + self.buffered, is_queued=False)

    def answer_again(self, draft: _Draft) -> Accepted:
        """Answer for a turn that is there already."""
        buffered = self.held.buffered + self.buffered
        return Accepted(signal=draft.signal, buffered=buffered, is_queued=False, is_duplicate=True)

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
    def growth(self) -> Growth:
        due = self.newly_due
        return Growth(
            conversation_id=self.held.id,
            turns=self.turns,
            buffered=self.buffered,
            due=due,
            is_sent=due is not None and not self.held.is_leased,  # who holds it looks again when done
        )


def _finish(
    answers: dict[int, TurnAnswer], drafts: Mapping[int, _Draft], batches: Mapping[Place, _Batch], arrival: Arrival
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
        if isinstance(answer, Accepted) and drafts[index].place in queued:
            answers[index] = Accepted(
                signal=answer.signal, buffered=answer.buffered, is_queued=True, is_duplicate=answer.is_duplicate
            )
    return answers


def _policy() -> TurnsPolicy:
    policy: TurnsPolicy = settings.POLICY.turns
    return policy
