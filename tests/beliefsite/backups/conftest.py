"""Databases of their own, on the suite's server, to be backed up and restored."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

_numbers = count(1)


@contextmanager
def _maintenance() -> Iterator[psycopg.Connection[Any]]:
    given = connection.settings_dict
    with psycopg.connect(
        host=given["HOST"], port=given["PORT"], user=given["USER"], password=given["PASSWORD"], dbname="postgres",
        autocommit=True,
    ) as opened:  # fmt: skip
        yield opened


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[Any]:
    """Return a function that moves this process to a new database, migrated or as empty as a new one is."""
    own = connection.settings_dict["NAME"]
    made: list[str] = []

    def move(*, migrated: bool) -> str:
        name = f"backup_{own}_{next(_numbers)}"
        with _maintenance() as opened:
            opened.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            opened.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        made.append(name)
        connection.close()
        connection.settings_dict["NAME"] = name
        if migrated:
            call_command("migrate", verbosity=0)
        return name

    yield move
    connection.close()
    connection.settings_dict["NAME"] = own
    with _maintenance() as opened:
        for name in made:
            opened.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def data_dir(tmp_path: Path, settings: Settings) -> Path:
    """Keep what a restore writes away from the suite's data."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    folder: Path = settings.DATA_DIR
    return folder
