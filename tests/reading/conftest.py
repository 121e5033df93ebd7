"""The scripted world of consolidation, for readings too."""

from tests.consolidation.conftest import decree, hasty, running_server, server, world

__all__ = ["decree", "hasty", "running_server", "server", "world"]
