"""Make beliefs again from the recorded cycles and report what differed (B22)."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from memory.consolidation.rebuild import BeliefDifference, RebuildResult, RowDifference, rebuild_beliefs
from memory.management.command_line import Report, WorkspaceCommand, pluralize, progress_bar
from memory.models import Workspace


class Command(WorkspaceCommand):
    help = (
        "Make a workspace's beliefs again from its recorded cycles, without asking a model, and set right what differs."
    )
    json_help = "print one JSON document instead of lines"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what differs; write nothing")

    def run(self, *, workspace: Workspace, dry_run: bool, now: datetime, as_json: bool, **options: Any) -> Report:
        with progress_bar(of=workspace.name, unit="cycle", as_json=as_json) as bar:

            def step(total: int) -> None:
                bar.total = total
                bar.update()

            rebuilt = rebuild_beliefs(workspace=workspace, now=now, is_dry_run=dry_run, on_cycle=step)
        return Report(
            values=_rebuilt_as_json(rebuilt, is_dry_run=dry_run), lines=_in_lines(rebuilt, is_dry_run=dry_run)
        )


_FOLLOWS = {"statement_hash"}  # tells nothing that another column does not


def _in_lines(rebuilt: RebuildResult, *, is_dry_run: bool) -> Iterator[str]:
    """Say in what beliefs differed from their record, in a line for each."""
    for difference in rebuilt.differences:
        yield f"{difference.id}: {'; '.join(_difference_in_words(difference))}"
    made = f"{pluralize(rebuilt.beliefs, 'belief')} of {pluralize(rebuilt.cycles, 'cycle')}"
    yield f"{made}, {_outcome_in_words(rebuilt, is_dry_run=is_dry_run)}"
    if rebuilt.released:
        yield f"{pluralize(rebuilt.released, 'episode')} will be consolidated anew."
    if rebuilt.decided_anew:
        yield f"{pluralize(rebuilt.decided_anew, 'structural change')} will be decided anew."


def _outcome_in_words(rebuilt: RebuildResult, *, is_dry_run: bool) -> str:
    if not rebuilt.differences:
        return "all as recorded"
    return f"{pluralize(len(rebuilt.differences), 'difference')} {'found' if is_dry_run else 'set right'}"


def _difference_in_words(difference: BeliefDifference) -> list[str]:
    if difference.is_lost:
        return ["cannot be made again"]
    shown = [(name, pair) for name, pair in difference.columns.items() if name not in _FOLLOWS]
    columns = [f"{name} {_value_as_json(stands)} → {_value_as_json(recorded)}" for name, (stands, recorded) in shown]
    return [*columns, *_rows_in_words("evidence", difference.evidence), *_rows_in_words("lineage", difference.lineage)]


def _value_as_json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def _rows_in_words(noun: str, rows: RowDifference) -> list[str]:
    counts = {"missing": len(rows.missing), "surplus": len(rows.surplus)}
    return [f"{noun}: {count} {what}" for what, count in counts.items() if count]


def _rebuilt_as_json(rebuilt: RebuildResult, *, is_dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": is_dry_run,
        "beliefs": rebuilt.beliefs,
        "cycles": rebuilt.cycles,
        "evidence": rebuilt.evidence,
        "released": rebuilt.released,
        "decided_anew": rebuilt.decided_anew,
        "differences": [_difference_as_json(difference) for difference in rebuilt.differences],
    }


def _difference_as_json(difference: BeliefDifference) -> dict[str, Any]:
    return {
        "id": difference.id,
        "statement": difference.statement,
        "is_lost": difference.is_lost,
        "columns": {name: {"stands": pair[0], "recorded": pair[1]} for name, pair in difference.columns.items()},
        "evidence": _count_rows(difference.evidence),
        "lineage": _count_rows(difference.lineage),
    }


def _count_rows(rows: RowDifference) -> dict[str, int]:
    return {"missing": len(rows.missing), "surplus": len(rows.surplus)}
