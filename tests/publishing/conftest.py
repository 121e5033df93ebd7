"""A workspace that publishes into a person's file."""

from pathlib import Path

import pytest
from pytest_django import Settings

from memory.models import MemoryFile, Workspace
from memory.publishing.memory_files import enable_file
from tests import factories
from tests.publishing.passes import MINE, NOW


@pytest.fixture
def root(settings: Settings, tmp_path: Path) -> Path:
    """Allow one folder, with a person's file in it."""
    settings.ENGRAM_MEMORY_MD_ROOTS = [tmp_path]
    (tmp_path / "MEMORY.md").write_bytes(MINE)
    return tmp_path


@pytest.fixture
def workspace(db: None) -> Workspace:
    return factories.workspace()


@pytest.fixture
def file(workspace: Workspace, root: Path) -> MemoryFile:
    """Publish what is of no project and no user into the person's file."""
    return enable_file(workspace=workspace, path=root / "MEMORY.md", project=None, user="", now=NOW)
