"""Which settings a backup holds, and how they are written for the next start to read."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from memory.environment import known_names

# They say where this machine keeps things; on another they would lead commands to the wrong database.
PLACES = {"DATABASE_URL", "REDIS_URL", "ENGRAM_DATA_DIR", "ENGRAM_TEST_DATABASE", "ENGRAM_REAL_TIMEOUTS"}
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|AUTH)$")
_SECRET_VALUE = re.compile(r"://[^/@\s]+@")  # an address with a name and password in it


def read_settings(*, with_secrets: bool) -> tuple[dict[str, str], list[str]]:
    """Return what the environment sets, and the names of secrets that are left out."""
    given = {name: os.environ[name] for name in sorted(known_names() - PLACES) if os.environ.get(name)}
    if with_secrets:
        return given | {"SECRET_KEY": settings.SECRET_KEY}, []
    left_out = [name for name, value in given.items() if is_secret(name, value)]
    return {name: value for name, value in given.items() if name not in left_out}, left_out


def is_secret(name: str, value: str) -> bool:
    """Tell whether a setting is nobody's business but the operator's."""
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def write_settings(*, kept: Mapping[str, str], file: Path) -> Path | None:
    """Write settings that differ from today's to a file that is not there yet; return it, None if none differ."""
    if all(os.environ.get(name) == value for name, value in kept.items()):
        return None
    target = next(path for path in _names(file) if not path.exists())
    lines = [f"{name}='{value}'\n" for name, value in kept.items()]
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.writelines(lines)
    return target


def _names(file: Path) -> list[Path]:
    """Name the file, and others beside it: what a person wrote is never overwritten."""
    beside = [file.with_name(f"{file.name}.restored{number}") for number in ("", *range(2, 1000))]
    return [file, *beside]
