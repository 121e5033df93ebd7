"""The release is written in one place, and what is built from the project says the same."""

import tomllib
from pathlib import Path

from memory import VERSION


def test_the_project_file_names_the_same_release() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION
