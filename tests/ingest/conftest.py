"""Nothing here sends work to a broker."""

from collections.abc import Iterator

import pytest

from memory.signals import cycle_ready, turns_due
from workers.apps import dispatch_on_commit, dispatch_turns_on_commit


@pytest.fixture(autouse=True)
def _no_dispatch() -> Iterator[None]:
    cycle_ready.disconnect(dispatch_uid="workers")
    turns_due.disconnect(dispatch_uid="workers")
    yield
    cycle_ready.connect(dispatch_on_commit, dispatch_uid="workers")
    turns_due.connect(dispatch_turns_on_commit, dispatch_uid="workers")
