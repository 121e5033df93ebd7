"""Restore a backup: everything or nothing, in one transaction, checked before and after."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from beliefsite.backups.archive import CHUNK, BackupError, Manifest, extract_dump, inspect_backup
from beliefsite.backups.kept_settings import write_settings
from beliefsite.backups.programs import Programs, programs_for_database
from beliefsite.backups.writing import count_rows, write_backup
from memory.ledger.confidence import find_drift
from memory.models import Workspace

# Migrations fill these by themselves, and processes that only run leave signs of life.
_FILLED_BY_THEMSELVES = {
    "django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions",
    "memory_heartbeat", "memory_tally",
}  # fmt: skip

_EMPTY_THE_SCHEMA = (Path(__file__).parent / "empty_schema.sql").read_bytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What came of a restore: where the settings and the former data were written, if anywhere."""

    manifest: Manifest
    beliefs: int
    settings_file: Path | None
    former: Path | None


def restore_backup(
    *, file: Path, now: datetime, force: bool, settings_file: Path, on_step: Callable[[str], object] = lambda _: None
) -> Restored:
    """Put a backup in the place of an empty database, with `force` of any of ours, which is backed up first."""
    on_step("reading the backup")
    manifest = inspect_backup(file=file)
    _check_migrations(manifest)
    former = _clear_the_way(manifest, now=now, force=force, on_step=on_step)
    on_step("restoring")
    _replace(file, programs=programs_for_database())
    on_step("checking")
    beliefs = _check(manifest, former=former)
    kept = write_settings(kept=manifest.settings, file=settings_file)
    return Restored(manifest=manifest, beliefs=beliefs, settings_file=kept, former=former)


def _check_migrations(manifest: Manifest) -> None:
    """Refuse what a newer release has made: this one would not know its tables."""
    ours = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    known = ours.keys() | {replaced for migration in ours.values() for replaced in migration.replaces}
    unknown = [".".join(key) for key in map(tuple, manifest.migrations) if key not in known]
    if unknown:
        raise BackupError(f"The backup was made by another release: {unknown[0]} is not known here.")


def _clear_the_way(manifest: Manifest, *, now: datetime, force: bool, on_step: Callable[[str], object]) -> Path | None:
    """Make sure that nothing is lost and nobody is disturbed; return the backup of what is there."""
    present = count_rows()
    foreign = present.keys() - manifest.tables.keys() - _own_tables()
    if foreign:
        raise BackupError(f"The database holds a table that is not Engram's: {min(foreign)}. Give Engram its own.")
    others = _count_others()
    if others:
        raise BackupError(f"The database is in use by {others} other connections: stop web, workers and beat first.")
    full = sorted(name for name, count in present.items() if count and name not in _FILLED_BY_THEMSELVES)
    if not full:
        return None
    if not force:
        raise BackupError(f"The database is not empty ({full[0]} has rows): --force backs it up, and replaces it.")
    on_step("backing up what is there")
    return write_backup(to=settings.DATA_DIR / f"before-restore-{now:%Y%m%d-%H%M%S}.backup", now=now)


def _own_tables() -> set[str]:
    models = apps.get_models(include_auto_created=True)
    return {model._meta.db_table for model in models} | {"django_migrations"}


def _count_others() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(cursor.fetchone()[0])


def _replace(file: Path, *, programs: Programs) -> None:
    """Empty the schema and fill it from the dump in one transaction, committed only after the dump's last line."""
    connection.close()
    with TemporaryDirectory(dir=settings.DATA_DIR) as folder:
        dump = Path(folder) / "database.dump"
        extract_dump(file=file, to=dump)
        words = ["--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1", f"--dbname={programs.target}"]
        with programs.running("psql", *words, stdin=subprocess.PIPE) as psql:
            assert psql.stdin is not None
            try:
                psql.stdin.write(_EMPTY_THE_SCHEMA)
                _pass_on(dump, programs=programs, to=psql)
                psql.stdin.write(b"COMMIT;\n")
                psql.stdin.close()
            except BrokenPipeError:
                psql.wait()  # it has failed, and says why


def _pass_on(dump: Path, *, programs: Programs, to: subprocess.Popen[bytes]) -> None:
    options = ("--file=-", "--no-owner", "--no-privileges", "--no-comments")
    with programs.running("pg_restore", *options, str(dump)) as process:
        assert process.stdout is not None
        assert to.stdin is not None
        while chunk := process.stdout.read(CHUNK):
            to.stdin.write(chunk)


def _check(manifest: Manifest, *, former: Path | None) -> int:
    """Compare every table with the manifest, bring the tables up to this release, and every belief to its evidence."""
    way_back = f" What was there before is in {former}." if former else ""
    missing = [name for name, count in manifest.tables.items() if count_rows().get(name) != count]
    if missing:
        raise BackupError(f"The restored database differs from the backup in {missing[0]}.{way_back}")
    call_command("migrate", verbosity=0)
    results = [find_drift(workspace=workspace) for workspace in Workspace.objects.order_by("pk")]
    drifts = [drift for _, found in results for drift in found]
    if drifts:
        raise BackupError(
            f"Restored as it was, but {len(drifts)} values differ from their evidence: see verify_beliefs.{way_back}"
        )
    return sum(checked for checked, _ in results)
