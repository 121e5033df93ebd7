"""Import a file of episode lines (JSON Lines); doing it again adds nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from memory.ingest.arrival import Arrival, Outcome, Rejected, Stored
from memory.ingest.episodes import store_episodes
from memory.ingest.json_text import NotJson, read_json
from memory.ingest.lines import BadLine, EpisodeLine, read_line

BATCH = 500

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLine:
    """A line of a file: an episode line, or the reason why it is none."""

    number: int
    bytes: int
    content: EpisodeLine | Rejected


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What an import has done so far."""

    stored: int = 0
    deduplicated: int = 0
    forgotten: int = 0  # of the deduplicated ones
    rejected: list[tuple[int, Rejected]] = field(default_factory=list)
    cycles: list[str] = field(default_factory=list)

    def note(self, *, number: int, outcome: Outcome) -> None:
        """Count what became of a line."""
        if isinstance(outcome, Rejected):
            self.rejected.append((number, outcome))
        elif outcome.is_duplicate:
            self.deduplicated += 1
            self.forgotten += outcome.is_forgotten
        else:
            self.stored += 1


def read_file(*, stream: IO[bytes], arrival: Arrival) -> Iterator[FileLine]:
    """Read and check a file line by line; blank lines are passed over."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield FileLine(number=number, bytes=len(line), content=_read(line, arrival))


def store_file_lines(*, lines: Sequence[FileLine], arrival: Arrival, report: ImportReport) -> int:
    """Store the good ones of some lines in one batch and note what became of each; return how many are new."""
    good = [line.content for line in lines if isinstance(line.content, EpisodeLine)]
    outcomes = iter(store_episodes(lines=good, arrival=arrival))
    new = 0
    for line in lines:
        outcome = line.content if isinstance(line.content, Rejected) else next(outcomes)
        report.note(number=line.number, outcome=outcome)
        new += isinstance(outcome, Stored) and not outcome.is_duplicate
    return new


def in_batches(lines: Iterable[FileLine]) -> Iterator[list[FileLine]]:
    """Cut lines into batches, each of which is stored in a transaction of its own."""
    batch: list[FileLine] = []
    for line in lines:
        batch.append(line)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read(line: bytes, arrival: Arrival) -> EpisodeLine | Rejected:
    try:
        return read_line(raw=read_json(line.removeprefix(_BYTE_ORDER_MARK)), now=arrival.now)
    except BadLine as bad:
        return Rejected(status=bad.status, detail=bad.detail, errors=bad.errors)
    except NotJson as error:
        return Rejected(status=400, detail=f"The line is not JSON; {error}.")
