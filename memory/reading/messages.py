"""What is to be read: a person's new messages in the order in which they were said, and the request (F1, F2).

`select_unread` selects messages, `plan_batches` cuts them into batches, one stream after the other, `build_request`
puts a batch beside what is believed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby

from django.conf import settings
from django.db.models import QuerySet

from memory.domain.taxonomy import Role
from memory.language.sentences import strip_echo
from memory.llm.requests import Message, ReadingRequest
from memory.models import Episode, Source
from memory.models.episodes import EpisodeQuerySet
from memory.reading.shown_beliefs import read_shown_beliefs
from memory.text.names import NOBODY, name_speaker, name_user

_ROLES = {Source.HUMAN: Role.USER.value, Source.AI: Role.ASSISTANT.value}


def select_unread(*, episodes: EpisodeQuerySet) -> EpisodeQuerySet:
    """Keep what people said and nobody has read yet; documents and machines tell nothing (E2)."""
    return episodes.active().speech().filter(read_at=None, dead_at=None)


def plan_batches(*, episodes: QuerySet[Episode], alone: Collection[str] = ()) -> list[MessageBatch]:
    """Cut messages into batches of one stream and project each, in the order in which they are to be read.

    Conversations stay together where they fit; the messages `alone` share no batch, so that one that cannot be read
    spoils nothing beside it.
    """
    rows = sorted(episodes.defer("search"), key=_said_order)
    by_stream: dict[str, list[Episode]] = {}
    for row in rows:
        by_stream.setdefault(stream_of(row), []).append(row)
    return [
        MessageBatch(stream=stream, messages=tuple(batch))
        for stream, messages in by_stream.items()
        for _, of_project in groupby(messages, key=lambda row: row.project_id)
        for batch in _cut(list(of_project), alone)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBatch:
    """Messages that one reading takes, in the order in which they were said; all of one stream and project."""

    stream: str
    messages: tuple[Episode, ...]


def stream_of(row: Episode) -> str:
    """Name the stream of a message: its user's; that of its project where it names none (F2)."""
    return stream_of_user(row.user) if row.user else f"project {row.project_id or ''}"


def stream_of_user(user: str) -> str:
    """Name the stream of a user's messages."""
    return f"user {user}"


def _said_order(row: Episode) -> tuple[datetime, int]:
    return row.occurred_at, row.number


def _cut(rows: Sequence[Episode], alone: Collection[str]) -> Iterator[list[Episode]]:
    """Yield batches of as many, and as long, messages as one reading takes."""
    policy = settings.POLICY.reading
    batch: list[Episode] = []
    for _, conversation in groupby(rows, key=lambda row: row.session or row.pk):
        for piece in _fitting(list(conversation), alone):
            is_full = len(batch) + len(piece) > policy.messages or _length([*batch, *piece]) > policy.characters
            if batch and (is_full or piece[0].pk in alone or batch[-1].pk in alone):
                yield batch
                batch = []
            batch = [*batch, *piece]
    if batch:
        yield batch


def _fitting(conversation: Sequence[Episode], alone: Collection[str]) -> Iterator[list[Episode]]:
    """Cut a conversation that is too long for one batch, and set the messages apart that share none."""
    policy = settings.POLICY.reading
    piece: list[Episode] = []
    for row in conversation:
        is_full = len(piece) == policy.messages or _length([*piece, row]) > policy.characters
        if piece and (is_full or row.pk in alone or piece[-1].pk in alone):
            yield piece
            piece = []
        piece.append(row)
    if piece:
        yield piece


def _length(rows: Iterable[Episode]) -> int:
    return sum(len(row.text) for row in rows)


def build_request(
    *, messages: Sequence[Episode], now: datetime, is_to_be_remembered: bool = False, with_global: bool = True
) -> ReadingRequest | None:
    """Put messages of one stream beside what is believed by now; None where they hold nothing but our own words.

    What somebody wants remembered is told by its speaker, whatever it came from. Without `with_global` only the
    project's own beliefs are shown, so that nothing is said of others (B21).
    """
    read = [row for row in messages if strip_echo(row.text, row.speaker)]
    if not read:
        return None
    shown = [
        message
        for _, conversation in groupby(read, key=lambda row: row.session)
        for message in _with_context(list(conversation), now, shown_anyway={row.pk for row in read})
    ]
    person, *other_names = _names_of_person(read)
    if is_to_be_remembered:
        told_by = name_speaker(user=read[0].user, speaker=read[0].speaker)
        shown = [replace(one, role=Role.USER.value, speaker=told_by) if one.is_read else one for one in shown]
    return ReadingRequest(
        person=person,
        names=tuple(other_names),
        today=max(row.occurred_at for row in read).date().isoformat(),
        episodes=tuple(shown),
        beliefs=tuple(read_shown_beliefs(messages=read, now=now, with_global=with_global)),
        is_to_be_remembered=is_to_be_remembered,
    )


def _names_of_person(rows: Sequence[Episode]) -> list[str]:
    """Return by what name the person of a stream is told of, then what else they are called there.

    Who speaks under a name that shares no word with the user's is somebody else; where no id names the user, several
    speakers are several people.
    """
    speakers = list(dict.fromkeys(name_speaker(user=row.user, speaker=row.speaker) for row in rows))
    own = name_user(user=rows[0].user)
    if not own:
        return speakers if len(speakers) == 1 else [NOBODY]
    return [name for name in speakers if own.casefold() in name.casefold().split()] or [own]


def _with_context(rows: Sequence[Episode], now: datetime, *, shown_anyway: Collection[str]) -> list[Message]:
    """Return messages of one conversation with what was said before and between them; what came later is not shown."""
    first, last, read = rows[0], rows[-1], {row.pk for row in rows}
    if not first.session:
        return [_as_message(row, is_read=True) for row in rows]
    talk = Episode.objects.for_workspace(first.workspace_id).active().filter(
        session=first.session, user=first.user, project=first.project_id, is_derived=False, created_at__lte=now
    )  # fmt: skip
    earlier = talk.filter(occurred_at__lte=last.occurred_at).order_by("-occurred_at", "-number").defer("search")
    most = settings.POLICY.reading.before
    said = sorted(earlier[: len(rows) * (most + 1) + most], key=_said_order)
    place = next((number for number, row in enumerate(said) if row.pk in read), 0)
    end = _said_order(last)
    around = [row for row in said[max(place - most, 0) :] if row.pk not in shown_anyway and _said_order(row) < end]
    whole = sorted([*rows, *around], key=_said_order)
    return [_as_message(row, is_read=row.pk in read) for row in whole if strip_echo(row.text, row.speaker)]


def _as_message(row: Episode, *, is_read: bool) -> Message:
    role = _ROLES.get(Source(row.source), Role.TOOL.value)
    text, most = strip_echo(row.text, row.speaker), settings.POLICY.reading.characters
    return Message(
        id=row.pk,
        text=f"{text[:most]} …" if is_read and len(text) > most else text,
        speaker=name_speaker(user=row.user, speaker=row.speaker) if role == Role.USER else "",
        language=row.language,
        occurred_on=row.occurred_at.date().isoformat(),
        role=role,
        session=row.session,
        is_read=is_read,
    )
