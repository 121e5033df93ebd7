"""Put a backup in the database's place."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from beliefsite.backups import BackupError, Restored, restore_backup
from memory.management.command_line import Report, ReportCommand, fail_on
from workers.supervision import running_stack


class Command(ReportCommand):
    help = "Restore a backup into an empty database, and check it; everything or nothing."
    json_help = "print one JSON document"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace what is there, after backing it up")
        parser.add_argument(
            "--settings-file",
            type=Path,
            default=settings.BASE_DIR / ".env",
            help="where to write the backup's settings, if they differ; one that exists is left as it is",
        )

    def run(
        self, *, file: Path, force: bool, settings_file: Path, now: datetime, as_json: bool, **options: Any
    ) -> Report:
        stack = running_stack(folder=settings.DATA_DIR)
        if stack is not None:
            raise CommandError(f"The stack runs here: end it first (supervisord, process {stack}).", returncode=1)

        def step(name: str) -> None:
            if not as_json:
                self.stderr.write(f"{name} …")

        with fail_on(BackupError):
            restored = restore_backup(file=file, now=now, force=force, settings_file=settings_file, on_step=step)
        written = {"settings_file": restored.settings_file, "former": restored.former}
        paths = {name: str(path) if path else None for name, path in written.items()}
        rows = sum(restored.manifest.tables.values())
        return Report(values={"rows": rows, "beliefs": restored.beliefs, **paths}, lines=_in_lines(restored, rows=rows))


def _in_lines(restored: Restored, *, rows: int) -> Iterator[str]:
    manifest = restored.manifest
    yield f"Restored {rows:,} rows of {manifest.made_at}; {restored.beliefs} beliefs equal their evidence."
    if restored.former:
        yield f"What was there before is in {restored.former}."
    if restored.settings_file:
        yield f"Settings that differ from today's are in {restored.settings_file}."
    if manifest.left_out:
        yield f"The backup holds no secrets; give anew: {', '.join(manifest.left_out)}."
