"""Nothing here sends work to a broker; a reader of conversations answers as it is told."""

from collections.abc import Iterator

import pytest

from memory.llm import offline
from memory.models import Workspace
from memory.signals import cycle_ready, turns_due
from tests import factories
from tests.ingest.reading import Reader
from workers.apps import dispatch_on_commit, dispatch_turns_on_commit


@pytest.fixture(autouse=True)
def _no_dispatch() -> Iterator[None]:
    cycle_ready.disconnect(dispatch_uid="workers")
    turns_due.disconnect(dispatch_uid="workers")
    yield
    cycle_ready.connect(dispatch_on_commit, dispatch_uid="workers")
    turns_due.connect(dispatch_turns_on_commit, dispatch_uid="workers")


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Have a reader in the place of the offline model."""
    reader = Reader()
    monkeypatch.setattr(offline, "_answer", reader)
    return reader
