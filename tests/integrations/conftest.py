"""Claude Code beside a server that is really there."""

from pathlib import Path
from typing import Any

import pytest

from memory.models import Workspace
from tests import factories
from tests.integrations.client import ClaudeCode


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return factories.workspace()


@pytest.fixture
def key(workspace: Workspace) -> str:
    return factories.key("read", "write", workspace=workspace)[1]


@pytest.fixture
def client(live_server: Any, key: str, tmp_path: Path) -> ClaudeCode:
    """Return a client beside a server that answers; a busy machine gets more time than a person would wait."""
    environment = {
        "ENGRAM_URL": live_server.url, "ENGRAM_API_KEY": key, "ENGRAM_RECOLLECTIONS_TIMEOUT_MS": "10000",
        "ENGRAM_TURNS_TIMEOUT_MS": "10000", "ENGRAM_STATUS_TIMEOUT_MS": "10000", "ENGRAM_HOOK_DEBUG": "1",
        "CLAUDE_PLUGIN_DATA": str(tmp_path / "data"), "ENGRAM_PROJECT": "", "ENGRAM_USER": "",
    }  # fmt: skip
    return ClaudeCode(folder=tmp_path, environment=environment)
