"""`manage.py migrate` goes on from where release 0.1 ended, and refuses what is older."""

import io

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from memory.migrations import LAST_OF_0_1

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded() -> MigrationRecorder:
    """Return the record of migrations, without any of ours."""
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(app="memory").delete()
    return recorder


def migrate() -> str:
    said = io.StringIO()
    call_command("migrate", stdout=said, no_color=True)
    return said.getvalue()


def test_the_project_s_own_command_is_the_one_that_runs() -> None:
    assert get_commands()["migrate"] == "memory"


def test_a_database_of_the_last_release_counts_as_migrated(recorded: MigrationRecorder) -> None:
    for migration in MigrationLoader(None).disk_migrations.values():
        for app, name in migration.replaces or [(migration.app_label, migration.name)]:
            recorded.record_applied(app, name)
    assert "No migrations to apply." in migrate()
    assert ("memory", "0001_schema") in recorded.applied_migrations()


def test_a_database_of_an_older_release_is_refused_with_the_way_named(recorded: MigrationRecorder) -> None:
    for name in ("0001_begin", "0044_index_new_episodes"):
        recorded.record_applied("memory", name)
    before = set(recorded.applied_migrations())
    with pytest.raises(CommandError, match=f"0044_index_new_episodes.*release 0.1.*{LAST_OF_0_1}"):
        migrate()
    assert set(recorded.applied_migrations()) == before
