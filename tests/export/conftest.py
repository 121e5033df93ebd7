"""The scripted world of consolidation, to be exported and imported."""

from tests.consolidation.conftest import running_server, server, world

__all__ = ["running_server", "server", "world"]
