"""Look at all beliefs: which may say the same, and which have faded (R7, R7d)."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.conf import settings

from memory.facts.reflection import Reflection, reflect
from memory.management.command_line import Report, WorkspaceCommand, pluralize
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = "Report beliefs that may say the same, and beliefs that have faded; nothing is changed."

    def run(self, *, workspace: Workspace, now: datetime, **options: Any) -> Report:
        reflection = reflect(workspace=workspace, now=now, most=settings.POLICY.reflection.pairs)
        return Report(values=asdict(reflection), lines=_in_lines(reflection))


def _in_lines(reflection: Reflection) -> Iterator[str]:
    for pair in reflection.duplicates:
        same = "" if pair.passes_guard else ", but they say different things: they may contradict each other"
        yield f"{pair.similarity:.2f} alike{same}"
        for key, statement in zip(pair.ids, pair.statements, strict=True):
            yield f"  {key} {statement}"
    for one in reflection.faded:
        what = "may be pruned" if one.is_prunable else "stale"
        yield f"{one.id} {what}: {one.effective_confidence:.3f} left. {one.statement}"
    duplicates, faded = pluralize(reflection.duplicate_count, "pair"), reflection.faded_count
    yield f"{pluralize(reflection.beliefs, 'belief')}, {duplicates} alike, {faded} faded."
