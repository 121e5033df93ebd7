"""Import files of episode lines (JSON Lines), at once or lived through in time; importing again adds nothing.

The rule is Clock.

`read_batches` checks a file, `store_file_lines` stores a batch, `replay_lines` stores each episode at the time at
which it happened, with cycles in between. JSON of others is read within bounded memory: `read_json`, `read_lines`,
BoundedJson.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate, islice
from typing import IO, Protocol, TypeVar

from django.conf import settings

from memory.consolidation.cycle import database_now, open_cycle
from memory.consolidation.schedule import wait_for_cycle
from memory.ingest.schemas import (
    BadLine,
    EpisodeLine,
    IngestContext,
    Outcome,
    Rejected,
    Stored,
    document_of,
    read_line,
    split_line,
)
from memory.ingest.store import store_episodes
from memory.models import Cycle, Episode, Trigger, Workspace
from memory.redaction.service import redact_for

BATCH = 500
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Renewed again and again; the hold of a replay that was killed runs out by itself.
_HOLD_SECONDS = 900.0
_RENEW_SECONDS = 60.0
TOO_DEEP = "it is nested too deeply"
_DEEPEST = 100  # levels; exports have ten


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    """A line of a file: an episode line, several where its text is too long for one, or the reason why it is none."""

    number: int
    bytes: int
    content: Sequence[EpisodeLine] | Rejected

    @property
    def parts(self) -> Sequence[EpisodeLine]:
        """Return the episode lines; of a bad line none."""
        return () if isinstance(self.content, Rejected) else self.content

    @property
    def occurred_at(self) -> datetime | None:
        """Return when it happened, if it says so and is not bad."""
        return self.parts[0].occurred_at if self.parts else None


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What an import has done so far; counted are the lines of the file, each with all of its parts."""

    stored: int = 0
    deduplicated: int = 0
    forgotten: int = 0  # of the deduplicated ones
    split: int = 0  # of those that are stored or known
    rejected: list[tuple[int, Rejected]] = field(default_factory=list)
    cycles: list[str] = field(default_factory=list)

    def note(self, *, number: int, outcomes: Sequence[Outcome]) -> None:
        """Count what became of a line; one of which a part is refused is named once, and its other parts are kept."""
        stored = [outcome for outcome in outcomes if isinstance(outcome, Stored)]
        refused = [outcome for outcome in outcomes if isinstance(outcome, Rejected)]
        self.rejected += [(number, outcome) for outcome in refused[:1]]
        self.split += len(outcomes) > 1 and bool(stored)
        if not all(outcome.is_duplicate for outcome in stored):
            self.stored += 1
        elif not refused:
            self.deduplicated += 1
            self.forgotten += any(outcome.is_forgotten for outcome in stored)


def read_file(*, stream: IO[bytes], arrival: IngestContext) -> Iterator[FileLine]:
    """Read and check a file line by line; blank lines are passed over."""
    for number, line in enumerate(read_lines(stream), start=1):
        if line.strip():
            yield FileLine(number=number, bytes=len(line), content=_read_line_of_file(line, arrival))


def read_batches(*, stream: IO[bytes], arrival: IngestContext) -> Iterator[list[FileLine]]:
    """Read and check a file in batches, each of which is stored in a transaction of its own."""
    return in_batches(read_file(stream=stream, arrival=arrival), most=BATCH, size_of=lambda line: line.bytes)


def store_file_lines(*, lines: Sequence[FileLine], arrival: IngestContext, report: ImportReport) -> int:
    """Store the good ones of some lines in one batch and note what became of each; return how many episodes are new."""
    stored = iter(store_episodes(lines=[part for line in lines for part in line.parts], arrival=arrival))
    new = 0
    for line in lines:
        of_parts = list(islice(stored, len(line.parts)))
        outcomes = [line.content] if isinstance(line.content, Rejected) else of_parts
        report.note(number=line.number, outcomes=outcomes)
        new += sum(isinstance(outcome, Stored) and not outcome.is_duplicate for outcome in outcomes)
    return new


def _read_line_of_file(line: bytes, arrival: IngestContext) -> list[EpisodeLine] | Rejected:
    try:
        raw = read_json(line.removeprefix(_BYTE_ORDER_MARK))
        return [read_line(raw=part, now=arrival.now) for part in _parts_of(raw, arrival)]
    except BadLine as bad:
        return Rejected.for_line(bad)
    except NotJson as error:
        return Rejected(status=400, detail=f"The line is not JSON; {error}.")


