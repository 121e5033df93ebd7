"""Read episodes into claims and store them, once each: the one reader of every door, by rules or by a model (E1).

`read_episodes_into_claims` reads by rules. `plan_claim_requests` batches what a model reads, messages of one user with
those around them in their session, and `store_model_claims` stores its reply. `catch_up_claims` reads episodes of
before there were claims.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memory.domain.lifecycle import OWN_ERRORS, ConsolidationState, describe_own_error
from memory.domain.taxonomy import Role
from memory.language.claims import ReadClaim, Speech, read_claims
from memory.language.clauses import EVIDENCE, Mode
from memory.language.dates import holds_since
from memory.language.sentences import strip_echo
from memory.language.third_person import person_of, tell_of
from memory.language.words import detect_language
from memory.llm.call_log import CallScope
from memory.llm.embeddings import embed_for_workspace, embedder_of
from memory.llm.prompts import VERSIONS
from memory.llm.replies import OTHER, ClaimsReply, StatedClaim
from memory.llm.requests import ClaimsRequest, KnownPerson, MessageText, Purpose
from memory.models import Claim, Episode, Source, TurnEpisode, Workspace
from memory.search.vectors import store_claim_vectors

log = structlog.get_logger(__name__)
RULES_READER = "rules-1"  # the reader's name and version, as claims keep it
_MOST_CLAIMS = 200  # of one episode: a long list makes many, a flood of them is no speech
_MOST_WORDS = 30  # of a claim from which a belief may be founded
_VALUE_LENGTH, _SUBJECT_LENGTH, _SLOT_LENGTH, _CONTEXT_LENGTH, _READER_LENGTH = 200, 200, 40, 60, 100
_PLAIN_CONFIDENCE, _UNSURE_CONFIDENCE = 0.8, 0.4  # confidence of what a model calls plainly told, and of the rest


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
        unread = _lock_episodes(Episode.objects.filter(pk__in=episodes, read_at=None))
        rows = []
        for episode in unread:
            try:
                if leaves_speech and needs_model(episode):
                    continue
                claims = read_episode(episode=episode)
            except OWN_ERRORS as error:
                broken[episode.pk] = describe_own_error(error)
                continue
            rows.append(episode)
            stored += [_claim_row(episode, number, claim, now) for number, claim in enumerate(claims, start=1)]
        _store_claims(rows, stored, now)
    return broken


def store_model_claims(*, request: ClaimsRequest, reply: ClaimsReply, reader: str, now: datetime) -> list[Claim]:
    """Store what a model read; nothing where a message that it was shown is gone meanwhile: it may have told of it."""
    shown = request.labelled()
    stored: list[Claim] = []
    with transaction.atomic():
        ids = {message.id for message in shown.values()}
        rows = {one.pk: one for one in _lock_episodes(Episode.objects.active().filter(pk__in=ids))}
        if rows.keys() != ids:
            log.warning("reading_outdated", gone=len(ids) - len(rows))
            return []
        unread = {label: rows[one.id] for label, one in shown.items() if one.is_read and rows[one.id].read_at is None}
        for label, episode in unread.items():
            claims = [claim for claim in reply.claims if str(claim.n) == label]
            stored += _model_claim_rows(episode, claims, sources=shown, reader=reader, now=now)
        _store_claims(list(unread.values()), stored, now)
    return stored


def reader_of(*, model_for: Callable[[Purpose], str]) -> str:
    """Name a model as a reader, with the version of the prompt, as claims keep it."""
    return f"{model_for(Purpose.READ)} {VERSIONS[Purpose.READ]}"


def _lock_episodes(episodes: QuerySet[Episode]) -> list[Episode]:
    return list(episodes.select_for_update(no_key=True).order_by("pk").defer("search"))


def _store_claims(episodes: Iterable[Episode], claims: Collection[Claim], now: datetime) -> None:
    Claim.objects.bulk_create(claims, batch_size=500)
    Episode.objects.filter(pk__in=[episode.pk for episode in episodes]).update(read_at=now)


def read_episode(*, episode: Episode) -> list[ReadClaim]:
    """Return what an episode asserts, by rules; what already is one plain statement is its own claim, as it stands.

    An episode of an AI asserts nothing about its user (E2).
    """
    matter = strip_echo(episode.text, episode.speaker)
    if not matter:
        return []
    if not is_speech(episode):
        return [_whole_text_claim(episode, matter)]
    person = person_of(user=episode.user, speaker=episode.speaker, language=episode.language)
    speech = Speech(user=person, language=episode.language, said_on=episode.occurred_at.date())
    return read_claims(text=matter, speech=speech)[:_MOST_CLAIMS]


def store_own_words(*, episode: Episode, words: str, now: datetime) -> Claim:
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
    row = _claim_row(episode, taken + 1, claim, now)
    row.save(force_insert=True)
    return row


def needs_model(episode: Episode) -> bool:
    """Tell whether a model reads more out of an episode than stands there: of speech that says anything at all."""
    return is_speech(episode) and bool(strip_echo(episode.text, episode.speaker))


def is_speech(episode: Episode) -> bool:
    """Tell whether somebody speaks for themselves, so that what they assert must be read out of it.

    Notes, and whatever programs store, are taken as they stand.
    """
    return episode.source == Source.HUMAN and not episode.is_derived


def _whole_text_claim(episode: Episode, matter: str) -> ReadClaim:
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


def _claim_row(episode: Episode, number: int, claim: ReadClaim, now: datetime) -> Claim:
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
        reader=RULES_READER,
        created_at=now,
    )


def _model_claim_rows(
    episode: Episode, claims: Iterable[StatedClaim], *, sources: Mapping[str, MessageText], reader: str, now: datetime
) -> list[Claim]:
    """Return the claims that a model read out of one episode, each sentence once."""
    once = {claim.claim.casefold(): claim for claim in claims}
    told = list(once.values())[:_MOST_CLAIMS]
    return [_model_claim_row(episode, n, claim, sources, reader, now) for n, claim in enumerate(told, start=1)]


def _model_claim_row(
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
        confidence=_PLAIN_CONFIDENCE if claim.told else _UNSURE_CONFIDENCE,
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


_NOTE_ROLE = "note"  # the role of what neither its user nor an assistant says


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Messages that belong together: of one user and project, in one session; those of no session have no company."""

    user: str
    project_id: int | None
    session: str


