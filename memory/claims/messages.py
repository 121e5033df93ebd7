"""Gather what a model reads into batches: messages of one user, each with those around it in its session (E1)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from memory.domain.conversation import Role
from memory.domain.matter import matter_of
from memory.domain.user_names import person_of
from memory.llm.requests import ClaimsRequest, KnownPerson, MessageText
from memory.models import Claim, Episode, Source

_NOTE = "note"  # the role of what neither its user nor an assistant says


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Messages that belong together: of one user and project, in one session; those of no session have no company."""

    user: str
    project_id: int | None
    session: str


def plan_readings(
    *, workspace_id: int, episodes: QuerySet[Episode], now: datetime, alone: Collection[str] = ()
) -> list[ClaimsRequest]:
    """Batch the speech among some episodes, what was said first before the rest; those `alone` share no call.

    Batches are cut from what is unread and what was read at this `now`, so that an attempt that goes on after another
    asks the same, and finds the answers there.
    """
    talks = _talks_of(episodes, now)
    known = _Known(workspace_id, now)
    found: list[tuple[tuple[datetime, int], ClaimsRequest]] = []
    for _, of_user in groupby(sorted(talks, key=lambda talk: talk.user), key=lambda talk: talk.user):
        rows = [row for talk in sorted(of_user, key=lambda talk: _moment(talks[talk][0])) for row in talks[talk]]
        for batch in _cut(rows, alone):
            if any(row.read_at is None for row in batch):
                request = _request(batch, known, now, is_alone=batch[0].pk in alone)
                found.append((min(map(_moment, batch)), request))
    return [request for _, request in sorted(found, key=lambda dated: dated[0])]


def _talks_of(episodes: QuerySet[Episode], now: datetime) -> dict[Talk, list[Episode]]:
    rows = [row for row in episodes.defer("search") if row.read_at in (None, now) and _says(row)]
    talks: dict[Talk, list[Episode]] = {}
    for row in sorted(rows, key=_moment):
        talks.setdefault(_talk_of(row), []).append(row)
    return talks


def _talk_of(row: Episode) -> Talk:
    return Talk(user=row.user, project_id=row.project_id, session=row.session)


def _moment(row: Episode) -> tuple[datetime, int]:
    return row.occurred_at, row.number


def _says(row: Episode) -> bool:
    return bool(matter_of(row.text, row.speaker))


def _cut(rows: Iterable[Episode], alone: Collection[str]) -> Iterator[list[Episode]]:
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


def _request(batch: Sequence[Episode], known: "_Known", now: datetime, *, is_alone: bool) -> ClaimsRequest:
    read = {row.pk for row in batch}
    messages: list[MessageText] = []
    for talk, of_talk in groupby(batch, key=_talk_of):
        rows = list(of_talk)
        whole = rows if is_alone or not talk.session else _with_company(talk, rows, now)
        messages += [_message(row, is_read=row.pk in read) for row in whole if _says(row)]
    names = dict.fromkeys(message.speaker for message in messages if message.is_read)
    return ClaimsRequest(episodes=tuple(messages), known=tuple(known.of(user=batch[0].user, names=names)))


def _with_company(talk: Talk, rows: Sequence[Episode], now: datetime) -> list[Episode]:
    """Return messages with those around them in their session, all in order; what came after `now` is not there yet."""
    policy = settings.POLICY.reading
    same = Episode.objects.for_workspace(rows[0].workspace_id).active().filter(
        session=talk.session, user=talk.user, project=talk.project_id, is_derived=False, created_at__lte=now
    )  # fmt: skip
    order = list(same.order_by("occurred_at", "number").values_list("pk", flat=True))
    places = [place for place, key in enumerate(order) if key in {row.pk for row in rows}]
    near = {i for place in places for i in range(max(place - policy.before, 0), place + policy.after + 1)}
    shown = {order[i] for i in near if i < len(order)} | {row.pk for row in rows}
    return sorted(Episode.objects.filter(pk__in=shown).defer("search"), key=_moment)


def _message(row: Episode, *, is_read: bool) -> MessageText:
    roles = {Source.HUMAN: Role.USER.value, Source.AI: Role.ASSISTANT.value}
    role = roles.get(Source(row.source), _NOTE)
    name = person_of(user=row.user, speaker=row.speaker, language=row.language)
    return MessageText(
        id=row.pk,
        text=matter_of(row.text, row.speaker),
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
