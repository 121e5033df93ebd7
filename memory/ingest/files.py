"""Import a file of episode lines (JSON Lines); doing it again adds nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import IO

from memory.ingest.arrival import Arrival, Outcome, Rejected, Stored
from memory.ingest.episodes import store_episodes
from memory.ingest.json_text import NotJson, read_json, read_lines
from memory.ingest.lines import BadLine, EpisodeLine, read_line
from memory.ingest.parts import document_of, in_batches, split_line
from memory.redaction.doors import redact_for

BATCH = 500

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


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


def read_file(*, stream: IO[bytes], arrival: Arrival) -> Iterator[FileLine]:
    """Read and check a file line by line; blank lines are passed over."""
    for number, line in enumerate(read_lines(stream), start=1):
        if line.strip():
            yield FileLine(number=number, bytes=len(line), content=_read(line, arrival))


def read_batches(*, stream: IO[bytes], arrival: Arrival) -> Iterator[list[FileLine]]:
    """Read and check a file in batches, each of which is stored in a transaction of its own."""
    return in_batches(read_file(stream=stream, arrival=arrival), most=BATCH, size_of=lambda line: line.bytes)


def store_file_lines(*, lines: Sequence[FileLine], arrival: Arrival, report: ImportReport) -> int:
    """Store the good ones of some lines in one batch and note what became of each; return how many episodes are new."""
    stored = iter(store_episodes(lines=[part for line in lines for part in line.parts], arrival=arrival))
    new = 0
    for line in lines:
        of_parts = list(islice(stored, len(line.parts)))
        outcomes = [line.content] if isinstance(line.content, Rejected) else of_parts
        report.note(number=line.number, outcomes=outcomes)
        new += sum(isinstance(outcome, Stored) and not outcome.is_duplicate for outcome in outcomes)
    return new


def _read(line: bytes, arrival: Arrival) -> list[EpisodeLine] | Rejected:
    try:
        raw = read_json(line.removeprefix(_BYTE_ORDER_MARK))
        return [read_line(raw=part, now=arrival.now) for part in _parts_of(raw, arrival)]
    except BadLine as bad:
        return Rejected(status=bad.status, detail=bad.detail, errors=bad.errors)
    except NotJson as error:
        return Rejected(status=400, detail=f"The line is not JSON; {error}.")


def _parts_of(raw: object, arrival: Arrival) -> Sequence[object]:
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