def plan_claim_requests(
    *, workspace_id: int, episodes: QuerySet[Episode], now: datetime, alone: Collection[str] = ()
) -> list[ClaimsRequest]:
    """Batch the speech among some episodes, what was said first before the rest; those `alone` share no call.

    Batches are cut from what is unread and what was read at this `now`, so that an attempt that goes on after another
    asks the same, and finds the answers there.
    """
    talks = _messages_by_session(episodes, now)
    known = _Known(workspace_id, now)
    found: list[tuple[tuple[datetime, int], ClaimsRequest]] = []
    for _, of_user in groupby(sorted(talks, key=lambda talk: talk.user), key=lambda talk: talk.user):
        rows = [row for talk in sorted(of_user, key=lambda talk: _said_order(talks[talk][0])) for row in talks[talk]]
        for batch in _batch_messages(rows, alone):
            if any(row.read_at is None for row in batch):
                request = _build_request(batch, known, now, is_alone=batch[0].pk in alone)
                found.append((min(map(_said_order, batch)), request))
    return [request for _, request in sorted(found, key=lambda dated: dated[0])]


def _messages_by_session(episodes: QuerySet[Episode], now: datetime) -> dict[SessionKey, list[Episode]]:
    rows = [row for row in episodes.defer("search") if row.read_at in (None, now) and _has_content(row)]
    talks: dict[SessionKey, list[Episode]] = {}
    for row in sorted(rows, key=_said_order):
        talks.setdefault(_session_key(row), []).append(row)
    return talks


def _session_key(row: Episode) -> SessionKey:
    return SessionKey(user=row.user, project_id=row.project_id, session=row.session)


def _said_order(row: Episode) -> tuple[datetime, int]:
    return row.occurred_at, row.number


def _has_content(row: Episode) -> bool:
    return bool(strip_echo(row.text, row.speaker))


