"""What a new fact does among what is remembered: its surprise (D5), what it confirms (L15) and puts aside (L18)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from django.conf import settings
from django.db.models import F, Q

from memory.consolidation.status import change_episode_status
from memory.domain.actor import Actor
from memory.domain.calibration import Profile
from memory.domain.category import Category
from memory.domain.kinds import Note, confirms, supersedes
from memory.domain.lifecycle import EpisodeStatus
from memory.domain.surprise import measure_surprise, move_importance
from memory.domain.trust import trust_in
from memory.llm.workspace_model import embedder_of
from memory.models import Episode
from memory.models.neighbours import Neighbour, nearest_older

CERTAIN = 1.0  # what nobody extracted was said as it stands

_NOTHING: Mapping[str, datetime] = MappingProxyType({})
_WEIGHED = ("importance", "distance", "surprise", "is_near_duplicate")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meeting:
    """What a new fact says of older ones, by their ids."""

    fact: Episode
    confirmed: Sequence[str]
    aside: Sequence[str]


def weigh_facts(
    *,
    workspace_id: int,
    ids: Sequence[str],
    again: Mapping[str, datetime] = _NOTHING,
    actor: Actor,
    now: datetime,
) -> None:
    """Weigh new facts once, in the order in which they were stored; those without a vector wait for it.

    `again` are facts that were told once more, in the same words and conversation, by when that was (L15). All that
    changes is locked before, in the order of ids. The caller holds a transaction.
    """
    facts = Episode.objects.for_workspace(workspace_id).active().filter(pk__in=ids, confidence__isnull=False)
    fresh = {fact.pk: fact for fact in facts.filter(distance=None).defer("search").order_by("number")}
    model = embedder_of(workspace_id)
    count = settings.POLICY.surprise.neighbours
    near = nearest_older(workspace_id=workspace_id, model=model.name, ids=list(fresh), count=count)
    older = Episode.objects.defer("search").in_bulk({one.id for found in near.values() for one in found})
    met = []
    for key, fact in fresh.items():
        if key in near:
            alike = _on_scale(near[key], model.profile)
            _surprise(fact, list(alike.values()))
            met.append(_meet_older(fact, {older[one]: alike[one] for one in alike if one in older}))
    _hold({*again, *near}.union(*([*one.confirmed, *one.aside] for one in met)))
    for key, occurred_at in again.items():
        _confirm(key, occurred_at)
    for one in met:
        _settle(one, actor=actor, now=now)
    Episode.objects.bulk_update([fresh[key] for key in near], _WEIGHED)


def _hold(ids: Collection[str]) -> None:
    locked = Episode.objects.select_for_update().filter(pk__in=ids).order_by("pk")
    list(locked.values_list("pk", flat=True))


def _on_scale(near: Sequence[Neighbour], profile: Profile) -> dict[str, float]:
    return {one.id: float(profile.reference(one.cosine)) for one in near}


def _surprise(fact: Episode, similarities: Sequence[float]) -> None:
    policy = settings.POLICY.surprise
    found = measure_surprise(similarities=similarities, policy=policy)
    fact.distance, fact.surprise, fact.is_near_duplicate = found.distance, found.score, found.is_near_duplicate
    fact.importance = move_importance(importance=fact.importance, surprise=found, policy=policy)


def _meet_older(fact: Episode, older: Mapping[Episode, float]) -> _Meeting:
    """Find what says the same, and what can no longer hold."""
    confirmed, aside = [], []
    policy, newer = settings.POLICY.extraction, as_note(fact)
    for one, similarity in older.items():
        note = as_note(one)
        if confirms(newer=newer, older=note, similarity=similarity, policy=policy):
            confirmed.append(one.pk)
        elif supersedes(newer=newer, older=note, similarity=similarity, policy=policy):
            aside.append(one.pk)
    return _Meeting(fact=fact, confirmed=confirmed, aside=aside)


def _settle(met: _Meeting, *, actor: Actor, now: datetime) -> None:
    """Confirm what says the same, and put aside what can no longer hold."""
    for key in met.confirmed:
        _confirm(key, met.fact.occurred_at)
    standing = Episode.objects.active().filter(pk__in=met.aside).values_list("pk", flat=True)
    reason = f"superseded by {met.fact.pk}"
    change_episode_status(ids=list(standing), new=EpisodeStatus.SUPERSEDED, reason=reason, actor=actor, now=now)


def _confirm(key: str, occurred_at: datetime) -> None:
    """Count a confirmation once: what confirms was said later than the fact, and than what confirmed it last."""
    later = Q(confirmed_at=None) | Q(confirmed_at__lt=occurred_at)
    facts = Episode.objects.filter(later, pk=key, confidence__isnull=False, occurred_at__lt=occurred_at)
    facts.update(confirmations=F("confirmations") + 1, confirmed_at=occurred_at)


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
