"""Let one note stay for others, and say which of those that were hidden so should not be (L8, L18).

`tidy_notes` merges a note into an older one where each says what the other says; where one says more, the other is
superseded by it, whichever is older; and a newer note supersedes an older one that cannot hold beside it. No text is
changed, and every way leads back: `find_doubtful` lists what today's reader would not hide, `restore_notes` brings it
back.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery

from memory.consolidation.episode_states import supersession_reason
from memory.consolidation.notes import Relation, compare_memories, compare_texts
from memory.domain.identity import MAINTENANCE_ACTOR, Actor
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.domain.policy import Policy
from memory.domain.taxonomy import Kind
from memory.ledger.transactions import change_episode_status, lock_workspace
from memory.llm.embeddings import embedder_of
from memory.models import Episode, Source, Transition
from memory.search.vectors import nearest_older_episodes

_MERGED, _SUPERSEDED = "merged into ", supersession_reason("")
_DOUBTED = "brought back: it says what the note that hid it does not"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stay:
    """A note that is to be hidden, and the one that stays for it."""

    hidden: str
    kept: str
    status: EpisodeStatus

    @property
    def reason(self) -> str:
        return f"{_MERGED}{self.kept}" if self.status is EpisodeStatus.MERGED else supersession_reason(self.kept)


def tidy_notes(*, workspace_id: int, now: datetime, ends_at: float, policy: Policy) -> int:
    """Hide notes for which others stay, some at a time until `ends_at` (a monotonic clock); return how many.

    The oldest come first, so that none is merged into one that is merged itself.
    """
    notes, hidden = _latest_notes(workspace_id, policy), 0
    keys = list(notes)
    size = policy.maintenance.notes_at_once
    for first in range(0, len(keys), size):
        if time.monotonic() >= ends_at:
            break
        stays = _find_stays(workspace_id, {key: notes[key] for key in keys[first : first + size]}, ends_at, policy)
        if stays:
            hidden += _hide(workspace_id, stays, now)
    return hidden


def _latest_notes(workspace_id: int, policy: Policy) -> dict[str, Episode]:
    latest = _settled_notes(workspace_id).defer("search").order_by("-number")[: policy.maintenance.notes]
    return {episode.pk: episode for episode in reversed(latest) if episode.kind is Kind.NOTE}


def _settled_notes(workspace_id: int) -> QuerySet[Episode]:
    found = Episode.objects.for_workspace(workspace_id).active()
    return found.filter(state=ConsolidationState.SETTLED, is_derived=False)


def _find_stays(workspace_id: int, notes: Mapping[str, Episode], ends_at: float, policy: Policy) -> list[_Stay]:
    """Ask of each note and the older ones near it which of them stays, while there is time; each is hidden once."""
    model = embedder_of(workspace_id)
    near = nearest_older_episodes(
        workspace_id=workspace_id, model=model.name, ids=list(notes), count=policy.maintenance.neighbours
    )
    older = Episode.objects.active().defer("search").in_bulk({one.id for found in near.values() for one in found})
    stays: dict[str, _Stay] = {}
    for key, note in notes.items():
        if time.monotonic() >= ends_at:
            break
        for one in near.get(key, ()):
            other = older.get(one.id)
            if key in stays:
                break
            if other is None or other.pk in stays:
                continue
            stay = _choose(note, other, float(model.profile.reference(one.cosine)), policy)
            if stay is not None and (stay.hidden == key or other.state == ConsolidationState.SETTLED):
                stays[stay.hidden] = stay
    return list(stays.values())


def _choose(newer: Episode, older: Episode, similarity: float, policy: Policy) -> _Stay | None:
    match compare_memories(newer=newer, older=older, similarity=similarity, policy=policy).relation:
        case Relation.SAME:
            return _Stay(hidden=newer.pk, kept=older.pk, status=EpisodeStatus.MERGED)
        case Relation.OLDER_SAYS_MORE:
            return _Stay(hidden=newer.pk, kept=older.pk, status=EpisodeStatus.SUPERSEDED)
        case Relation.NEWER_SAYS_MORE | Relation.CONFLICT:
            return _Stay(hidden=older.pk, kept=newer.pk, status=EpisodeStatus.SUPERSEDED)
    return None


@transaction.atomic
def _hide(workspace_id: int, stays: Sequence[_Stay], now: datetime) -> int:
    """Hide what still stands as it did when it was read, under the lock of the workspace."""
    lock_workspace(workspace_id)
    _lock_notes([stay.hidden for stay in stays])
    settled = set(_settled_notes(workspace_id).filter(pk__in=[s.hidden for s in stays]).values_list("pk", flat=True))
    active = Episode.objects.for_workspace(workspace_id).active().filter(pk__in=[s.kept for s in stays])
    standing = set(active.values_list("pk", flat=True))
    hidden: set[str] = set()
    for stay in stays:
        if stay.hidden not in settled or stay.kept not in standing - hidden:
            continue
        change_episode_status(ids=[stay.hidden], new=stay.status, reason=stay.reason, actor=MAINTENANCE_ACTOR, now=now)
        if stay.status is EpisodeStatus.MERGED:
            Episode.objects.filter(Q(pk=stay.hidden) | Q(merged_into=stay.hidden)).update(merged_into=stay.kept)
        hidden.add(stay.hidden)
    return len(hidden)


def _lock_notes(notes: Collection[str]) -> None:
    """Lock notes, and what was merged into them, in the order of ids, as whoever stores facts does."""
    changing = Q(pk__in=notes) | Q(merged_into__in=notes)
    list(Episode.objects.select_for_update().filter(changing).order_by("pk").values_list("pk", flat=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulNote:
    """A hidden note that today's reader would not hide, and the one that stayed for it; "" where that one is gone."""

    id: str
    text: str
    status: str
    kept: str
    kept_text: str


