"""Notes that say what an older one says become one with it (L15): found without a lock, merged under it."""

import time
from collections.abc import Collection, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from memory.consolidation.weighing import as_note
from memory.domain.identity import MAINTENANCE_ACTOR
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.domain.policy import Policy
from memory.domain.taxonomy import Kind
from memory.language.traits import confirms
from memory.ledger.transactions import change_episode_status, lock_workspace
from memory.llm.embeddings import embedder_of
from memory.models import Episode
from memory.search.vectors import nearest_older_episodes


def merge_alike(*, workspace_id: int, now: datetime, ends_at: float, policy: Policy) -> int:
    """Merge notes that consolidation is done with, some at a time until `ends_at` (a monotonic clock); return how many.

    The oldest come first, so that none is merged into one that is merged itself.
    """
    notes, merged = _latest_notes(workspace_id, policy), 0
    keys = list(notes)
    size = policy.maintenance.notes_at_once
    for first in range(0, len(keys), size):
        if time.monotonic() >= ends_at:
            break
        survivors = _find_survivors(workspace_id, {key: notes[key] for key in keys[first : first + size]}, policy)
        if survivors:
            merged += _merge(workspace_id, survivors, now)
    return merged


def _latest_notes(workspace_id: int, policy: Policy) -> dict[str, Episode]:
    latest = _settled(workspace_id).defer("search").order_by("-number")[: policy.maintenance.notes]
    return {episode.pk: episode for episode in reversed(latest) if episode.kind is Kind.NOTE}


def _settled(workspace_id: int) -> QuerySet[Episode]:
    found = Episode.objects.for_workspace(workspace_id).active()
    return found.filter(state=ConsolidationState.SETTLED, is_derived=False)


def _find_survivors(workspace_id: int, notes: Mapping[str, Episode], policy: Policy) -> dict[str, str]:
    """Return the older memory that each note is to be one with, by its id, for those that have one."""
    model = embedder_of(workspace_id)
    near = nearest_older_episodes(
        workspace_id=workspace_id, model=model.name, ids=list(notes), count=policy.maintenance.neighbours
    )
    older = Episode.objects.active().defer("search").in_bulk({one.id for found in near.values() for one in found})
    survivors: dict[str, str] = {}
    for key, note in notes.items():
        for one in near.get(key, ()):
            other, similarity = older.get(one.id), float(model.profile.reference(one.cosine))
            if other is None or one.id in survivors or other.kind is not Kind.NOTE:
                continue
            if confirms(newer=as_note(note), older=as_note(other), similarity=similarity, policy=policy.extraction):
                survivors[key] = one.id
                break
    return survivors


def _hold(notes: Collection[str]) -> None:
    """Lock notes, and what was merged into them, in the order of ids, as whoever stores facts does."""
    changing = Q(pk__in=notes) | Q(merged_into__in=notes)
    list(Episode.objects.select_for_update().filter(changing).order_by("pk").values_list("pk", flat=True))


@transaction.atomic
def _merge(workspace_id: int, survivors: Mapping[str, str], now: datetime) -> int:
    """Merge what still stands as it did when it was read, under the lock of the workspace."""
    lock_workspace(workspace_id)
    _hold(survivors)
    notes = set(_settled(workspace_id).filter(pk__in=survivors).values_list("pk", flat=True))
    standing = Episode.objects.for_workspace(workspace_id).active().filter(pk__in=survivors.values())
    kept = set(standing.values_list("pk", flat=True))
    merged = 0
    for key, survivor in survivors.items():
        if key in notes and survivor in kept:
            reason = f"merged into {survivor}"
            change_episode_status(ids=[key], new=EpisodeStatus.MERGED, reason=reason, actor=MAINTENANCE_ACTOR, now=now)
            Episode.objects.filter(Q(pk=key) | Q(merged_into=key)).update(merged_into=survivor)
            merged += 1
    return merged
