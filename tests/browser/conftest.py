"""A headless Chromium, where the machine has one."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections
from playwright.sync_api import Browser, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium, or skip: nothing is installed here."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is installed")
    return path


@pytest.fixture
def browser(chromium: str, live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """Open a browser on the live server; it closes before the database is emptied."""
    # The browser's client runs an event loop in this thread, which Django takes for an asynchronous caller.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_FLAGS)
        yield browser
        browser.close()
        connections.close_all()  # while that loop runs, this thread has database connections of its own