def find_doubtful(*, workspace_id: int) -> list[DoubtfulNote]:
    """Return the notes that were merged or superseded (L15, L18) though the pair question does not bear it out today.

    Those that were superseded when they were weighed are among them; what a person hid is not.
    """
    found = list(_hidden_notes(workspace_id))
    kept = Episode.objects.defer("search").in_bulk([_kept_by(note) for note in found])
    return [
        DoubtfulNote(
            id=note.pk, text=note.text, status=note.status, kept=other.pk if other else "",
            kept_text=other.text if other else "",
        )
        for note in found
        if not _is_borne_out(note, other := kept.get(_kept_by(note)))
    ]  # fmt: skip


def _hidden_notes(workspace_id: int) -> Iterable[Any]:
    """Select the notes that another stays for, each with why it was hidden."""
    why = Transition.objects.filter(episode=OuterRef("pk")).order_by("-pk").values("reason")[:1]
    hidden = Episode.objects.for_workspace(workspace_id).defer("search").annotate(why=Subquery(why))
    merged = Q(status=EpisodeStatus.MERGED, why__startswith=_MERGED)
    superseded = Q(status=EpisodeStatus.SUPERSEDED, why__startswith=_SUPERSEDED)
    found: Iterable[Any] = hidden.filter(merged | superseded).order_by("number")
    return found


def _kept_by(note: Any) -> str:
    """Return the id of the note that stays: what it is merged into by now, else what is named in the record."""
    kept: str = note.merged_into_id or note.why.removeprefix(_MERGED).removeprefix(_SUPERSEDED)
    return kept


def _is_borne_out(hidden: Episode, kept: Episode | None) -> bool:
    if kept is None:
        return False
    is_newer = kept.number > hidden.number
    newer, older = (kept, hidden) if is_newer else (hidden, kept)
    is_speech = hidden.source == kept.source == Source.HUMAN
    relation = compare_texts(newer=newer.text, older=older.text, speaker=hidden.speaker, is_speech=is_speech).relation
    if relation is Relation.CONFLICT:
        return is_newer and hidden.status == EpisodeStatus.SUPERSEDED
    return relation in (Relation.SAME, Relation.NEWER_SAYS_MORE if is_newer else Relation.OLDER_SAYS_MORE)


@transaction.atomic
def restore_notes(*, workspace_id: int, notes: Sequence[DoubtfulNote], actor: Actor, now: datetime) -> list[str]:
    """Bring back the notes that are still hidden as they were when they were found; return their ids."""
    lock_workspace(workspace_id)
    found = {note.id: (note.status, note.kept) for note in notes}
    _lock_notes(found)
    ids = [
        note.pk
        for note in _hidden_notes(workspace_id)
        if note.pk in found and found[note.pk][0] == note.status and found[note.pk][1] in ("", _kept_by(note))
    ]
    return change_episode_status(ids=ids, new=EpisodeStatus.ACTIVE, reason=_DOUBTED, actor=actor, now=now)