def _batch_messages(rows: Iterable[Episode], alone: Collection[str]) -> Iterator[list[Episode]]:
    """Cut messages into batches of as many, and as long ones, as one call takes."""
    policy = settings.POLICY.reading
    batch: list[Episode] = []
    characters = 0
    for row in rows:
        if row.pk in alone:
            yield [row]
            continue
        if batch and (len(batch) == policy.messages or characters + len(row.text) > policy.characters):
            yield batch
            batch, characters = [], 0
        batch.append(row)
        characters += len(row.text)
    if batch:
        yield batch


def _build_request(batch: Sequence[Episode], known: "_Known", now: datetime, *, is_alone: bool) -> ClaimsRequest:
    read = {row.pk for row in batch}
    messages: list[MessageText] = []
    for talk, of_talk in groupby(batch, key=_session_key):
        rows = list(of_talk)
        whole = rows if is_alone or not talk.session else _with_context(talk, rows, now)
        messages += [_message_text(row, is_read=row.pk in read) for row in whole if _has_content(row)]
    names = dict.fromkeys(message.speaker for message in messages if message.is_read)
    return ClaimsRequest(episodes=tuple(messages), known=tuple(known.of(user=batch[0].user, names=names)))


def _with_context(talk: SessionKey, rows: Sequence[Episode], now: datetime) -> list[Episode]:
    """Return messages with those around them in their session, all in order; what came after `now` is not there yet."""
    policy = settings.POLICY.reading
    same = Episode.objects.for_workspace(rows[0].workspace_id).active().filter(
        session=talk.session, user=talk.user, project=talk.project_id, is_derived=False, created_at__lte=now
    )  # fmt: skip
    order = list(same.order_by("occurred_at", "number").values_list("pk", flat=True))
    places = [place for place, key in enumerate(order) if key in {row.pk for row in rows}]
    near = {i for place in places for i in range(max(place - policy.before, 0), place + policy.after + 1)}
    shown = {order[i] for i in near if i < len(order)} | {row.pk for row in rows}
    return sorted(Episode.objects.filter(pk__in=shown).defer("search"), key=_said_order)


def _message_text(row: Episode, *, is_read: bool) -> MessageText:
    roles = {Source.HUMAN: Role.USER.value, Source.AI: Role.ASSISTANT.value}
    role = roles.get(Source(row.source), _NOTE_ROLE)
    name = person_of(user=row.user, speaker=row.speaker, language=row.language)
    return MessageText(
        id=row.pk,
        text=strip_echo(row.text, row.speaker),
        speaker=name if role == Role.USER else "",
        language=row.language,
        occurred_on=row.occurred_at.date().isoformat(),
        role=role,
        session=row.session,
        is_read=is_read,
    )


class _Known:
    """Which slots of a user's people earlier claims fill: those of before `now`, as a later attempt finds them, too."""

    def __init__(self, workspace_id: int, now: datetime) -> None:
        claims: Any = Claim.objects.for_workspace(workspace_id).evidence().active()
        self._claims = claims.filter(created_at__lt=now).exclude(slot="").order_by("slot")
        self._slots: dict[str, list[tuple[str, str]]] = {}

    def of(self, *, user: str, names: Iterable[str]) -> Iterator[KnownPerson]:
        """Yield the people of whom something is known, by name."""
        if user not in self._slots:
            rows = self._claims.filter(episode__user=user).values_list("subject", "slot").distinct()
            self._slots[user] = list(rows)
        for name in names:
            whose = {name.casefold(), f"{name.casefold()}'s"}
            slots = {slot for subject, slot in self._slots[user] if subject.casefold().split(" ")[0] in whose}
            if slots:
                yield KnownPerson(name=name, slots=tuple(sorted(slots)))


_CATCH_UP_BATCH = 200
CatchUpProgress = Callable[[int, int], object]  # episodes read since the last call, and those still to be read


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpResult:
    """How many episodes were read into how many claims, and how many wait still."""

    episodes: int = 0
    facts: int = 0  # of these episodes
    claims: int = 0
    left: int = 0


