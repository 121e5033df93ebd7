"""Databases of their own, on the suite's server, to be backed up and restored."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from memory.ledger.confidence import recompute_beliefs
from memory.models import DIMENSIONS
from memory.search.vectors import store_belief_vectors
from tests import factories
from tests.beliefsite.backups.databases import EMPTY, create_database, drop_databases, inside_database

MIGRATED, FILLED = "backup_migrated", "backup_filled"
Move = Callable[[str], None]
_numbers = count(1)


@pytest.fixture(scope="package")
def templates(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Make a database with tables alone, and one with a memory in it, for others to be copied from."""
    with django_db_blocker.unblock():
        create_database(MIGRATED, like=EMPTY)
        with inside_database(MIGRATED):
            call_command("migrate", verbosity=0)
        create_database(FILLED, like=MIGRATED)
        with inside_database(FILLED):
            _remember()
        yield
        drop_databases(MIGRATED, FILLED)


def _remember() -> None:
    """Store a workspace with a belief, its evidence and its vector."""
    workspace = factories.workspace(name="kept")
    belief = factories.belief(workspace=workspace, statement="Mara prefers tabs.", storage_strength=1.0)
    for number in range(3):
        episode = factories.episode(workspace=workspace, text=f"Mara used tabs in file {number}.")
        factories.evidence(belief=belief, episode=episode)
    recompute_beliefs(beliefs=[belief], now=factories.NOW)
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    vector[:2] = 0.6, 0.8
    store_belief_vectors(workspace_id=workspace.pk, model="m", vectors={belief.pk: vector})


@pytest.fixture
def move(templates: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Move]:
    """Return the way to a new database, a copy of one of the templates; nothing is written to the suite's own."""
    own, made = connection.settings_dict["NAME"], list[str]()

    def go(like: str) -> None:
        made.append(f"backup_{next(_numbers)}")
        create_database(made[-1], like=like)
        connection.settings_dict["NAME"] = made[-1]

    with django_db_blocker.unblock():
        yield go
    connection.close()
    connection.settings_dict["NAME"] = own
    drop_databases(*made)


@pytest.fixture
def memory(move: Move) -> Move:
    """Go to a database with a memory in it, and return the way to another."""
    move(FILLED)
    return move


@pytest.fixture
def data_dir(tmp_path: Path, settings: Settings) -> Path:
    """Keep what a restore writes away from the suite's data."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    folder: Path = settings.DATA_DIR
    return folder
