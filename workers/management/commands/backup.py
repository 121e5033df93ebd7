"""Write a backup of the database and the settings."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from beliefsite.backups import BackupError, write_backup
from memory.management.command_line import Report, ReportCommand, fail_on, progress_bar


class Command(ReportCommand):
    help = "Write the database and the settings to one new file, while everything runs on."
    json_help = "print one JSON document"

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("to", metavar="DIR|FILE", help="a folder (made if it ends with /), or the file's name")
        parser.add_argument("--with-secrets", action="store_true", help="keys and tokens, too, in readable form")

    def run(self, *, to: str, with_secrets: bool, now: datetime, as_json: bool, **options: Any) -> Report:
        if to.endswith("/"):
            Path(to).mkdir(parents=True, exist_ok=True)
        with progress_bar(of="backup", unit="B", as_json=as_json, unit_scale=True) as bar, fail_on(BackupError):
            file = write_backup(to=Path(to), now=now, with_secrets=with_secrets, on_bytes=bar.update)
        size = file.stat().st_size
        told = f"Wrote {file} ({size:,} bytes). Whoever can read it can read the whole memory."
        return Report(values={"file": str(file), "bytes": size}, lines=[told])
