"""The release is told by whatever may be asked for it."""

import subprocess
import sys

import pytest
from django.conf import settings
from drf_spectacular.generators import SchemaGenerator

from memory import VERSION


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_manage_tells_the_release_without_starting_anything(asked: str) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", asked], cwd=settings.BASE_DIR, env={}, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{VERSION}\n"


def test_the_schema_is_of_the_release() -> None:
    assert SchemaGenerator().get_schema(public=True)["info"]["version"] == VERSION  # type: ignore[no-untyped-call]
