"""What `make up` waits for."""

import pytest
from django.db import OperationalError

from workers.management.commands import up


def test_a_database_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error here would end `make up` and leave its supervisor alone."""

    def fail() -> None:
        raise OperationalError("the server is starting up")

    monkeypatch.setattr(up, "last_sweep", fail)
    monkeypatch.setattr(up, "_server_answers", lambda _: True)
    environment = {"PORT": "8000", "FLOWER_PORT": "5555", "MCP_PORT": "8001"}
    assert up.find_missing(environment=environment, swept_before=None) == ["database"]


def test_a_proxy_is_not_asked_for_what_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at the port, whatever a proxy would say."""
    monkeypatch.setattr(up, "last_sweep", lambda: None)
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "gopher://proxy")  # who looks at it fails otherwise
    environment = {"PORT": "1", "FLOWER_PORT": "1", "MCP_PORT": "1"}
    missing = up.find_missing(environment=environment, swept_before=None)
    assert missing == ["web", "Flower", "tools for agents", "worker and beat"]
