"""Read episodes into claims and store them, once each: the one reader of every door, by rules or by a model (E1)."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

import structlog
from django.db import transaction
from django.db.models import QuerySet

from memory.domain.breaking import OWN_ERRORS, describe_own
from memory.domain.language import detect_language
from memory.domain.matter import matter_of
from memory.domain.user_names import person_of
from memory.language.claims import ReadClaim, Speech, read_claims
from memory.language.modes import EVIDENCE, Mode
from memory.language.since import holds_since
from memory.language.wording import tell_of
from memory.llm.prompts import VERSIONS
from memory.llm.replies import OTHER, ClaimsReply, StatedClaim
from memory.llm.requests import ClaimsRequest, MessageText, Purpose
from memory.models import Claim, Episode, Source

log = structlog.get_logger(__name__)

RULES = "rules-1"  # the reader's name and version, as claims keep it
_MOST_CLAIMS = 200  # of one episode: a long list makes many, a flood of them is no speech
_MOST_WORDS = 30  # of a claim from which a belief may be founded
_VALUE_LENGTH, _SUBJECT_LENGTH, _SLOT_LENGTH, _CONTEXT_LENGTH, _READER_LENGTH = 200, 200, 40, 60, 100
_PLAIN, _UNSURE = 0.8, 0.4  # confidence of what a model calls plainly told, and of the rest


def read_episodes_into_claims(
    *, episodes: Collection[str], now: datetime, leaves_speech: bool = False
) -> dict[str, str]:
    """Read the episodes among these that nobody has read by rules, and store their claims.

    Return why, by their ids, for those over which our own rules broke: they stay unread (E6). Speech is left out where
    a model is to read it. Whoever reads the same beside us waits, and finds them read.
    """
    stored: list[Claim] = []
    broken: dict[str, str] = {}
    with transaction.atomic():
        unread = _lock(Episode.objects.filter(pk__in=episodes, read_at=None))
        rows = []
        for episode in unread:
            try:
                if leaves_speech and needs_model(episode):
                    continue
                claims = read_episode(episode=episode)
            except OWN_ERRORS as error:
                broken[episode.pk] = describe_own(error)
                continue
            rows.append(episode)
            stored += [_row(episode, number, claim, now) for number, claim in enumerate(claims, start=1)]
        _store(rows, stored, now)
    return broken


def store_reading(*, request: ClaimsRequest, reply: ClaimsReply, reader: str, now: datetime) -> list[Claim]:
    """Store what a model read; nothing where a message that it was shown is gone meanwhile: it may have told of it."""
    shown = request.labelled()
    stored: list[Claim] = []
    with transaction.atomic():
        ids = {message.id for message in shown.values()}
        rows = {one.pk: one for one in _lock(Episode.objects.active().filter(pk__in=ids))}
        if rows.keys() != ids:
            log.warning("reading_outdated", gone=len(ids) - len(rows))
            return []
        unread = {label: rows[one.id] for label, one in shown.items() if one.is_read and rows[one.id].read_at is None}
        for label, episode in unread.items():
            claims = [claim for claim in reply.claims if str(claim.n) == label]
            stored += _stated_rows(episode, claims, sources=shown, reader=reader, now=now)
        _store(list(unread.values()), stored, now)
    return stored


def reader_of(*, model_for: Callable[[Purpose], str]) -> str:
    """Name a model as a reader, with the version of the prompt, as claims keep it."""
    return f"{model_for(Purpose.READ)} {VERSIONS[Purpose.READ]}"


def _lock(episodes: QuerySet[Episode]) -> list[Episode]:
    return list(episodes.select_for_update(no_key=True).order_by("pk").defer("search"))


def _store(episodes: Iterable[Episode], claims: Collection[Claim], now: datetime) -> None:
    Claim.objects.bulk_create(claims, batch_size=500)
    Episode.objects.filter(pk__in=[episode.pk for episode in episodes]).update(read_at=now)


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


def needs_model(episode: Episode) -> bool:
    """Tell whether a model reads more out of an episode than stands there: of speech that says anything at all."""
    return is_speech(episode) and bool(matter_of(episode.text, episode.speaker))


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
        slots=[name[:_SLOT_LENGTH] for name in sorted(claim.slots)],
        value=", ".join(sorted(claim.slots.get(slot, ())))[:_VALUE_LENGTH],
        is_denial=claim.is_denial,
        mode=claim.mode,
        kind=claim.kind,
        confidence=claim.strength,
        is_told=claim.is_told and claim.mode in EVIDENCE,
        is_whole=claim.is_whole,
        ended=[thing[:200] for thing in claim.ended],
        holds_from=holds_since(sentence=claim.words or claim.sentence, said_on=episode.occurred_at.date()),
        words=claim.words,
        language=claim.language,
        reader=RULES,
        created_at=now,
    )


def _stated_rows(
    episode: Episode, claims: Iterable[StatedClaim], *, sources: Mapping[str, MessageText], reader: str, now: datetime
) -> list[Claim]:
    """Return the claims that a model read out of one episode, each sentence once."""
    once = {claim.claim.casefold(): claim for claim in claims}
    told = list(once.values())[:_MOST_CLAIMS]
    return [_stated(episode, n, claim, sources, reader, now) for n, claim in enumerate(told, start=1)]


def _stated(
    episode: Episode, number: int, claim: StatedClaim, sources: Mapping[str, MessageText], reader: str, now: datetime
) -> Claim:
    used = {sources[label].id for label in claim.used} - {episode.pk}
    is_told = claim.told and claim.mode in EVIDENCE and len(claim.claim.split()) <= _MOST_WORDS
    return Claim(
        workspace_id=episode.workspace_id,
        episode=episode,
        number=number,
        sentence=claim.claim,
        subject=claim.subject[:_SUBJECT_LENGTH],
        slot="" if claim.slot == OTHER else claim.slot,
        slots=[] if claim.slot in ("", OTHER) else [claim.slot],
        value=claim.value[:_VALUE_LENGTH],
        context=claim.context[:_CONTEXT_LENGTH] or "general",
        is_denial=claim.denied,
        mode=claim.mode,
        confidence=_PLAIN if claim.told else _UNSURE,
        is_told=is_told,
        ended=[thing[:_VALUE_LENGTH] for thing in claim.ended if thing],
        holds_from=claim.since,
        holds_until=claim.until,
        words=claim.words if claim.words in episode.text else "",
        drew_on=sorted(used),
        language=detect_language(claim.claim) or episode.language,
        reader=reader[:_READER_LENGTH],
        created_at=now,
    )
