"""Nothing here sends work to a broker."""

from collections.abc import Iterator

import pytest

from memory.signals import cycle_ready
from workers.apps import dispatch_on_commit


@pytest.fixture(autouse=True)
def _no_dispatch() -> Iterator[None]:
    cycle_ready.disconnect(dispatch_uid="workers")
    yield
    cycle_ready.connect(dispatch_on_commit, dispatch_uid="workers")
