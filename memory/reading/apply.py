"""Apply a reading: its claims, what it says of beliefs (E3), and what it founds, in one transaction (F3).

`apply_reading` writes new statements first, since what else a reply says may name them; then evidence, in the order
of the messages. Whoever calls it holds the workspace's lock. In a cycle every statement and every reading leaves a job
row, so that rebuilding needs no call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import takewhile
from typing import Any

import structlog
from django.db.models import Count, Min

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, Reason
from memory.domain.taxonomy import Category, Mode
from memory.language.words import detect_language
from memory.ledger.beliefs import BeliefDraft, CreationResult, StatementVector, compare_ahead, create_belief
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EvidenceInput, record_evidence, supporting_rows
from memory.ledger.gates import is_closed
from memory.ledger.transactions import Author, LineageInput, lock_beliefs
from memory.llm.reader import reader
from memory.llm.replies import AboutBelief, BeliefWord, NewStatement, Reading
from memory.llm.requests import ReadingRequest
from memory.models import Basis, Belief, Claim, Episode, Evidence, EvidenceKind, FactType, LineageKind, MetricCounter
from memory.models.audit import DROPPED_LINES
from memory.search.vectors import read_belief_vectors, store_claim_vectors
from memory.text.names import name_user

log = structlog.get_logger(__name__)
READ_REASON = "a reading"
LASTING, EVENT = "lasting", "event"
_PLAIN_CONFIDENCE = 0.8  # of a claim that was told: implied or better (L3)
_SUBJECT_LENGTH, _ENTITY_LENGTH, _MOST_ENTITIES = 200, 200, 32
_USUAL_IMPORTANCE = 5
_LABEL_LENGTH = 100  # of a counter's label


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredReading:
    """A request with its reply: who gave it, in which call, and the vectors (768) of its statements by their words."""

    request: ReadingRequest
    reply: Reading
    reader: str
    call_id: int | None
    model: str
    vectors: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundedStatement:
    """A statement of a reading as it was stored: its claim, the draft of its belief, and what became of that."""

    claim: Claim
    draft: BeliefDraft | None = None  # None for an event, which founds nothing
    made: CreationResult | None = None
    descent: LineageInput | None = None
    vector: Any = None

    @property
    def belief_id(self) -> str:
        """Return the belief that says it, "" where none does."""
        return self.made.belief.pk if self.made and self.made.belief else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefVerdict:
    """What a message says of a belief, as it became evidence; `gained` tells whether that is new and moved it."""

    belief_id: str
    episode_id: str
    verdict: Verdict
    ends: bool  # it says that the belief was so and is so no longer
    kind: EvidenceKind
    reason: str
    valid_at: datetime | None
    gained: bool = False


@dataclass(slots=True, kw_only=True)
class AppliedReading:
    """What came of a reading."""

    statements: list[FoundedStatement] = field(default_factory=list)
    verdicts: list[BeliefVerdict] = field(default_factory=list)

    @property
    def beliefs(self) -> set[str]:
        """Return the ids of the beliefs that it touched."""
        founded = {statement.belief_id for statement in self.statements if statement.belief_id}
        return founded | {verdict.belief_id for verdict in self.verdicts}


def apply_reading(*, answered: AnsweredReading, author: Author) -> AppliedReading:
    """Store what a reading says; nothing of messages that are gone or were read meanwhile.

    A reading that was shown a message that is gone meanwhile may tell of it: then nothing of it is stored. Raise
    EmbeddingUnavailable where the workspace has moved to another model than the vectors'.
    """
    shown = {message.id for message in answered.request.episodes}
    locked = Episode.objects.active().filter(pk__in=shown).select_for_update(no_key=True).order_by("pk").defer("search")
    rows = {row.pk: row for row in locked}
    if rows.keys() != shown:
        log.warning("reading_outdated", gone=len(shown) - len(rows))
        return AppliedReading()
    messages = [rows[message.id] for message in answered.request.read]
    _count_dropped(answered)
    application = _Application(answered=answered, author=author, messages=messages)
    application.apply()
    _give_traits(messages, [statement.claim for statement in application.applied.statements])
    unread = [row.pk for row in messages if row.read_at is None]
    Episode.objects.filter(pk__in=unread).update(read_at=author.now)
    return application.applied


def _count_dropped(answered: AnsweredReading) -> None:
    """Count the lines that nothing comes of: a model that names what is not there is to be seen."""
    reply = answered.reply
    if dropped := sum(line is None for line in (*reply.new, *reply.about)):
        log.warning("reading_lines_dropped", lines=dropped, model=answered.reader)
        MetricCounter.objects.add(name=DROPPED_LINES, label=answered.reader[:_LABEL_LENGTH], count=dropped)


def compare_statements(*, answered: AnsweredReading) -> None:
    """Have this machine's reader compare what a reply states with what is believed, before it is applied (F3).

    What holds again is compared when it is applied; the reader is loaded by then.
    """
    reader().load()
    rows = Episode.objects.defer("search").in_bulk([message.id for message in answered.request.read])
    for line in answered.reply.new:
        numbers = answered.vectors.get(line.statement) if line is not None and line.kind == LASTING else None
        episode = rows.get(answered.request.read[line.m - 1].id) if line is not None else None
        if line is None or numbers is None or episode is None:
            continue
        draft = BeliefDraft(
            workspace_id=episode.workspace_id,
            statement=line.statement,
            subject=line.subject[:_SUBJECT_LENGTH],
            language=detect_language(line.statement) or episode.language,
            project_id=episode.project_id,
            user=episode.user,
        )
        shown = answered.request.beliefs
        compare_ahead(
            draft=draft,
            vector=StatementVector(model=answered.model, numbers=numbers),
            besides=[belief.id for belief in shown if belief.statement.casefold() != line.statement.casefold()],
        )


def _give_traits(messages: Sequence[Episode], claims: Sequence[Claim]) -> None:
    """Give messages what their claims tell of them where the sender said nothing: category, names, reasons (E1)."""
    told = {claim.episode_id for claim in claims}
    for message in messages:
        own = [claim for claim in claims if claim.episode_id == message.pk]
        lasting = (claim.category for claim in own if claim.kind == LASTING and claim.category)
        names = dict.fromkeys(name for claim in own for name in claim.entities)
        reasons = dict.fromkeys(claim.because.statement for claim in own if claim.because)
        message.category = message.category or next(lasting, "")
        message.entities = message.entities or list(names)[:_MOST_ENTITIES]
        message.causes = message.causes or list(reasons)
    Episode.objects.bulk_update([row for row in messages if row.pk in told], ["category", "entities", "causes"])


class _Application:
    """One reading on its way into rows."""

    def __init__(self, *, answered: AnsweredReading, author: Author, messages: Sequence[Episode]) -> None:
        self.answered, self.author, self.messages = answered, author, messages
        self.vectors = dict(answered.vectors)
        self.claim_vectors: dict[int, Any] = {}
        stored = Claim.objects.filter(episode__in=messages).values_list("episode_id")
        self.claim_counts = Counter(dict(stored.annotate(Count("pk")).order_by()))
        self.applied = AppliedReading()
        shown = lock_beliefs([belief.id for belief in answered.request.beliefs])
        by_id = {belief.pk: belief for belief in shown}
        self.beliefs = {
            str(number): by_id[belief.id]
            for number, belief in enumerate(answered.request.beliefs, start=1)
            if belief.id in by_id
        }

    def apply(self) -> None:
        reply = self.answered.reply
        for number, line in enumerate(reply.new, start=1):
            if line is not None and self._is_unread(line.m):
                self._create_statement(f"n{number}", line)
        said = [line for line in reply.about if line is not None and self._is_unread(line.m)]
        named = {(line.m, line.b) for line in said}
        replaced = [
            AboutBelief(m=line.m, b=line.replaces, verdict=BeliefWord.ENDED, since=line.since)
            for line in reply.new
            if line is not None and line.replaces and line.kind == LASTING and self._is_unread(line.m)
            and (line.m, line.replaces) not in named
        ]  # fmt: skip
        one_each = {(word.m, word.b): word for word in [*said, *replaced]}
        # Of one message what holds comes first, as in a replay: what it bears out or opens again, then what it ends.
        for word in sorted(one_each.values(), key=lambda word: (word.m, word.verdict is not BeliefWord.SUPPORTS)):
            if (belief := self.beliefs.get(word.b)) is not None:
                self._apply_word(word, belief, self.messages[word.m - 1])
        if self.claim_vectors:
            store_claim_vectors(
                workspace_id=self.messages[0].workspace_id, model=self.answered.model, vectors=self.claim_vectors
            )

    def _is_unread(self, m: int) -> bool:
        return self.messages[m - 1].read_at is None

    # --- New statements

    def _create_statement(self, label: str, line: NewStatement) -> None:
        """Store a claim; a lasting one founds a belief, or joins the one that says the same."""
        episode = self.messages[line.m - 1]
        reason = self.beliefs.get(line.because)
        replaced = self.beliefs.get(line.replaces)
        if replaced is not None and (line.kind == EVENT or not _is_of(replaced, episode)):
            replaced = None
        if replaced is not None and (holds_since := _holds_since(replaced, _true_at(line, episode))):
            # It comes late: what it names as replaced is what came after it, and it held until then (F2).
            last_day = holds_since.date() - timedelta(days=1)
            line, replaced = line.model_copy(update={"until": min(line.until or last_day, last_day)}), None
        claim = self._store_claim(line, episode, reason)
        if line.kind == EVENT:
            self.applied.statements.append(FoundedStatement(claim=claim))
            return
        descent = None
        if replaced is not None:
            descent = LineageInput(parents=[replaced], kind=LineageKind.SUPERSESSION, reason=Reason.CHANGED)
        draft = self._draft(line, claim, episode, is_successor=descent is not None)
        statement = self._create(claim, draft, episode, descent)
        self.applied.statements.append(statement)
        if statement.made and statement.made.belief:
            self.beliefs[label] = statement.made.belief

    def _store_claim(self, line: NewStatement, episode: Episode, reason: Belief | None) -> Claim:
        is_change = bool(line.replaces) or line.since is not None
        self.claim_counts[episode.pk] += 1
        claim = Claim.objects.create(
            workspace_id=episode.workspace_id,
            episode=episode,
            number=self.claim_counts[episode.pk],
            sentence=line.statement,
            subject=line.subject[:_SUBJECT_LENGTH],
            mode=Mode.CHANGE if is_change else Mode.ASSERTED,
            kind=line.kind,
            category=line.category,
            entities=[name[:_ENTITY_LENGTH] for name in line.entities if name][:_MOST_ENTITIES],
            importance=line.importance,
            because=reason,
            confidence=_PLAIN_CONFIDENCE,
            is_told=line.kind == LASTING,
            holds_from=line.since,
            holds_until=line.until,
            drew_on=self._leaned_on(episode),
            language=detect_language(line.statement) or episode.language,
            reader=self.answered.reader[:100],
            created_at=self.author.now,
        )
        if (vector := self.vectors.get(line.statement)) is not None:
            self.claim_vectors[claim.pk] = vector
        return claim

    def _leaned_on(self, episode: Episode) -> list[str]:
        """Return what was shown before a message of its conversation, of which its claims may tell (E1)."""
        if not episode.session:
            return []
        before = takewhile(lambda message: message.id != episode.pk, self.answered.request.episodes)
        return sorted(message.id for message in before if message.session == episode.session)

    def _draft(self, line: NewStatement, claim: Claim, episode: Episode, *, is_successor: bool) -> BeliefDraft:
        begins = _start_of(line.since) if line.since else None
        return BeliefDraft(
            workspace_id=episode.workspace_id,
            statement=line.statement,
            subject=line.subject[:_SUBJECT_LENGTH],
            language=claim.language,
            project_id=episode.project_id,
            user=episode.user,
            fact_type=_FACT_TYPES.get(line.category, FactType.FACTUAL),
            importance=line.importance or _USUAL_IMPORTANCE,
            is_told=True,
            valid_from=begins or (self._said_at(episode) if is_successor else None),
            valid_until=_start_of(line.until + timedelta(days=1)) if line.until else None,
        )

    def _said_at(self, episode: Episode) -> datetime:
        """Return when a message was said; a clock that is ahead announces nothing (C1)."""
        return min(episode.occurred_at, self.author.now)

    def _create(
        self, claim: Claim, draft: BeliefDraft, episode: Episode, descent: LineageInput | None
    ) -> FoundedStatement:
        numbers = self.vectors.get(draft.statement)
        is_ahead = draft.valid_from is not None and draft.valid_from > episode.occurred_at
        word = EvidenceInput(
            episode_id=episode.pk,
            verdict=Verdict.SUPPORTS,
            kind=EvidenceKind.ANNOUNCED if is_ahead else EvidenceKind.ORDINARY,
            basis=Basis.MODEL,
            call_id=self.answered.call_id,
            claim_id=claim.pk,
        )
        made = create_belief(
            draft=draft,
            vector=None if numbers is None else StatementVector(model=self.answered.model, numbers=numbers),
            said=[word],
            author=self.author,
            descent=descent,
            apart_from=[
                belief.pk
                for belief in self.beliefs.values()
                if belief.statement.casefold() != draft.statement.casefold()  # a weak model states a shown one again
            ],
        )
        return FoundedStatement(claim=claim, draft=draft, made=made, descent=descent, vector=numbers)

    # --- What is said of beliefs

    def _apply_word(self, line: AboutBelief, belief: Belief, episode: Episode) -> None:
        """Let a message's word count on a belief, if the belief is of its time."""
        belief.refresh_from_db(fields=["status", "status_reason", "valid_from", "valid_until"])
        if self._is_over(belief, episode):
            if line.verdict is BeliefWord.SUPPORTS and _is_of(belief, episode):
                self._return(line, belief, episode)
            return
        if belief.status not in LIVE and not is_closed(belief) and line.verdict is not BeliefWord.SUPPORTS:
            return
        verdict = self._verdict(line, belief, episode)
        if verdict is not None:
            self._record(verdict, belief)

    def _is_over(self, belief: Belief, episode: Episode) -> bool:
        """Tell whether a belief held until before a message was said; one whose day has come need not be closed yet."""
        ended = is_closed(belief) or (belief.status in LIVE and not belief.is_pinned)
        until = belief.valid_until
        return ended and until is not None and until <= min(episode.occurred_at, self.author.now)

    def _verdict(self, line: AboutBelief, belief: Belief, episode: Episode) -> BeliefVerdict | None:
        ends = line.verdict is BeliefWord.ENDED
        denies = ends or line.verdict is BeliefWord.CONTRADICTS
        valid_at = _start_of(line.since) if line.since and denies else None
        if denies and _holds_since(belief, _true_at(line, episode)):
            return None  # what was so before says nothing of what is so since (F2)
        ends = ends and _is_of(belief, episode)
        kind = kind_of_end(belief=belief, episode=episode) if ends else EvidenceKind.ORDINARY
        if kind == EvidenceKind.ANNOUNCED and valid_at and valid_at > self.author.now:
            valid_at = None  # what others say of a day ahead closes nothing on it
        return BeliefVerdict(
            belief_id=belief.pk,
            episode_id=episode.pk,
            verdict=Verdict.CONTRADICTS if denies else Verdict(line.verdict.value),
            ends=ends,
            kind=kind,
            reason=line.holds,
            valid_at=valid_at,
        )

    def _record(self, verdict: BeliefVerdict, belief: Belief) -> None:
        word = evidence_of(verdict=verdict, call_id=self.answered.call_id)
        [locked] = lock_beliefs([belief.pk])
        before = _standing(locked)
        gained = record_evidence(said={belief.pk: [word]}, beliefs=[locked], author=self.author)
        moved = bool(gained.get(belief.pk)) and _standing(locked) != before
        self.applied.verdicts.append(replace(verdict, gained=moved))

    def _return(self, line: AboutBelief, closed: Belief, episode: Episode) -> None:
        """Open what holds again as a belief of its own, from when that was said, or the day that is named (F1)."""
        _, known = read_belief_vectors(model=self.answered.model, ids=[closed.pk])
        if len(known):  # the reply does not repeat its words, so that they were not embedded again
            self.vectors.setdefault(closed.statement, known[0])
        said_at = self._said_at(episode)
        begins = max(_start_of(line.since), closed.valid_until or said_at) if line.since else said_at
        statement = NewStatement(m=1, statement=closed.statement, subject=closed.subject, since=line.since)
        claim = self._store_claim(statement, episode, None)
        draft = BeliefDraft(
            workspace_id=closed.workspace_id,
            statement=closed.statement,
            subject=closed.subject,
            context=closed.context,
            language=closed.language,
            project_id=closed.project_id,
            user=closed.user,
            fact_type=FactType(closed.fact_type),
            importance=closed.importance,
            is_told=True,
            valid_from=begins,
        )
        descent = LineageInput(parents=[closed], kind=LineageKind.RETURN, reason=READ_REASON)
        returned = self._create(claim, draft, episode, descent)
        self.applied.statements.append(returned)
        if returned.made and returned.made.belief:
            self.beliefs[line.b] = returned.made.belief  # later messages mean what holds now