def catch_up_claims(
    *, workspace: Workspace, now: datetime, most: int | None = None, on_progress: CatchUpProgress = lambda _, __: None
) -> CatchUpResult:
    """Read up to `most` episodes that nobody has read, the oldest first; done again, it goes on where it was.

    What was read stands with its vectors after every batch. Raise CallFailed where the embedding model does not answer.
    """
    _embed_missing_claims(workspace)
    episodes = facts = claims = 0
    left = unread_episodes(workspace=workspace).count()
    while left and (most is None or episodes < most):
        size = _CATCH_UP_BATCH if most is None else min(_CATCH_UP_BATCH, most - episodes)
        batch = list(unread_episodes(workspace=workspace).values_list("pk", flat=True)[:size])
        if not batch:
            break
        stored = _read_batch(batch, now)
        _embed_missing_claims(workspace)
        episodes, facts, claims = episodes + len(batch), facts + stored[0], claims + stored[1]
        left = max(left - len(batch), 0)
        on_progress(len(batch), left)
    return CatchUpResult(episodes=episodes, facts=facts, claims=claims, left=left)


def unread_episodes(*, workspace: Workspace) -> QuerySet[Episode]:
    """Select what waits in the pool unread, and the facts that turns were read into; other settled ones stay unread."""
    unread = Episode.objects.for_workspace(workspace.pk).active().filter(read_at=None, is_derived=False)
    chosen = unread.filter(state=ConsolidationState.POOLED) | unread.filter(_is_fact(), state__in=_RESTING_STATES)
    return chosen.order_by("occurred_at", "pk")


_RESTING_STATES = (ConsolidationState.POOLED, ConsolidationState.SETTLED)  # no cycle is about to read it


def _is_fact() -> Exists:
    """Recognise what an extraction made of a turn; turns that are episodes in their own words are speech."""
    made = TurnEpisode.objects.filter(episode=OuterRef("pk"), is_verbatim=False)
    return Exists(made.filter(episode__confidence__isnull=False))


def _read_batch(ids: Sequence[str], now: datetime) -> tuple[int, int]:
    """Read a batch; return how many of it are facts, and how many claims all have."""
    facts = _read_facts(ids, now)
    read_episodes_into_claims(episodes=ids, now=now)
    return len(facts), Claim.objects.filter(episode__in=ids).count()


@transaction.atomic
def _read_facts(ids: Sequence[str], now: datetime) -> list[Claim]:
    """Give each fact the one claim that it is, under its own vector."""
    unread = Episode.objects.select_for_update(no_key=True, of=("self",)).filter(_is_fact(), pk__in=ids, read_at=None)
    rows = list(unread.order_by("pk").defer("search"))
    said = {row.pk: strip_echo(row.text, row.speaker) for row in rows}
    claims = Claim.objects.bulk_create(_fact_claim(row, said[row.pk], now) for row in rows if said[row.pk])
    Episode.objects.filter(pk__in=list(said)).update(read_at=now)
    return claims


def _fact_claim(fact: Episode, matter: str, now: datetime) -> Claim:
    """Return the claim that a fact is; what an AI says asserts nothing about its user (E2)."""
    is_advice = fact.source == Source.AI and bool(fact.user)
    return Claim(
        workspace_id=fact.workspace_id,
        episode=fact,
        number=1,
        sentence=matter,
        mode=Mode.ADVISED if is_advice else Mode.ASSERTED,
        confidence=fact.confidence or 0.0,
        is_whole=True,
        words=fact.verbatim,
        language=fact.language,
        reader=RULES_READER,
        created_at=now,
    )


def _embed_missing_claims(workspace: Workspace) -> None:
    """Embed the claims of the pool that no cycle would find otherwise, whoever read them."""
    model = embedder_of(workspace.pk)
    pooled = Claim.objects.for_workspace(workspace.pk).active().evidence().filter(is_whole=False)
    blank = pooled.filter(episode__state=ConsolidationState.POOLED).exclude(embedding__model=model.name)
    sentences: Mapping[int, str] = dict(blank.order_by("pk").values_list("pk", "sentence"))
    keys = list(sentences)
    for start in range(0, len(keys), _CATCH_UP_BATCH):
        batch = keys[start : start + _CATCH_UP_BATCH]
        vectors = embed_for_workspace(
            scope=CallScope(workspace_id=workspace.pk),
            model=model,
            texts=[sentences[key] for key in batch],
            timeout=settings.POLICY.budget.call_seconds,
        )
        store_claim_vectors(
            workspace_id=workspace.pk, model=model.name, vectors=dict(zip(batch, vectors, strict=True)), is_beside=True
        )
