"""List beliefs that may contradict each other, and have a model asked about them (R11)."""

import json
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet
from django.utils import timezone

from memory.access import find_workspace
from memory.facts.contradictions import (
    believed_candidates,
    check_contradiction_candidates,
    dismiss_contradiction_candidates,
    find_contradiction_candidates,
    list_contradiction_candidates,
    reopen_contradiction_candidates,
)
from memory.management.command_line import ServiceCommand, pluralize, usage_error
from memory.models import ContradictionCandidate, Workspace


class Command(ServiceCommand):
    help = (
        "List pairs of beliefs that may contradict each other, for curators; with --check a model is asked first about "
        "those that nobody was asked about. No belief is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument("--check", action="store_true", help="have a model asked about what is open")
        parser.add_argument("--again", action="store_true", help="with --check: and about what no model could tell")
        parser.add_argument("--limit", type=_at_least_one, help="most pairs to look for, to ask about and to list")
        parser.add_argument("--dismiss", type=int, action="append", metavar="N", help="take this pair off the list")
        parser.add_argument("--reopen", type=int, action="append", metavar="N", help="put this pair back on it")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, workspace: str, limit: int | None, as_json: bool, **options: Any) -> None:
        place = find_workspace(name=workspace)
        for settle, numbers in (
            (dismiss_contradiction_candidates, options["dismiss"]),
            (reopen_contradiction_candidates, options["reopen"]),
        ):
            settle(rivals=_named(place, numbers or []))
        find_contradiction_candidates(workspace=place, now=timezone.now(), most=limit)
        stopped = _check(place, limit, again=options["again"]) if options["check"] else ""
        rivals = list(list_contradiction_candidates(workspace=place)[:limit])
        if as_json:
            self.stdout.write(json.dumps([_as_values(rival) for rival in rivals]))
        else:
            self._show(rivals, unasked=believed_candidates(workspace=place).only_alike().count())
        if stopped:
            raise CommandError(f"Not all were answered: {stopped}", returncode=1)

    def _show(self, rivals: list[ContradictionCandidate], *, unasked: int) -> None:
        for rival in rivals:
            why = f" ({rival.why})" if rival.why else ""
            self.stdout.write(f"{rival.pk}: {rival.state.replace('_', ' ')}, {rival.similarity:.2f} alike{why}")
            for belief in (rival.first, rival.second):
                self.stdout.write(f"  {belief.pk} {belief.statement}")
        self.stdout.write(f"{pluralize(len(rivals), 'pair')} to look at.")
        if unasked:
            self.stdout.write(f"{pluralize(unasked, 'pair')} only alike: --check has a model asked.")


def _named(workspace: Workspace, numbers: list[int]) -> QuerySet[ContradictionCandidate]:
    """Return the pairs of these numbers, all of which must be there."""
    rivals = believed_candidates(workspace=workspace).filter(pk__in=numbers)
    if missing := sorted(set(numbers) - set(rivals.values_list("pk", flat=True))):
        raise usage_error(f"There is no pair {missing[0]}.")
    return rivals


def _check(workspace: Workspace, limit: int | None, *, again: bool) -> str:
    """Have a model asked; return what stopped the asking, if anything did."""
    seconds = settings.POLICY.contradiction.check_seconds
    return check_contradiction_candidates(
        workspace=workspace, now=timezone.now(), seconds=seconds, most=limit, again=again
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


def _at_least_one(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise ArgumentTypeError("a whole number of 1 or more")
    return int(given)
