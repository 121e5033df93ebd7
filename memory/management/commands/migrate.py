"""Migrate as Django does, but refuse a database of a release that this one does not know the way from."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from memory.migrations import LAST_OF_0_1

_REFUSAL = (
    "This database was left by an older release, at memory.{last}. Install release 0.1 and run its `manage.py migrate` "
    "first: it brings the database to memory.{needed}, from where this release goes on."
)


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate; raise CommandError, and change nothing, where migrations of before 0.2 are missing."""
        applied = MigrationRecorder(connections[options["database"]]).applied_migrations()
        names = sorted(name for app, name in applied if app == "memory")
        if names and not {"0001_schema", LAST_OF_0_1} & set(names):
            raise CommandError(_REFUSAL.format(last=names[-1], needed=LAST_OF_0_1))
        super().handle(*args, **options)
