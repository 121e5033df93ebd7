"""Put a backup in the database's place."""

import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from beliefsite.backups import BackupError, Restored, restore_backup
from workers.supervision import running_stack


class Command(BaseCommand):
    help = "Restore a backup into an empty database, and check it; everything or nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace what is there, after backing it up")
        parser.add_argument(
            "--settings-file",
            type=Path,
            default=settings.BASE_DIR / ".env",
            help="where to write the backup's settings, if they differ; one that exists is left as it is",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *, file: Path, force: bool, settings_file: Path, **options: Any) -> None:
        stack = running_stack(folder=settings.DATA_DIR)
        if stack is not None:
            raise CommandError(f"The stack runs here: end it first (supervisord, process {stack}).", returncode=1)
        steps = None if options["json"] else lambda step: self.stderr.write(f"{step} …")
        try:
            restored = restore_backup(
                file=file,
                now=timezone.now(),
                force=force,
                settings_file=settings_file,
                on_step=steps or (lambda _: None),
            )
        except BackupError as error:
            raise CommandError(str(error), returncode=1) from error
        self._report(restored, as_json=options["json"])

    def _report(self, restored: Restored, *, as_json: bool) -> None:
        manifest, rows = restored.manifest, sum(restored.manifest.tables.values())
        written = {"settings_file": restored.settings_file, "former": restored.former}
        if as_json:
            paths = {name: str(path) if path else None for name, path in written.items()}
            self.stdout.write(json.dumps({"rows": rows, "beliefs": restored.beliefs, **paths}))
            return
        self.stdout.write(
            f"Restored {rows:,} rows of {manifest.made_at}; {restored.beliefs} beliefs equal their evidence."
        )
        if restored.former:
            self.stdout.write(f"What was there before is in {restored.former}.")
        if restored.settings_file:
            self.stdout.write(f"Settings that differ from today's are in {restored.settings_file}.")
        if manifest.left_out:
            self.stdout.write(f"The backup holds no secrets; give anew: {', '.join(manifest.left_out)}.")
