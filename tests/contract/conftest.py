"""What the tests here compare with, or record."""

import pytest

from tests.contract.keeping import Keeper


@pytest.fixture(scope="session")
def keeper(pytestconfig: pytest.Config) -> Keeper:
    """Return what holds the present against the recorded; `python -m tests.contract` loads what lets it record."""
    every = pytestconfig.pluginmanager.has_plugin("tests.contract.plugins.every_file")
    some = pytestconfig.pluginmanager.has_plugin("tests.contract.plugins.recording")
    return Keeper(is_recording=every or some, is_recording_files=every)
