"""Send found turns the way of all turns, batch by batch, and count what became of them.

A turn is known by its id: importing again adds nothing, and an import that was broken off is simply repeated. A
message that is longer than a turn may be comes in as several turns, in one transaction, and is counted as one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from django.db import transaction

from memory.ingest.arrival import ERASED, Arrival, Rejected
from memory.ingest.importers.found import Found, FoundTurn, LeftOut, Reason
from memory.ingest.parts import in_batches, split_line
from memory.ingest.turns.accepting import Accepted, TurnAnswer, take_turns

BATCH = 500


@dataclass(slots=True, kw_only=True)
class TurnReport:
    """What an import has done so far, or would do; counted are messages, each with all of its parts."""

    sessions: set[str] = field(default_factory=set)
    stored: Counter[str] = field(default_factory=Counter)  # by role
    known: int = 0
    split: int = 0  # of those that are stored or known
    erased: int = 0  # refused, as they were erased (L4)
    left_out: Counter[Reason] = field(default_factory=Counter)
    rejected: list[tuple[str, Rejected]] = field(default_factory=list)  # by place


def import_turns(
    *,
    found: Iterable[Found],
    arrival: Arrival,
    user: str = "",
    report: TurnReport,
    is_rehearsal: bool = False,
) -> None:
    """Accept what was found, for a user where its lines name none, each batch in a transaction of its own.

    A rehearsal does the same and takes each batch back, so that what it counts is what would come of it.
    """
    seen = set[tuple[object, object]]()
    for batch in in_batches(found, most=BATCH, size_of=_length):
        turns = [item for item in batch if isinstance(item, FoundTurn)]
        report.left_out.update(item.reason for item in batch if isinstance(item, LeftOut))
        report.rejected += [(item.place, item.rejected) for item in batch if not isinstance(item, FoundTurn | LeftOut)]
        if is_rehearsal:  # of what was taken back nothing is known in the next batch
            fresh = [turn for turn in turns if _name(turn) not in seen]
            report.known += len(turns) - len(fresh)
            seen |= {_name(turn) for turn in turns if turn.line.get("turn_id")}
            turns = fresh
        _accept(turns, arrival, user, report, is_rehearsal=is_rehearsal)


def _length(item: Found) -> int:
    return len(str(item.line.get("content"))) if isinstance(item, FoundTurn) else 0


def _name(turn: FoundTurn) -> tuple[object, object]:
    return turn.line.get("session"), turn.line.get("turn_id")


def _accept(turns: list[FoundTurn], arrival: Arrival, user: str, report: TurnReport, *, is_rehearsal: bool) -> None:
    lines = [{**({"user": user} if user else {}), **turn.line} for turn in turns]
    messages = [split_line(line=line, text="content", name="turn_id") for line in lines]
    with transaction.atomic():
        answers = iter(take_turns(raw_lines=list(chain.from_iterable(messages)), arrival=arrival))
        transaction.set_rollback(is_rehearsal)
    for turn, parts in zip(turns, messages, strict=True):
        _count(turn, list(islice(answers, len(parts))), report)


def _count(turn: FoundTurn, answers: Sequence[TurnAnswer], report: TurnReport) -> None:
    """Count what became of a message; one of which a part is refused is named once, and its other parts are kept."""
    accepted = [answer for answer in answers if isinstance(answer, Accepted)]
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
