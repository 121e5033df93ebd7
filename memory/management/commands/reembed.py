"""Move a workspace to the embedding model that the settings name."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from memory.access import find_workspace
from memory.llm.call_log import DailyCapReached
from memory.llm.onnx_models import ModelUnavailable
from memory.llm.registry import default_embedder
from memory.llm.types import CallFailed, Embedder, WrongDimensions
from memory.maintenance.reindex import CycleStillOpen, ReindexResult, reindex_workspace
from memory.management.command_line import ServiceCommand, pluralize
from memory.models import Workspace
from memory.search.plan import IndexBuilderBusy, keep_indexes_after_others

WAIT_SECONDS = 600.0


class Command(ServiceCommand):
    help = (
        "Move a workspace's vectors to the embedding model that the settings name. Recall and cycles go on meanwhile; "
        "killed and started again, it goes on where it was."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        parser.add_argument(
            "--wait",
            type=float,
            default=WAIT_SECONDS,
            help="seconds to wait for whoever else makes indexes, and for a cycle's end",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_workspace(name=options["workspace"])
        try:
            model = default_embedder()
        except (ModelUnavailable, WrongDimensions) as error:
            raise CommandError(str(error), returncode=1) from error
        try:
            moved = self._move(workspace, model, wait_seconds=options["wait"], show=not options["json"])
        except (CallFailed, DailyCapReached, CycleStillOpen, IndexBuilderBusy) as error:
            raise CommandError(f"{error} What was embedded is kept: start it again to go on.", returncode=1) from error
        found = {"workspace": workspace.name, **asdict(moved), "is_calibrated": model.profile.is_fitted}
        self.stdout.write(json.dumps(found) if options["json"] else _told(moved, model))

    def _move(self, workspace: Workspace, model: Embedder, *, wait_seconds: float, show: bool) -> ReindexResult:
        with tqdm(desc=workspace.name, unit="vector", disable=not (show and sys.stderr.isatty()), leave=False) as bar:

            def step(made: int, left: int) -> None:
                bar.update(made)
                bar.total = bar.n + left

            return reindex_workspace(
                workspace=workspace,
                model=model,
                wait_seconds=wait_seconds,
                on_progress=step,
                before_change=lambda: keep_indexes_after_others(
                    policy=settings.POLICY.recall, wait_seconds=wait_seconds
                ),
            )


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
