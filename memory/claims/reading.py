"""Read episodes into claims and store them, once each: the one reader of every door (E1)."""

from collections.abc import Collection
from datetime import datetime

import structlog
from django.db import transaction

from memory.claims.persons import person_of
from memory.domain.breaking import OWN_ERRORS, describe_own
from memory.domain.matter import matter_of
from memory.language.claims import ReadClaim, Speech, read_claims
from memory.language.modes import EVIDENCE, Mode
from memory.language.wording import tell_of
from memory.models import Claim, Episode, Source

log = structlog.get_logger(__name__)

RULES = "rules-1"  # the reader's name and version, as claims keep it
_MOST_CLAIMS = 200  # of one episode: a long list makes many, a flood of them is no speech
_VALUE_LENGTH, _SUBJECT_LENGTH, _SLOT_LENGTH = 200, 200, 40


def read_episodes_into_claims(*, episodes: Collection[str], now: datetime) -> dict[str, str]:
    """Read the episodes among these that nobody has read, and store their claims.

    Return why, by their ids, for those over which our own rules broke: they stay unread (E6). Whoever reads the same
    beside us waits, and finds them read.
    """
    stored: list[Claim] = []
    broken: dict[str, str] = {}
    with transaction.atomic():
        unread = Episode.objects.select_for_update(no_key=True).filter(pk__in=episodes, read_at=None).order_by("pk")
        rows = list(unread.defer("search"))
        for episode in rows:
            try:
                claims = read_episode(episode=episode)
            except OWN_ERRORS as error:
                broken[episode.pk] = describe_own(error)
                continue
            stored += [_row(episode, number, claim, now) for number, claim in enumerate(claims, start=1)]
        Claim.objects.bulk_create(stored, batch_size=500)
        Episode.objects.filter(pk__in=[episode.pk for episode in rows if episode.pk not in broken]).update(read_at=now)
    return broken


def read_episode(*, episode: Episode) -> list[ReadClaim]:
    """Return what an episode asserts, by rules; what already is one plain statement is its own claim, as it stands.

    An episode of an AI asserts nothing about its user (E2).
    """
    matter = matter_of(episode.text, episode.speaker)
    if not matter:
        return []
    if not is_speech(episode):
        return [_as_it_stands(episode, matter)]
    person = person_of(user=episode.user, speaker=episode.speaker, language=episode.language)
    speech = Speech(user=person, language=episode.language, said_on=episode.occurred_at.date())
    return read_claims(text=matter, speech=speech)[:_MOST_CLAIMS]


def keep_own_words(*, episode: Episode, words: str, now: datetime) -> Claim:
    """Store what somebody asked to be remembered in their own words, where nothing could be read out of it (E1)."""
    person = person_of(user=episode.user, speaker=episode.speaker, language=episode.language)
    german = (episode.language or "") == "de"
    told = tell_of(clause=words, name=person, german=german) or words
    claim = ReadClaim(
        sentence=told,
        subject=person,
        mode=Mode.ASSERTED,
        kind="",
        words=words,
        language=episode.language,
        strength=0.0,
        asked_to_remember=True,
    )
    taken = Claim.objects.filter(episode=episode).count()
    row = _row(episode, taken + 1, claim, now)
    row.save(force_insert=True)
    return row


def is_speech(episode: Episode) -> bool:
    """Tell whether somebody speaks for themselves, so that what they assert must be read out of it.

    Notes, and whatever programs store, are taken as they stand.
    """
    return episode.source == Source.HUMAN and not episode.is_derived


def _as_it_stands(episode: Episode, matter: str) -> ReadClaim:
    by_machine = episode.source == Source.AI and bool(episode.user)
    return ReadClaim(
        sentence=matter,
        subject="",
        mode=Mode.ADVISED if by_machine else Mode.ASSERTED,
        kind="",
        words="",
        language=episode.language,
        strength=0.0,
        is_whole=True,
    )


def _row(episode: Episode, number: int, claim: ReadClaim, now: datetime) -> Claim:
    slot = next(iter(sorted(claim.slots)), "")
    return Claim(
        workspace_id=episode.workspace_id,
        episode=episode,
        number=number,
        sentence=claim.sentence,
        subject=claim.subject[:_SUBJECT_LENGTH],
        slot=slot[:_SLOT_LENGTH],
        value=", ".join(sorted(claim.slots.get(slot, ())))[:_VALUE_LENGTH],
        is_denial=claim.is_denial,
        mode=claim.mode,
        kind=claim.kind,
        confidence=claim.strength,
        is_told=claim.is_told and claim.mode in EVIDENCE,
        is_whole=claim.is_whole,
        ended=[thing[:200] for thing in claim.ended],
        words=claim.words,
        language=claim.language,
        reader=RULES,
        created_at=now,
    )
