"""What a dry run prints."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from django.core.management.base import OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder

from memory.consolidation.rehearsal import Rehearsal
from memory.management.wording import counted


def write_rehearsal(rehearsal: Rehearsal, *, out: OutputWrapper, as_json: bool) -> None:
    """Print what a cycle would do and what it would cost, as one JSON document or in lines."""
    if as_json:
        shown = {"dry_run": True, **asdict(rehearsal)}
        shown["estimate"]["cost_usd"] = float(rehearsal.estimate.cost_usd)
        out.write(json.dumps(shown, cls=DjangoJSONEncoder))
        return
    for line in _lines(rehearsal):
        out.write(line)


def _lines(rehearsal: Rehearsal) -> list[str]:
    estimate = rehearsal.estimate
    calls = ", ".join(f"{number} to {purpose}" for purpose, number in estimate.calls.items() if number) or "none"
    lines = [f"A cycle would take up {counted(rehearsal.episodes, 'episode')}."]
    for job in rehearsal.jobs:
        about = f"near {_named(job.beliefs)}" if job.beliefs else "alike"
        lines.append(f"  {counted(len(job.episodes), 'episode')} {about}: about {counted(job.calls, 'call')}")
    if rehearsal.unembedded:
        lines.append(f"{counted(rehearsal.unembedded, 'episode')} had no vector yet.")
    if rehearsal.put_back:
        lines.append(f"{counted(rehearsal.put_back, 'episode')} would wait for a later cycle.")
    if rehearsal.archive_due:
        lines.append(f"{counted(rehearsal.archive_due, 'belief')} may be archived for age.")
    lines.append(f"Calls: about {calls}; about {estimate.tokens:,} tokens, ${estimate.cost_usd:.4f}.")
    return lines


def _named(beliefs: Sequence[str]) -> str:
    return f"belief {beliefs[0]}" if len(beliefs) == 1 else f"beliefs {', '.join(beliefs)}"
