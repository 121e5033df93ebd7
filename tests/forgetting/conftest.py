"""The scripted world of consolidation, for what is forgotten of it."""

from tests.consolidation.conftest import decree, running_server, server, without_closing, world

__all__ = ["decree", "running_server", "server", "without_closing", "world"]
