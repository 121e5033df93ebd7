"""What rebuilding beliefs prints."""

import json
from typing import Any

from django.core.management.base import OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder

from memory.consolidation.rebuild.service import Rebuilt
from memory.consolidation.rebuild.stock import Difference, Rows
from memory.management.wording import counted

_FOLLOWS = {"statement_hash"}  # tells nothing that another column does not


def write_rebuilt(rebuilt: Rebuilt, *, out: OutputWrapper, as_json: bool, is_dry_run: bool) -> None:
    """Print in what beliefs differed from their record, as one JSON document or a line for each."""
    if as_json:
        out.write(json.dumps(_document(rebuilt, is_dry_run=is_dry_run), cls=DjangoJSONEncoder))
        return
    for difference in rebuilt.differences:
        out.write(f"{difference.id}: {'; '.join(_in_words(difference))}")
    made = f"{counted(rebuilt.beliefs, 'belief')} of {counted(rebuilt.cycles, 'cycle')}"
    out.write(f"{made}, {_verdict(rebuilt, is_dry_run=is_dry_run)}")
    if rebuilt.released:
        out.write(f"{counted(rebuilt.released, 'episode')} will be consolidated anew.")
    if rebuilt.decided_anew:
        out.write(f"{counted(rebuilt.decided_anew, 'structural change')} will be decided anew.")


def _verdict(rebuilt: Rebuilt, *, is_dry_run: bool) -> str:
    if not rebuilt.differences:
        return "all as recorded"
    return f"{counted(len(rebuilt.differences), 'difference')} {'found' if is_dry_run else 'set right'}"


def _in_words(difference: Difference) -> list[str]:
    if difference.is_lost:
        return ["cannot be made again"]
    shown = [(name, pair) for name, pair in difference.columns.items() if name not in _FOLLOWS]
    columns = [f"{name} {_shown(stands)} → {_shown(recorded)}" for name, (stands, recorded) in shown]
    return [*columns, *_rows_in_words("evidence", difference.evidence), *_rows_in_words("lineage", difference.lineage)]


def _shown(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


def _rows_in_words(noun: str, rows: Rows) -> list[str]:
    counts = {"missing": len(rows.missing), "surplus": len(rows.surplus)}
    return [f"{noun}: {count} {what}" for what, count in counts.items() if count]


def _document(rebuilt: Rebuilt, *, is_dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": is_dry_run,
        "beliefs": rebuilt.beliefs,
        "cycles": rebuilt.cycles,
        "evidence": rebuilt.evidence,
        "released": rebuilt.released,
        "decided_anew": rebuilt.decided_anew,
        "differences": [_as_dict(difference) for difference in rebuilt.differences],
    }


def _as_dict(difference: Difference) -> dict[str, Any]:
    return {
        "id": difference.id,
        "statement": difference.statement,
        "is_lost": difference.is_lost,
        "columns": {name: {"stands": pair[0], "recorded": pair[1]} for name, pair in difference.columns.items()},
        "evidence": _count(difference.evidence),
        "lineage": _count(difference.lineage),
    }


def _count(rows: Rows) -> dict[str, int]:
    return {"missing": len(rows.missing), "surplus": len(rows.surplus)}