def _standing(belief: Belief) -> tuple[Any, ...]:
    """Return what a word may move of a belief."""
    return belief.alpha, belief.beta, belief.status, belief.valid_until


def evidence_of(*, verdict: BeliefVerdict, call_id: int | None) -> EvidenceInput:
    """Return a verdict as it goes into the ledger; what ends a belief is marked, and closes or challenges it there."""
    return EvidenceInput(
        episode_id=verdict.episode_id,
        verdict=verdict.verdict,
        kind=verdict.kind,
        basis=Basis.MODEL,
        reason=verdict.reason,
        call_id=call_id,
        valid_at=verdict.valid_at,
    )


def kind_of_end(*, belief: Belief, episode: Episode) -> EvidenceKind:
    """Return as what a message of a belief's project and user ends it: told by somebody else it only challenges (F3).

    The person concerned is the user, who told it, or of whom it speaks; whoever is named in no way is the user.
    """
    founders = Evidence.objects.filter(belief=belief, is_founding=True).values_list("episode__speaker", flat=True)
    known = {name_user(user=belief.user), *(name.strip() for name in founders)} - {""}
    said_by = _name_words(episode.speaker)
    if not belief.user or not said_by or not known:
        return EvidenceKind.ENDED
    names = [_name_words(name) for name in (*known, belief.subject)]
    is_own = any(name and (name <= said_by or said_by <= name) for name in names)
    return EvidenceKind.ENDED if is_own else EvidenceKind.ANNOUNCED


