"""What the tests here compare with, or record."""

import pytest

from tests.contract.keeping import Keeper


@pytest.fixture(scope="session")
def keeper(pytestconfig: pytest.Config) -> Keeper:
    """Return what holds the present against the recorded; `python -m tests.contract` loads what lets it record."""
    is_recording = pytestconfig.pluginmanager.has_plugin("tests.contract.recording")
    return Keeper(is_recording=is_recording, is_recording_files=pytestconfig.getoption("--files", default=False))
