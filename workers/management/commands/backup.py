"""Write a backup of the database and the settings."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from beliefsite.backups import BackupError, write_backup


class Command(BaseCommand):
    help = "Write the database and the settings to one new file, while everything runs on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("to", metavar="DIR|FILE", help="a folder (made if it ends with /), or the file's name")
        parser.add_argument("--with-secrets", action="store_true", help="keys and tokens, too, in readable form")
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *, to: str, with_secrets: bool, **options: Any) -> None:
        if to.endswith("/"):
            Path(to).mkdir(parents=True, exist_ok=True)
        show = sys.stderr.isatty() and not options["json"]
        with tqdm(desc="backup", unit="B", unit_scale=True, disable=not show, leave=False) as bar:
            try:
                file = write_backup(to=Path(to), now=timezone.now(), with_secrets=with_secrets, on_bytes=bar.update)
            except BackupError as error:
                raise CommandError(str(error), returncode=1) from error
        size = file.stat().st_size
        if options["json"]:
            self.stdout.write(json.dumps({"file": str(file), "bytes": size}))
        else:
            self.stdout.write(f"Wrote {file} ({size:,} bytes). Whoever can read it can read the whole memory.")