def _name_words(name: str) -> frozenset[str]:
    return frozenset(name.casefold().split())


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _is_of(belief: Belief, episode: Episode) -> bool:
    """Tell whether a belief is of a message's own project and user: elsewhere it may hold."""
    return (belief.project_id, belief.user) == (episode.project_id, episode.user)


def _true_at(line: NewStatement | AboutBelief, episode: Episode) -> datetime:
    """Return the time of which a line speaks: when it was said, or a later day that it names."""
    return max(episode.occurred_at, _start_of(line.since)) if line.since else episode.occurred_at


def _holds_since(belief: Belief, at: datetime) -> datetime | None:
    """Return the first time after another one at which a belief began or was borne out; None where nothing is later."""
    rows = supporting_rows(rows=Evidence.objects.filter(belief=belief.pk)).exclude(
        episode__status__in=WITHDRAWN_STATUSES
    )
    said_at = rows.filter(episode__occurred_at__gt=at).aggregate(at=Min("episode__occurred_at"))["at"]
    return min((since for since in (belief.valid_from, said_at) if since and since > at), default=None)


_FACT_TYPES: Mapping[str, FactType] = {
    Category.PREFERENCE: FactType.PREFERENCE,
    Category.SKILL: FactType.PROCEDURAL,
    Category.PRINCIPLE: FactType.PROCEDURAL,
    Category.DECISION: FactType.ARCHITECTURAL,
}
