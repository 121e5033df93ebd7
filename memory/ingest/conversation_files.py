"""Import conversations from files: turns go the way of all turns, batch by batch, and are counted.

`import_turns` accepts what a reader found; ConversationFile reads a file, an archive or a folder without holding it
in memory. A turn is known by its id: importing again adds nothing, and an import that was broken off is simply
repeated.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import cast

import ijson
from django.db import transaction

from memory.ingest.buffer import BufferedTurn, TurnAnswer, buffer_raw_turns
from memory.ingest.conversation_formats import (
    ImportedTurn,
    ImportItem,
    Skipped,
    SkipReason,
    Unreadable,
    is_chatgpt,
    is_claude,
    read_chatgpt,
    read_claude,
)
from memory.ingest.json_lines import BoundedJson, NotJson, in_batches, read_json, read_lines
from memory.ingest.schemas import ERASED, IngestContext, Rejected, split_line

BATCH = 500

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NEAR = 1024  # bytes
_ZIP = b"PK\x03\x04"


@dataclass(slots=True, kw_only=True)
class TurnReport:
    """What an import has done so far, or would do; counted are messages, each with all of its parts."""

    sessions: set[str] = field(default_factory=set)
    stored: Counter[str] = field(default_factory=Counter)  # by role
    known: int = 0
    split: int = 0  # of those that are stored or known
    erased: int = 0  # refused, as they were erased (L4)
    left_out: Counter[SkipReason] = field(default_factory=Counter)
    rejected: list[tuple[str, Rejected]] = field(default_factory=list)  # by place


def import_turns(
    *,
    found: Iterable[ImportItem],
    arrival: IngestContext,
    user: str = "",
    report: TurnReport,
    is_rehearsal: bool = False,
) -> None:
    """Accept what was found, for a user where its lines name none, each batch in a transaction of its own.

    A rehearsal does the same and takes each batch back, so that what it counts is what would come of it.
    """
    seen = set[tuple[object, object]]()
    for batch in in_batches(found, most=BATCH, size_of=_length):
        turns = [item for item in batch if isinstance(item, ImportedTurn)]
        report.left_out.update(item.reason for item in batch if isinstance(item, Skipped))
        report.rejected += [
            (item.place, item.rejected) for item in batch if not isinstance(item, ImportedTurn | Skipped)
        ]
        if is_rehearsal:  # of what was taken back nothing is known in the next batch
            fresh = [turn for turn in turns if _turn_key(turn) not in seen]
            report.known += len(turns) - len(fresh)
            seen |= {_turn_key(turn) for turn in turns if turn.line.get("turn_id")}
            turns = fresh
        _accept_batch(turns, arrival, user, report, is_rehearsal=is_rehearsal)


def _length(item: ImportItem) -> int:
    return len(str(item.line.get("content"))) if isinstance(item, ImportedTurn) else 0


def _turn_key(turn: ImportedTurn) -> tuple[object, object]:
    return turn.line.get("session"), turn.line.get("turn_id")


def _accept_batch(
    turns: list[ImportedTurn], arrival: IngestContext, user: str, report: TurnReport, *, is_rehearsal: bool
) -> None:
    lines = [{**({"user": user} if user else {}), **turn.line} for turn in turns]
    messages = [split_line(line=line, text="content", name="turn_id") for line in lines]
    with transaction.atomic():
        answers = iter(buffer_raw_turns(raw_lines=list(chain.from_iterable(messages)), arrival=arrival))
        transaction.set_rollback(is_rehearsal)
    for turn, parts in zip(turns, messages, strict=True):
        _count(turn, list(islice(answers, len(parts))), report)


def _count(turn: ImportedTurn, answers: Sequence[TurnAnswer], report: TurnReport) -> None:
    """Count what became of a message; one of which a part is refused is named once, and its other parts are kept."""
    accepted = [answer for answer in answers if isinstance(answer, BufferedTurn)]
    refused = [answer for answer in answers if isinstance(answer, Rejected)]
    report.erased += ERASED in refused
    report.rejected += [(turn.place, answer) for answer in refused if answer != ERASED][:1]
    if not accepted:
        return
    report.sessions.add(str(turn.line["session"]))
    report.split += len(answers) > 1
    if not all(answer.is_duplicate for answer in accepted):
        report.stored[str(turn.line["role"])] += 1
    elif not refused:
        report.known += 1


_CONVERSATIONS = re.compile(r"(?:.*/)?conversations[^/]*\.json", re.IGNORECASE)

# Of a sum that does not fit, of data that nobody can unpack, and of an entry that is encrypted or packed otherwise.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
Stream = BufferedReader | zipfile.ZipExtFile  # both can be looked into


class NoConversations(ValueError):
    """A file that holds conversations in no form that is known; the text says what was looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One stream of a source, its name, its size in bytes, and how it is opened."""

    name: str
    size: int
    open: Callable[[], Stream]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFile:
    """A file, archive or folder of conversations."""

    path: Path

    def size(self) -> int:
        """Return the bytes that there are to read; raise NoConversations where nothing is of the kind."""
        with ExitStack() as stack:
            size = sum(part.size for part in self._parts(stack))
        if not size:
            raise NoConversations("It is empty.")
        return size

    def read(self, on_read: Callable[[int], object]) -> Iterator[ImportItem]:
        """Read what there is, telling how many bytes were read; raise NoConversations, or OSError as the disk does.

        An archive that is broken further on is named as what cannot be read, behind what came before.
        """
        with ExitStack() as stack:
            for part in self._parts(stack):
                try:
                    with part.open() as stream:
                        yield from self._read_part(_Counted(stream, on_read), part.name)
                except _BROKEN as error:
                    reason = f"From here on the archive is broken, or locked: {error}"
                    yield Unreadable(place=part.name, rejected=Rejected(status=400, detail=reason))

    def _parts(self, stack: ExitStack) -> list[_Part]:
        if self.path.is_dir():
            files = sorted(path for path in self.path.rglob("*.json") if _CONVERSATIONS.fullmatch(path.name))
            parts = [_part_of(file) for file in files]
        elif _is_archive(self.path):
            archive = stack.enter_context(_archive_of(self.path))
            entries = [entry for entry in archive.infolist() if _CONVERSATIONS.fullmatch(entry.filename)]
            parts = [_entry_of(archive, entry) for entry in entries]
        else:
            return [_part_of(self.path)]
        if not parts:
            raise NoConversations("It holds no conversations.json, as the exports of ChatGPT and Claude do.")
        return parts

    def _read_part(self, stream: _Counted, name: str) -> Iterator[ImportItem]:
        if stream.first_character() == b"[":
            yield from self._read_export(stream, name)
        else:
            yield from _read_lines(stream)

    def _read_export(self, stream: _Counted, name: str) -> Iterator[ImportItem]:
        bounded = BoundedJson(stream)
        try:
            for number, conversation in enumerate(ijson.items(bounded, "item", use_float=True), start=1):
                bounded.begin()
                place = f"{name}, conversation {number}"
                if is_chatgpt(conversation):
                    yield from read_chatgpt(conversation=conversation, place=place)
                elif is_claude(conversation):
                    yield from read_claude(conversation=conversation, place=place)
                else:
                    yield Unreadable(place=place)
        except NotJson as error:
            reason = f"From here on it is not read: {error}."
            yield Unreadable(place=name, rejected=Rejected(status=400, detail=reason))
        except (ijson.JSONError, UnicodeDecodeError) as error:
            reason = f"From here on it is not JSON; {str(error).splitlines()[0]}."
            yield Unreadable(place=name, rejected=Rejected(status=400, detail=reason))


class _Counted:
    """A stream that tells how far it was read, and what it begins with."""

    def __init__(self, stream: Stream, on_read: Callable[[int], object]) -> None:
        self._stream, self._on_read = stream, on_read
        if stream.peek(len(_BYTE_ORDER_MARK)).startswith(_BYTE_ORDER_MARK):
            self.read(len(_BYTE_ORDER_MARK))

    def first_character(self) -> bytes:
        """Look at the first character that is no white space, if it stands near the beginning."""
        return self._stream.peek(_NEAR).lstrip()[:1]

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, or fewer; all without a size."""
        block = self._stream.read(size)
        self._on_read(len(block))
        return block

    def lines(self) -> Iterator[bytes]:
        """Read line by line."""
        for line in read_lines(self._stream):
            self._on_read(len(line))
            yield line


