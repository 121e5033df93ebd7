"""Store checked lines as episodes: one transaction a batch, an answer for each line.

`store_episodes` is the way of every text into the memory; `_store_batch` lists its steps in order: draft, answer what
is known, name speakers, refuse what was erased or forgotten, insert, embed, wake consolidation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db import DataError, OperationalError, connection, transaction

from memory.access import ensure_projects, find_projects
from memory.consolidation.schedule import open_cycle_for_new_episodes
from memory.domain.identity import content_hash, origin_of
from memory.domain.lifecycle import ConsolidationState
from memory.ingest.dedup import (
    Drafts,
    NamedTurn,
    answer_clashing_keys,
    answer_forgotten_words,
    answer_known_keys,
    answer_known_words,
    name_speakers,
    opening_name_of,
    refuse_erased_words,
    restore_archived,
)
from memory.ingest.schemas import (
    BadLine,
    Draft,
    EpisodeLine,
    ExtractedLine,
    IngestContext,
    Outcome,
    Rejected,
    Stored,
    read_line,
)
from memory.language.sentences import strip_echo
from memory.language.words import detect_language
from memory.llm.embeddings import embedder_of
from memory.llm.types import CallFailed, Embedder
from memory.models import Episode, EpisodeEmbedding, Source
from memory.models.fields import new_episode_id
from memory.redaction.service import redact_lines
from memory.search.vectors import store_episode_vectors

log = structlog.get_logger(__name__)
_TRIES = 3
ECHO = "echo"
DERIVED = "derived"
_OUTSIDE_PROJECTS_DETAIL = "This key is limited to some projects, and this is none of them."
PATIENCE_SECONDS = 3.0  # of whoever stores many episodes: a sentence model takes some 10 ms a text
_BATCH = 64


def store_episodes(*, lines: Sequence[EpisodeLine], arrival: IngestContext) -> list[Outcome]:
    """Store checked lines in one transaction; answer each in its place with its episode or the reason against it.

    Secrets are taken out first: nothing that follows sees them.

    Two writers that wait for each other are a matter of chance: the one that the database picks tries again.
    """
    clean = redact_lines(workspace_id=arrival.workspace.pk, lines=lines)
    for tries_left in reversed(range(_TRIES)):
        try:
            return _store_or_halve(clean, arrival)
        except OperationalError as error:
            is_deadlock = isinstance(error.__cause__, psycopg.errors.DeadlockDetected)
            if not is_deadlock or not tries_left or connection.in_atomic_block:
                raise
    raise AssertionError("the last try returns or raises")


def store_raw_episodes(*, raw_lines: Sequence[object], arrival: IngestContext) -> list[Outcome]:
    """Check lines as JSON gave them and store the good ones; answer each in its place."""
    outcomes: dict[int, Outcome] = {}
    lines: dict[int, EpisodeLine] = {}
    for place, raw in enumerate(raw_lines):
        try:
            lines[place] = read_line(raw=raw, now=arrival.now)
        except BadLine as bad:
            outcomes[place] = Rejected.for_line(bad)
    stored = store_episodes(lines=list(lines.values()), arrival=arrival)
    outcomes.update(zip(lines, stored, strict=True))
    return [outcomes[place] for place in range(len(raw_lines))]


_UNSTORABLE = Rejected(status=422, detail="The database cannot hold this episode.")


def _store_or_halve(lines: Sequence[EpisodeLine], arrival: IngestContext) -> list[Outcome]:
    """Store a batch; halve it where the database refuses a value, so that one bad line takes none with it."""
    if not lines:
        return []
    try:
        with transaction.atomic():
            return _store_batch(lines, arrival)
    except DataError:
        if len(lines) == 1:
            return [_UNSTORABLE]
    middle = len(lines) // 2
    return [*_store_or_halve(lines[:middle], arrival), *_store_or_halve(lines[middle:], arrival)]


def _store_batch(lines: Sequence[EpisodeLine], arrival: IngestContext) -> list[Outcome]:
    workspace_id = arrival.workspace.pk
    drafts: Drafts = {}
    outcomes: dict[int, Outcome] = {}
    for place, draft in enumerate(draft_episodes(lines=lines, arrival=arrival)):
        if isinstance(draft, Rejected):
            outcomes[place] = draft
        else:
            drafts[place] = draft
    _take_answered(drafts, outcomes, answer_clashing_keys(drafts))
    _take_answered(drafts, outcomes, answer_known_keys(workspace_id=workspace_id, drafts=drafts))
    named = name_speakers(workspace_id=workspace_id, drafts=drafts.values())
    for draft in drafts.values():
        complete_draft(draft)
    _take_answered(drafts, outcomes, refuse_erased_words(workspace=arrival.workspace, drafts=drafts))
    _take_answered(drafts, outcomes, answer_forgotten_words(workspace_id=workspace_id, drafts=drafts))
    new = _insert(workspace_id, drafts, outcomes)
    known = [outcome.id for outcome in outcomes.values() if isinstance(outcome, Stored)]
    restore_archived(ids=known, arrival=arrival)
    outcomes.update({place: Stored(id=draft.id, is_duplicate=False) for place, draft in new.items()})
    _embed_stored(workspace_id, new=new, named=named)
    _wake_consolidation(arrival, new)
    return [outcomes[place] for place in range(len(lines))]


def _take_answered(drafts: Drafts, outcomes: dict[int, Outcome], answers: Mapping[int, Outcome]) -> None:
    """Take answered lines out of the drafts."""
    outcomes.update(answers)
    for place in answers:
        del drafts[place]


def draft_episodes(*, lines: Sequence[EpisodeLine], arrival: IngestContext) -> list[Draft | Rejected]:
    """Draft an episode for each line, in its place; a line outside the key's projects is rejected."""
    projects = _projects_of(lines, arrival)
    return [_draft(line=line, arrival=arrival, projects=projects) for line in lines]


