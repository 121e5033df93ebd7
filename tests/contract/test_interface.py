"""What the project shows of itself is what it showed when it was recorded."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract import interface
from tests.contract.keeping import RECORDED, Keeper

SHOWN: dict[str, Callable[[], Any]] = {
    "openapi": interface.describe_schema,
    "tools": interface.describe_tools,
    "commands": interface.describe_commands,
    "settings": interface.describe_settings,
    "tasks": interface.describe_tasks,
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_is_as_it_was_recorded(name: str, keeper: Keeper) -> None:
    keeper.keep(RECORDED / f"{name}.json", SHOWN[name]())


@pytest.mark.django_db
def test_what_prometheus_reads_is_as_it_was_recorded(keeper: Keeper) -> None:
    keeper.keep(RECORDED / "metrics.json", interface.describe_metrics())