def _read_lines(stream: _Counted) -> Iterator[ImportItem]:
    said = Counter[str]()
    for number, raw in enumerate(stream.lines(), start=1):
        if raw.strip():
            yield _read_turn(raw, place=f"line {number}", said=said)


def _read_turn(raw: bytes, *, place: str, said: Counter[str]) -> ImportItem:
    """Read a turn; one without an id has one by its place in its session, so that the file can be imported again."""
    try:
        line = read_json(raw)
    except NotJson as error:
        return Unreadable(place=place, rejected=Rejected(status=400, detail=f"The line is not JSON; {error}."))
    if not isinstance(line, dict):
        return Unreadable(place=place, rejected=Rejected(status=422, detail="A turn is a JSON object."))
    session = str(line.get("session"))
    said[session] += 1
    if line.get("turn_id") is None:
        whole = json.dumps([session, said[session], line.get("role"), line.get("content")])
        line |= {"turn_id": f"line:{hashlib.sha256(whole.encode()).hexdigest()[:32]}"}
    return ImportedTurn(place=place, line=line)


def _is_archive(path: Path) -> bool:
    """Tell whether a file is, or once was, an archive: one that is cut off is not read as lines."""
    with path.open("rb") as file:
        return file.read(len(_ZIP)) == _ZIP or zipfile.is_zipfile(path)


def _archive_of(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise NoConversations("It is a broken archive: it is cut off, or no zip. Download it again.") from None


def _part_of(file: Path) -> _Part:
    return _Part(name=file.name, size=file.stat().st_size, open=lambda: file.open("rb"))


def _entry_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> _Part:
    return _Part(name=entry.filename, size=entry.file_size, open=lambda: cast(zipfile.ZipExtFile, archive.open(entry)))
