"""What a turn does among what is remembered: its surprise (D5), what it confirms (L15) and puts aside (L18)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from django.conf import settings
from django.db.models import F, OuterRef, Q, Subquery

from memory.domain.identity import Actor
from memory.domain.lifecycle import EpisodeStatus
from memory.domain.scoring import trust_in
from memory.domain.similarity import Profile, measure_surprise, move_importance
from memory.domain.taxonomy import Category
from memory.language.traits import Note, confirms, supersedes
from memory.ledger.transactions import change_episode_status
from memory.llm.embeddings import embedder_of
from memory.models import Episode, Transition
from memory.search.vectors import NearEpisode, nearest_older_episodes

CERTAIN = 1.0  # what nobody extracted was said as it stands

_NOTHING: Mapping[str, datetime] = MappingProxyType({})
_WEIGHED = ("importance", "distance", "surprise", "is_near_duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meeting:
    """What a new episode says of older ones, by their ids."""

    newer: Episode
    confirmed: Sequence[str]
    aside: Sequence[str]


def weigh_turns(
    *,
    workspace_id: int,
    ids: Sequence[str],
    again: Mapping[str, datetime] = _NOTHING,
    actor: Actor,
    now: datetime,
) -> None:
    """Weigh new episodes of turns once, in the order in which they were stored; those without a vector wait for it.

    `again` are those whose words were said once more in their conversation, by when that was (L15). All that changes
    is locked before, in the order of ids. The caller holds a transaction.
    """
    said = Episode.objects.for_workspace(workspace_id).active().filter(pk__in=ids, confidence__isnull=False)
    fresh = {one.pk: one for one in said.filter(distance=None).defer("search").order_by("number")}
    model = embedder_of(workspace_id)
    count = settings.POLICY.surprise.neighbours
    near = nearest_older_episodes(workspace_id=workspace_id, model=model.name, ids=list(fresh), count=count)
    older = Episode.objects.defer("search").in_bulk({one.id for found in near.values() for one in found})
    met = []
    for key, newer in fresh.items():
        if key in near:
            alike = _on_scale(near[key], model.profile)
            _surprise(newer, list(alike.values()))
            met.append(_meet_older(newer, {older[one]: alike[one] for one in alike if one in older}))
    _hold({*again, *near}.union(*([*one.confirmed, *one.aside] for one in met)))
    for key, occurred_at in again.items():
        _confirm(key, occurred_at)
    for one in met:
        _settle(one, actor=actor, now=now)
    Episode.objects.bulk_update([fresh[key] for key in near], _WEIGHED)


def _hold(ids: Collection[str]) -> None:
    locked = Episode.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    list(locked.values_list("pk", flat=True))


def _on_scale(near: Sequence[NearEpisode], profile: Profile) -> dict[str, float]:
    return {one.id: float(profile.reference(one.cosine)) for one in near}


def _surprise(newer: Episode, similarities: Sequence[float]) -> None:
    policy = settings.POLICY.surprise
    found = measure_surprise(similarities=similarities, policy=policy)
    newer.distance, newer.surprise, newer.is_near_duplicate = found.distance, found.score, found.is_near_duplicate
    newer.importance = move_importance(importance=newer.importance, surprise=found, policy=policy)


def _meet_older(newer: Episode, older: Mapping[Episode, float]) -> _Meeting:
    """Find what says the same, and what can no longer hold."""
    confirmed, aside = [], []
    policy, said = settings.POLICY.extraction, as_note(newer)
    for one, similarity in older.items():
        note = as_note(one)
        if confirms(newer=said, older=note, similarity=similarity, policy=policy):
            confirmed.append(one.pk)
        elif supersedes(newer=said, older=note, similarity=similarity, policy=policy):
            aside.append(one.pk)
    return _Meeting(newer=newer, confirmed=confirmed, aside=aside)


def _settle(met: _Meeting, *, actor: Actor, now: datetime) -> None:
    """Confirm what says the same, and put aside what can no longer hold."""
    for key in met.confirmed:
        _confirm(key, met.newer.occurred_at)
    standing = Episode.objects.active().filter(pk__in=met.aside).values_list("pk", flat=True)
    reason = superseded_by(met.newer.pk)
    change_episode_status(ids=list(standing), new=EpisodeStatus.SUPERSEDED, reason=reason, actor=actor, now=now)


def superseded_by(key: str) -> str:
    """Word why a note is put aside: another one, newer than it, says otherwise (L18)."""
    return f"superseded by {key}"


def restore_superseded(*, workspace_id: int, by: Collection[str], actor: Actor, now: datetime) -> list[str]:
    """Bring back the notes that were put aside for nothing but some episodes that have left (L18); return them."""
    aside = Episode.objects.for_workspace(workspace_id).filter(status=EpisodeStatus.SUPERSEDED)
    why = Transition.objects.filter(episode=OuterRef("pk")).order_by("-pk").values("reason")[:1]
    left = aside.annotate(why=Subquery(why)).filter(why__in=[superseded_by(key) for key in by])
    ids = list(left.values_list("pk", flat=True))
    return change_episode_status(ids=ids, new=EpisodeStatus.ACTIVE, reason=RESTORED, actor=actor, now=now)


RESTORED = "what superseded it was forgotten"


def _confirm(key: str, occurred_at: datetime) -> None:
    """Count a confirmation once: what confirms was said later than it, and than what confirmed it last."""
    later = Q(confirmed_at=None) | Q(confirmed_at__lt=occurred_at)
    said = Episode.objects.filter(later, pk=key, confidence__isnull=False, occurred_at__lt=occurred_at)
    said.update(confirmations=F("confirmations") + 1, confirmed_at=occurred_at)


def as_note(episode: Episode) -> Note:
    """Return an episode as the rules of notes see it."""
    return Note(
        text=episode.text,
        kind=episode.kind,
        speaker=episode.speaker,
        language=episode.language,
        occurred_at=episode.occurred_at,
        trust=trust_in(source=episode.source, policy=settings.POLICY.trust),
        confidence=CERTAIN if episode.confidence is None else episode.confidence,
        is_correction=episode.category == Category.CORRECTION,
    )
