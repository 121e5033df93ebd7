"""Servers log JSON, commands in words, unless the environment says otherwise."""

import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from beliefsite.observability import is_command, logging_config

SERVERS = (
    ["/x/.venv/bin/gunicorn", "beliefsite.wsgi"],
    ["/x/.venv/bin/celery", "-A", "beliefsite", "worker"],
    ["manage.py", "mcp"],
    ["manage.py", "up"],
)


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENGRAM_LOG_FORMAT", "ENGRAM_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)


def told(argv: list[str], *, is_terminal: bool = False) -> tuple[str, str]:
    """Return the form and the level of a process's logs."""
    logging: dict[str, Any] = logging_config(argv=argv, is_terminal=is_terminal)
    return logging["handlers"]["stderr"]["formatter"], logging["root"]["level"]


@pytest.mark.parametrize("argv", SERVERS, ids=lambda argv: argv[-1])
def test_a_server_logs_all_as_json(argv: list[str]) -> None:
    assert (is_command(argv), told(argv), told(argv, is_terminal=True)) == (
        False, ("json", "INFO"), ("console", "INFO"),
    )  # fmt: skip


def test_a_command_warns_in_words_wherever_its_words_go() -> None:
    """Who reads them may have them through a pipe."""
    assert told(["manage.py", "consolidate"]) == told(["./manage.py", "consolidate"], is_terminal=True)
    assert told(["manage.py", "consolidate"]) == ("console", "WARNING")


def test_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_LOG_FORMAT", "json")
    monkeypatch.setenv("ENGRAM_LOG_LEVEL", "DEBUG")
    assert told(["manage.py", "consolidate"]) == ("json", "DEBUG")


def test_a_command_s_warning_is_a_plain_line() -> None:
    """Without colours, where nobody looks at a terminal."""
    program = "import structlog; structlog.get_logger('x').warning('it_rains', where='here')"
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", program],
        cwd=settings.BASE_DIR, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "it_rains" in done.stderr
    assert "where=here" in done.stderr
    assert "{" not in done.stderr
    assert "\x1b" not in done.stderr
