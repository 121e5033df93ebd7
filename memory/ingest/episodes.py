"""Store episodes: one transaction a batch, each line answered for itself."""

from collections.abc import Mapping, Sequence

import psycopg
from django.db import DataError, OperationalError, connection, transaction

from memory.consolidation.cycle import note_new_episodes
from memory.domain.lifecycle import ConsolidationState
from memory.domain.matter import matter_of
from memory.ingest.arrival import Arrival, Outcome, Rejected, Stored
from memory.ingest.drafts import complete_draft, draft_episodes
from memory.ingest.duplicates import (
    Drafts,
    answer_clashing_keys,
    answer_forgotten_words,
    answer_known_keys,
    answer_known_words,
    refuse_erased_words,
    restore_archived,
)
from memory.ingest.insertion import insert_episodes
from memory.ingest.lines import BadLine, EpisodeLine, read_line
from memory.ingest.redaction import redact_lines
from memory.ingest.speakers import NamedTurn, name_speakers
from memory.ingest.vectors import embed_anew, embed_matters
from memory.models.fields import new_episode_id

_TRIES = 3

_UNSTORABLE = Rejected(status=422, detail="The database cannot hold this episode.")


class NoIdFree(RuntimeError):
    """Every id that was drawn for an episode was taken."""


def take_episodes(*, raw_lines: Sequence[object], arrival: Arrival) -> list[Outcome]:
    """Check lines as JSON gave them and store the good ones; answer each in its place."""
    outcomes: dict[int, Outcome] = {}
    lines: dict[int, EpisodeLine] = {}
    for place, raw in enumerate(raw_lines):
        try:
            lines[place] = read_line(raw=raw, now=arrival.now)
        except BadLine as bad:
            outcomes[place] = Rejected(status=bad.status, detail=bad.detail, errors=bad.errors)
    stored = store_episodes(lines=list(lines.values()), arrival=arrival)
    outcomes.update(zip(lines, stored, strict=True))
    return [outcomes[place] for place in range(len(raw_lines))]


def store_episodes(*, lines: Sequence[EpisodeLine], arrival: Arrival) -> list[Outcome]:
    """Store checked lines in one transaction; answer each in its place with its episode or the reason against it.

    Secrets are taken out first: nothing that follows sees them.

    Two writers that wait for each other are a matter of chance: the one that the database picks tries again.
    """
    clean = redact_lines(workspace_id=arrival.workspace.pk, lines=lines)
    for tries_left in reversed(range(_TRIES)):
        try:
            return _store_apart(clean, arrival)
        except OperationalError as error:
            is_deadlock = isinstance(error.__cause__, psycopg.errors.DeadlockDetected)
            if not is_deadlock or not tries_left or connection.in_atomic_block:
                raise
    raise AssertionError("the last try returns or raises")


def _store_apart(lines: Sequence[EpisodeLine], arrival: Arrival) -> list[Outcome]:
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
    return [*_store_apart(lines[:middle], arrival), *_store_apart(lines[middle:], arrival)]


def _store_batch(lines: Sequence[EpisodeLine], arrival: Arrival) -> list[Outcome]:
    workspace_id = arrival.workspace.pk
    drafts: Drafts = {}
    outcomes: dict[int, Outcome] = {}
    for place, draft in enumerate(draft_episodes(lines=lines, arrival=arrival)):
        if isinstance(draft, Rejected):
            outcomes[place] = draft
        else:
            drafts[place] = draft
    _settle(drafts, outcomes, answer_clashing_keys(drafts))
    _settle(drafts, outcomes, answer_known_keys(workspace_id=workspace_id, drafts=drafts))
    named = name_speakers(workspace_id=workspace_id, drafts=drafts.values())
    for draft in drafts.values():
        complete_draft(draft)
    _settle(drafts, outcomes, refuse_erased_words(workspace=arrival.workspace, drafts=drafts))
    _settle(drafts, outcomes, answer_forgotten_words(workspace_id=workspace_id, drafts=drafts))
    new = _insert(workspace_id, drafts, outcomes)
    known = [outcome.id for outcome in outcomes.values() if isinstance(outcome, Stored)]
    restore_archived(ids=known, arrival=arrival)
    outcomes.update({place: Stored(id=draft.id, is_duplicate=False) for place, draft in new.items()})
    _embed(workspace_id, new=new, named=named)
    _wake(arrival, new)
    return [outcomes[place] for place in range(len(lines))]


def _settle(drafts: Drafts, outcomes: dict[int, Outcome], answers: Mapping[int, Outcome]) -> None:
    """Take answered lines out of the drafts."""
    outcomes.update(answers)
    for place in answers:
        del drafts[place]


def _insert(workspace_id: int, drafts: Drafts, outcomes: dict[int, Outcome]) -> Drafts:
    """Insert what is new and return it; answer what turns out to be stored already, by a racing writer too."""
    new: Drafts = {}
    for _ in range(_TRIES):
        went_in = insert_episodes(list(drafts.values()))
        new.update({place: drafts.pop(place) for place in list(drafts) if drafts[place].id in went_in})
        _settle(drafts, outcomes, answer_known_keys(workspace_id=workspace_id, drafts=drafts))
        _settle(drafts, outcomes, answer_known_words(workspace_id=workspace_id, drafts=drafts))
        if not drafts:
            return new
        for draft in drafts.values():  # what is left collided with the id of another episode
            draft.id = new_episode_id()
    raise NoIdFree


def _embed(workspace_id: int, *, new: Drafts, named: list[NamedTurn]) -> None:
    matters = {draft.id: matter_of(draft.text, draft.speaker) for draft in new.values()}
    embed_matters(workspace_id=workspace_id, matters={key: matter for key, matter in matters.items() if matter})
    changed = {turn.id: matter for turn in named if (matter := matter_of(turn.text, turn.speaker))}
    waiting = {turn.id for turn in named if turn.state in (ConsolidationState.NEW, ConsolidationState.FAILED)}
    if named:
        embed_anew(workspace_id=workspace_id, matters=changed, waiting=waiting)


def _wake(arrival: Arrival, new: Drafts) -> None:
    """Let consolidation know, once they are there for all to see."""
    if arrival.is_replay or not any(draft.state == ConsolidationState.NEW for draft in new.values()):
        return
    transaction.on_commit(lambda: _note_new(arrival))


def _note_new(arrival: Arrival) -> None:
    note_new_episodes(workspace_id=arrival.workspace.pk, now=arrival.now)
