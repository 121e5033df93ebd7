"""Move a workspace to the embedding model that the settings name."""

from dataclasses import asdict
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from memory.llm.call_log import DailyCapReached
from memory.llm.onnx_models import ModelUnavailable
from memory.llm.registry import default_embedder
from memory.llm.types import CallFailed, Embedder, WrongDimensions
from memory.maintenance.reindex import CycleStillOpen, ReindexResult, reindex_workspace
from memory.management.command_line import Report, WorkspaceCommand, advance, fail_on, pluralize, progress_bar
from memory.models import Workspace
from memory.search.plan import IndexBuilderBusy, keep_indexes_after_others

WAIT_SECONDS = 600.0
_STOPS = (CallFailed, DailyCapReached, CycleStillOpen, IndexBuilderBusy)
_GO_ON = " What was embedded is kept: start it again to go on."


class Command(WorkspaceCommand):
    help = (
        "Move a workspace's vectors to the embedding model that the settings name. Recall and cycles go on meanwhile; "
        "killed and started again, it goes on where it was."
    )
    json_help = "print one JSON document instead of lines"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--wait",
            type=float,
            default=WAIT_SECONDS,
            help="seconds to wait for whoever else makes indexes, and for a cycle's end",
        )

    def run(self, *, workspace: Workspace, wait: float, as_json: bool, **options: Any) -> Report:
        with fail_on(ModelUnavailable, WrongDimensions):
            model = default_embedder()
        bar = progress_bar(of=workspace.name, unit="vector", as_json=as_json)
        with fail_on(*_STOPS, then=_GO_ON), bar:
            moved = reindex_workspace(
                workspace=workspace,
                model=model,
                wait_seconds=wait,
                on_progress=partial(advance, bar),
                before_change=partial(keep_indexes_after_others, policy=settings.POLICY.recall, wait_seconds=wait),
            )
        found = {"workspace": workspace.name, **asdict(moved), "is_calibrated": model.profile.is_fitted}
        return Report(values=found, lines=[_told(moved, model)])


def _told(moved: ReindexResult, model: Embedder) -> str:
    if not (moved.episodes or moved.claims or moved.beliefs or moved.dropped or moved.refused):
        return f"{moved.model}: all vectors of the workspace are of this model already."
    lines = [
        f"{moved.model}: {pluralize(moved.episodes, 'episode')}, {pluralize(moved.claims, 'claim')} and "
        f"{pluralize(moved.beliefs, 'belief')} embedded, "
        f"{pluralize(moved.dropped, 'old vector')} dropped."
    ]
    if moved.refused:
        lines.append(f"The model refused {pluralize(moved.refused, 'text')}: found by words alone.")
    if not model.profile.is_fitted:
        lines.append("It runs uncalibrated: `calibrate_embeddings --write` fits its profile.")
    return "\n".join(lines)
