"""The scripted world of consolidation, for what is remembered at once."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from memory.signals import remembrance_ready
from tests.consolidation.conftest import decree, hasty, running_server, server, world

__all__ = ["decree", "hasty", "running_server", "server", "world"]


@pytest.fixture
def sent() -> Iterator[list[int]]:
    """Collect the remembrances that workers were told to take up, and send none."""
    heard: list[int] = []

    def hear(*, remembrance_id: int, **_: object) -> None:
        heard.append(remembrance_id)

    remembrance_ready.connect(hear)
    yield heard
    remembrance_ready.disconnect(hear)


@pytest.fixture
def offline(settings: Settings) -> None:
    """Have rules answer, and vectors made here."""
    settings.ENGRAM_LLM, settings.ENGRAM_EMBEDDINGS = "offline", "static"
