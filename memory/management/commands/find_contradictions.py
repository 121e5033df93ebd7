"""List beliefs that may contradict each other, and have a model asked about them (R11)."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.db.models import QuerySet

from memory.facts.contradictions import (
    believed_candidates,
    check_contradiction_candidates,
    dismiss_contradiction_candidates,
    find_contradiction_candidates,
    list_contradiction_candidates,
    reopen_contradiction_candidates,
)
from memory.management.command_line import Report, WorkspaceCommand, add_limit, pluralize, usage_error
from memory.models import ContradictionCandidate, Workspace


class Command(WorkspaceCommand):
    help = (
        "List pairs of beliefs that may contradict each other, for curators; with --check a model is asked first about "
        "those that nobody was asked about. No belief is changed."
    )

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--check", action="store_true", help="have a model asked about what is open")
        parser.add_argument("--again", action="store_true", help="with --check: and about what no model could tell")
        add_limit(parser, help="most pairs to look for, to ask about and to list")
        parser.add_argument("--dismiss", type=int, action="append", metavar="N", help="take this pair off the list")
        parser.add_argument("--reopen", type=int, action="append", metavar="N", help="put this pair back on it")

    def run(
        self, *, workspace: Workspace, limit: int | None, check: bool, again: bool, now: datetime, **options: Any
    ) -> Report:
        dismiss_contradiction_candidates(rivals=_named(workspace, options["dismiss"] or []))
        reopen_contradiction_candidates(rivals=_named(workspace, options["reopen"] or []))
        find_contradiction_candidates(workspace=workspace, now=now, most=limit)
        stopped = _check(workspace, limit, now, again=again) if check else ""
        rivals = list(list_contradiction_candidates(workspace=workspace)[:limit])
        unasked = believed_candidates(workspace=workspace).only_alike().count()
        return Report(
            values=[_as_values(rival) for rival in rivals],
            lines=_in_lines(rivals, unasked=unasked),
            failure=f"Not all were answered: {stopped}" if stopped else "",
        )


def _in_lines(rivals: Sequence[ContradictionCandidate], *, unasked: int) -> Iterator[str]:
    for rival in rivals:
        why = f" ({rival.why})" if rival.why else ""
        yield f"{rival.pk}: {rival.state.replace('_', ' ')}, {rival.similarity:.2f} alike{why}"
        for belief in (rival.first, rival.second):
            yield f"  {belief.pk} {belief.statement}"
    yield f"{pluralize(len(rivals), 'pair')} to look at."
    if unasked:
        yield f"{pluralize(unasked, 'pair')} only alike: --check has a model asked."


def _named(workspace: Workspace, numbers: list[int]) -> QuerySet[ContradictionCandidate]:
    """Return the pairs of these numbers, all of which must be there."""
    rivals = believed_candidates(workspace=workspace).filter(pk__in=numbers)
    if missing := sorted(set(numbers) - set(rivals.values_list("pk", flat=True))):
        raise usage_error(f"There is no pair {missing[0]}.")
    return rivals


def _check(workspace: Workspace, limit: int | None, now: datetime, *, again: bool) -> str:
    """Have a model asked; return what stopped the asking, if anything did."""
    seconds = settings.POLICY.contradiction.check_seconds
    return check_contradiction_candidates(
        workspace=workspace, now=now, seconds=seconds, most=limit, again=again
    ).stopped


def _as_values(rival: ContradictionCandidate) -> dict[str, Any]:
    return {
        "pair": rival.pk,
        "ids": [rival.first_id, rival.second_id],
        "statements": [rival.first.statement, rival.second.statement],
        "similarity": rival.similarity,
        "state": rival.state,
        "reason": rival.why,
        "checked_at": rival.checked_at.isoformat() if rival.checked_at else None,
    }
