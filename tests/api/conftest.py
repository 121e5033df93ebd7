"""What most tests of the API begin with."""

import pytest

from memory.models import Workspace
from tests import factories
from tests.api.caller import Caller, caller


@pytest.fixture
def workspace(db: None) -> Workspace:
    return factories.workspace()


@pytest.fixture
def reader(workspace: Workspace) -> Caller:
    return caller("read", workspace=workspace)


@pytest.fixture
def writer(workspace: Workspace) -> Caller:
    return caller("write", workspace=workspace)


@pytest.fixture
def stranger(db: None) -> Caller:
    return caller(workspace=factories.workspace())