def _parts_of(raw: object, arrival: IngestContext) -> Sequence[object]:
    """Split a line whose text is too long for one episode, into several of one session or document.

    Secrets are taken out before: of one that is split in two, neither half need look like any.
    """
    if not isinstance(raw, dict) or len(split_line(line=raw, text="text", name="idempotency_key")) == 1:
        return [raw]
    text = redact_for(workspace_id=arrival.workspace.pk, text=raw["text"])
    whole = {**raw, "text": text}
    if raw.get("occurred_at") and not (raw.get("session") or raw.get("document")):
        whole["document"] = document_of(text)
    return split_line(line=whole, text="text", name="idempotency_key")


_FULL = 16 * 2**20  # bytes or characters from which a batch is full, however few lines it has
Item = TypeVar("Item")


def in_batches(items: Iterable[Item], *, most: int, size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Cut what comes from a file into batches of so many, or of few where they are long."""
    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += size_of(item)
        if len(batch) >= most or size >= _FULL:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def plan_replay(*, times: Sequence[datetime], every: int, gap: timedelta) -> list[range]:
    """Cut a history, given by its times in order, into batches with a cycle after each.

    A batch ends after `every` episodes, before a longer pause than `gap`, and with the history.
    """
    batches: list[range] = []
    start = 0
    for index in range(1, len(times) + 1):
        is_end = index == len(times)
        if is_end or index - start == every or times[index] - times[index - 1] > gap:
            batches.append(range(start, index))
            start = index
    return batches


def replay_lines(
    *,
    lines: Sequence[FileLine],
    arrival: IngestContext,
    report: ImportReport,
    on_batch: Callable[[int], object],
    on_look: Callable[[Cycle], None] | None = None,
) -> None:
    """Store lines in the order of their times and run a cycle after each batch, waiting for it.

    `on_batch` is told how many lines are done, and `on_look` sees a cycle at every look while it is waited for. A batch
    that holds nothing new runs no cycle, so that a history that was broken off goes on where it stopped.
    """
    at = replace(arrival, is_replay=True)
    history = sorted(lines, key=lambda line: (_time_of(line, arrival), line.number))
    batches = plan_replay(
        times=[_time_of(line, arrival) for line in history],
        every=settings.POLICY.consolidation.trigger_episodes,
        gap=timedelta(days=settings.POLICY.ingest.replay_gap_days),
    )
    with _other_cycles_held(arrival.workspace):
        for batch in batches:
            _hold_cycles(arrival.workspace)
            part = history[batch.start : batch.stop]
            new = store_file_lines(lines=part, arrival=at, report=report)
            if arrival.workspace.keeps_beliefs and (new or (batch is batches[-1] and _has_pending(arrival.workspace))):
                now = _time_of(part[-1], arrival)
                report.cycles.append(_run_cycle(workspace=arrival.workspace, now=now, on_look=on_look))
            on_batch(len(part))


def _time_of(line: FileLine, arrival: IngestContext) -> datetime:
    """Return when a line's episode happened; one that does not say so, or is bad, comes at the end."""
    return line.occurred_at or arrival.now


def _has_pending(workspace: Workspace) -> bool:
    pending: bool = Episode.objects.for_workspace(workspace).pending().exists()
    return pending


def _run_cycle(*, workspace: Workspace, now: datetime, on_look: Callable[[Cycle], None] | None) -> str:
    """Run a cycle to its end at a time of the history, after one that is still open."""
    while True:
        cycle, is_new = open_cycle(workspace_id=workspace.pk, now=now, trigger=Trigger.REPLAY)
        holder = _HoldRenewer(workspace=workspace, on_look=on_look)
        wait_for_cycle(cycle.id, on_look=holder.look)
        if is_new:
            return cycle.id


@contextmanager
def _other_cycles_held(workspace: Workspace) -> Iterator[None]:
    """Keep every other wake-up from starting a cycle."""
    try:
        yield
    finally:
        Workspace.objects.filter(pk=workspace.pk).update(next_cycle_held_until=None)


class _HoldRenewer:
    """Renews the hold while a cycle takes its time."""

    def __init__(self, *, workspace: Workspace, on_look: Callable[[Cycle], None] | None) -> None:
        self.workspace, self.on_look, self.held_at = workspace, on_look, time.monotonic()

    def look(self, cycle: Cycle) -> None:
        """Hold anew once a minute, and pass the look on."""
        if self.on_look:
            self.on_look(cycle)
        if time.monotonic() - self.held_at > _RENEW_SECONDS:
            _hold_cycles(self.workspace)
            self.held_at = time.monotonic()


def _hold_cycles(workspace: Workspace) -> None:
    """Hold for a while, by the database's clock."""
    Workspace.objects.filter(pk=workspace.pk).update(next_cycle_held_until=database_now(plus=_HOLD_SECONDS))


LONGEST = 64 * 2**20  # bytes of a line, or of a conversation in an export
TOO_LONG = f"it is longer than {LONGEST // 2**20} MiB"
LONGEST_TEXT = 16 * 2**20  # bytes of a text in an export: the parser looks at it anew with every block that it reads
_LONG_TEXT = f"a text in it is longer than {LONGEST_TEXT // 2**20} MiB"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

# The parser's own words are kept where they speak of JSON; these do not.
_WORDS = {
    "Extra data": "there is more after its end",
    "Expecting value": "a value is missing, or is none that JSON knows",
    "Invalid control character at": "a control character stands in a text",
}


class NotJson(ValueError):
    """Bytes that are no JSON; the text says where and why."""


def read_json(raw: bytes) -> object:
    """Parse UTF-8 bytes, unless they are too many.

    NaN and infinity get through, and whoever checks the fields refuses them by name.
    """
    if len(raw) > LONGEST:
        raise NotJson(TOO_LONG)
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start + 1} is no UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"{f'line {error.lineno}, ' if error.lineno > 1 else ''}column {error.colno}"
        raise NotJson(f"{place}: {_WORDS.get(error.msg, error.msg[:1].lower() + error.msg[1:])}") from None
    except RecursionError:
        raise NotJson(TOO_DEEP) from None
    except ValueError:  # what is left: Python reads no number of more than 4,300 digits
        raise NotJson("a number in it has too many digits") from None


class Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, or fewer."""


class BoundedJson:
    """A stream of JSON that is read no further where it would take too much memory: it raises NotJson.

    A parser keeps a value until it ends, and the path to it: 64 MiB of opening brackets would take it 19 GB.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream, self._since_begin = stream, 0
        self._depth, self._is_text, self._is_escaped, self._text_bytes = 0, False, False, 0

    def begin(self) -> None:
        """Count the bytes of a new value."""
        self._since_begin = 0

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, or fewer."""
        block = self._stream.read(size)
        self._since_begin += len(block)
        if self._since_begin > LONGEST:
            raise NotJson(TOO_LONG)
        if block and self._deepest_in(block) > _DEEPEST:
            raise NotJson(TOO_DEEP)
        if self._text_bytes > LONGEST_TEXT:
            raise NotJson(_LONG_TEXT)
        return block

    def _deepest_in(self, block: bytes) -> int:
        """Return how deep a block leads, brackets within texts left out."""
        size = len(block)
        if self._is_escaped:
            block = block[1:]
        block = block.replace(b"\\\\", b"")
        self._is_escaped = block.endswith(b"\\")
        pieces = block.replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._is_text :: 2])
        before = self._text_bytes + size if len(pieces) == 1 else len(pieces[-1])
        self._is_text ^= len(pieces) % 2 == 0
        self._text_bytes = before if self._is_text else 0
        changes = (1 if bracket in b"[{" else -1 for bracket in outside.translate(None, _NO_BRACKETS))
        depths = list(accumulate(changes, initial=self._depth))
        self._depth = depths[-1]
        return max(depths)


class HasLines(Protocol):
    """What lines come from."""

    def readline(self, size: int = -1, /) -> bytes:
        """Return a line, or so many bytes of it."""


def read_lines(stream: HasLines) -> Iterator[bytes]:
    """Read a stream line by line; of one that is too long, what is over is passed over."""
    while line := stream.readline(LONGEST + 1):
        end = line[-1:]
        while len(line) > LONGEST and end not in (b"\n", b""):
            end = stream.readline(LONGEST)[-1:]
        yield line if len(line) <= LONGEST else line + b"\n"
