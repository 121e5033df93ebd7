"""The scripted world of consolidation, for what was known to be wrong in the ledger."""

from tests.consolidation.conftest import decree, hasty, running_server, server, without_closing, world

__all__ = ["decree", "hasty", "running_server", "server", "without_closing", "world"]
