"""What the project shows of itself is what it showed when it was recorded."""

import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from memory import VERSION
from tests.contract import interface
from tests.contract.keeping import RECORDED, Keeper
from tests.docs.pages import ROOT

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


def test_the_project_file_names_the_release_that_is_shown() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == VERSION