OUTSIDE_PROJECTS = Rejected(status=403, detail=_OUTSIDE_PROJECTS_DETAIL, errors={"project": [_OUTSIDE_PROJECTS_DETAIL]})


def _projects_of(lines: Sequence[EpisodeLine], arrival: IngestContext) -> dict[str, int]:
    """Return the ids of the named projects: known ones for a limited key, else all, created where unknown."""
    slugs = {slug for line in lines if (slug := line.project or arrival.default_project)}
    if arrival.allowed_projects is None:
        return ensure_projects(workspace=arrival.workspace, slugs=slugs, now=arrival.now)
    return find_projects(workspace=arrival.workspace, slugs=slugs)


def _draft(*, line: EpisodeLine, arrival: IngestContext, projects: dict[str, int]) -> Draft | Rejected:
    project_id = projects.get(line.project or arrival.default_project or "")
    if arrival.allowed_projects is not None and project_id not in arrival.allowed_projects:
        return OUTSIDE_PROJECTS
    occurred_at = line.occurred_at or arrival.now
    document = line.document or ("" if line.session or line.occurred_at else arrival.file_name)
    return Draft(
        **_extracted_columns(line),
        workspace_id=arrival.workspace.pk,
        project_id=project_id,
        user=line.user or "",
        agent=line.agent or "",
        session=line.session or "",
        document=document,
        speaker=line.speaker or "",
        source=line.source or Source.INTERACTION,
        language=line.language or "",
        text=line.text,
        entities=line.entities or [],
        tags=line.tags or [],
        category=line.category or "",
        importance=settings.POLICY.ingest.importance if line.importance is None else line.importance,
        origin=origin_of(
            session=line.session or "",
            document=document,
            user=line.user or "",
            source=line.source or Source.INTERACTION,
            occurred_at=occurred_at,
        ),
        content_hash=content_hash(line.text),
        idempotency_key=line.idempotency_key,
        line_hash=line.fingerprint(),
        created_at=occurred_at if arrival.is_replay else arrival.now,
        occurred_at=occurred_at,
        valid_until=line.valid_until,
    )


def _extracted_columns(line: EpisodeLine) -> dict[str, Any]:
    """Return what is known of turns besides; what is derived from them takes no part in consolidation (B4)."""
    if not isinstance(line, ExtractedLine):
        return {}
    found: dict[str, Any] = {"confidence": line.confidence, "is_derived": line.is_derived}
    settled = {"state": ConsolidationState.SETTLED, "state_reason": DERIVED}
    return found | (settled if line.is_derived else {})


def complete_draft(draft: Draft) -> None:
    """Fill in what depends on the speaker: the language, and whether all of it is echo (B4)."""
    matter = strip_echo(draft.text, draft.speaker)
    if not draft.language:
        draft.language = detect_language(matter)
    name = "" if draft.speaker else opening_name_of(draft.text)
    if not (strip_echo(draft.text, name) if name else matter):
        draft.state, draft.state_reason = ConsolidationState.SETTLED, ECHO


class NoIdFree(RuntimeError):
    """Every id that was drawn for an episode was taken."""


def _insert(workspace_id: int, drafts: Drafts, outcomes: dict[int, Outcome]) -> Drafts:
    """Insert what is new and return it; answer what turns out to be stored already, by a racing writer too."""
    new: Drafts = {}
    for _ in range(_TRIES):
        went_in = insert_episodes(list(drafts.values()))
        new.update({place: drafts.pop(place) for place in list(drafts) if drafts[place].id in went_in})
        _take_answered(drafts, outcomes, answer_known_keys(workspace_id=workspace_id, drafts=drafts))
        _take_answered(drafts, outcomes, answer_known_words(workspace_id=workspace_id, drafts=drafts))
        if not drafts:
            return new
        for draft in drafts.values():  # what is left collided with the id of another episode
            draft.id = new_episode_id()
    raise NoIdFree


def insert_episodes(drafts: Sequence[Draft]) -> set[str]:
    """Insert drafts unless a unique constraint is in the way; return the ids of those that went in.

    The rows travel as one JSON text: composing a value list of 30 columns takes Django longer than it takes the
    database to insert it, and it does not tell which rows went in. They are inserted in one order, so that racing
    writers of the same words do not wait for each other in a circle.
    """
    _number_drafts(drafts)
    rows = sorted(drafts, key=lambda draft: (draft.content_hash, draft.origin, draft.user, draft.speaker))
    with connection.cursor() as cursor:
        cursor.execute(_insert_statement(), [json.dumps([vars(row) for row in rows], default=datetime.isoformat)])
        return {pk for (pk,) in cursor.fetchall()}


def _number_drafts(drafts: Sequence[Draft]) -> None:
    """Number drafts in the order given, which tells who spoke after whom where times are equal."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('memory_episode_number') FROM generate_series(1, %s)", [len(drafts)])
        for draft, (number,) in zip(drafts, sorted(cursor.fetchall()), strict=True):
            draft.number = number


@cache
def _insert_statement() -> str:
    types_by_column = {field.column: field.db_type(connection) for field in Episode._meta.concrete_fields}
    columns = {connection.ops.quote_name(field.name): types_by_column[field.name] for field in fields(Draft)}
    names = ", ".join(columns)
    types = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return (
        f"INSERT INTO memory_episode ({names}) "  # noqa: S608  (names and types are the model's own)
        f"SELECT {names} FROM json_to_recordset(%s::json) AS draft ({types}) ON CONFLICT DO NOTHING RETURNING id"
    )


def _embed_stored(workspace_id: int, *, new: Drafts, named: list[NamedTurn]) -> None:
    matters = {draft.id: strip_echo(draft.text, draft.speaker) for draft in new.values()}
    embed_episodes(workspace_id=workspace_id, matters={key: matter for key, matter in matters.items() if matter})
    changed = {turn.id: matter for turn in named if (matter := strip_echo(turn.text, turn.speaker))}
    waiting = {turn.id for turn in named if turn.state in (ConsolidationState.NEW, ConsolidationState.FAILED)}
    if named:
        embed_changed_episodes(workspace_id=workspace_id, matters=changed, waiting=waiting)


def embed_episodes(*, workspace_id: int, matters: Mapping[str, str]) -> None:
    """Embed what counts of new episodes and store the vectors, for as long as a writer can wait.

    A remote model, and what a slow one leaves, is left to consolidation; so is a batch that the model cannot take, and
    there only the text that is to blame stays without a vector.
    """
    model = embedder_of(workspace_id)
    if model.is_local:
        _embed_in_batches(workspace_id, model, matters, patience=PATIENCE_SECONDS)


def embed_changed_episodes(*, workspace_id: int, matters: Mapping[str, str], waiting: set[str]) -> None:
    """Embed episodes whose matter has changed; with a remote model those that wait are embedded by consolidation."""
    model = embedder_of(workspace_id)
    if model.is_local:
        _embed_in_batches(workspace_id, model, matters, patience=float("inf"))
    else:
        EpisodeEmbedding.objects.for_workspace(workspace_id).filter(episode__in=waiting).delete()


def _embed_in_batches(workspace_id: int, model: Embedder, matters: Mapping[str, str], *, patience: float) -> None:
    ends_at, left = time.monotonic() + patience, iter(matters.items())
    while (batch := dict(islice(left, _BATCH))) and time.monotonic() < ends_at:
        try:
            vectors = model.embed(list(batch.values()))
        except (CallFailed, ValueError) as failure:
            log.warning("not_embedded", workspace=workspace_id, episodes=len(batch), error=str(failure))
            continue
        store_episode_vectors(
            workspace_id=workspace_id,
            model=model.name,
            vectors=dict(zip(batch, vectors, strict=True)),
            chunked={key for key, matter in batch.items() if model.is_overlong(matter)},
        )


def _wake_consolidation(arrival: IngestContext, new: Drafts) -> None:
    """Let consolidation know, once they are there for all to see."""
    if arrival.is_replay or not any(draft.state == ConsolidationState.NEW for draft in new.values()):
        return
    transaction.on_commit(lambda: open_cycle_for_new_episodes(workspace_id=arrival.workspace.pk, now=arrival.now))
