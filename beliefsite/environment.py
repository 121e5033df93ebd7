"""Values from the environment, read strictly, and secrets that are made once and kept beside the data.

A value that does not parse is refused under its name, and never taken for another. An empty one counts as unset.
"""

import json
import os
import secrets
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from beliefsite.embedded_server import make_private_folder

Prices = dict[str, list[float]]  # US dollars per million tokens, in and out, by model

_SOME_PRICES = '{"gpt-4.1-mini": [0.40, 1.60]}'
_TRUE, _FALSE = {"1", "true", "yes", "on", "y", "ok"}, {"0", "false", "no", "off", "n"}


def read_text(name: str, *, default: str = "") -> str:
    """Return a variable as it stands, without space around it, the default where it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def read_list(name: str, *, default: Sequence[str]) -> list[str]:
    """Return what a variable names between commas, the default where it is unset or empty."""
    named = [part.strip() for part in os.environ.get(name, "").split(",")]
    return [part for part in named if part] or list(default)


def read_folders(name: str) -> list[Path]:
    """Return the folders that a variable names between commas, `~` being one's own; raise ImproperlyConfigured."""
    folders = [Path(part).expanduser() for part in read_list(name, default=[])]
    for folder in folders:
        if not folder.is_absolute():
            raise ImproperlyConfigured(f"{name}: {folder} must be an absolute path")
    return folders


def read_flag(name: str, *, default: bool) -> bool:
    """Return a variable as yes or no, the default where it is unset or empty; raise ImproperlyConfigured."""
    value = os.environ.get(name, "").strip().lower()
    if value and value not in _TRUE | _FALSE:
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")
    return value in _TRUE if value else default


def read_count(name: str, *, default: int, least: int = 0, most: int | None = None) -> int:
    """Return a variable as a whole number within bounds, the default where it is unset; raise ImproperlyConfigured."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    if not value.isascii() or not value.isdecimal() or not least <= int(value) <= (most or int(value)):
        bounds = f"from {least} to {most}" if most else f"of at least {least}"
        raise ImproperlyConfigured(f"{name} must be a whole number {bounds}, not {value!r}")
    return int(value)


def read_choice(name: str, *, default: str, choices: Collection[str]) -> str:
    """Return a variable that is one of a few, the default where it is unset; raise ImproperlyConfigured."""
    value = os.environ.get(name, "").strip() or default
    if value not in choices:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(choices)}, not {value!r}")
    return value


def read_folder(name: str, *, default: Path) -> Path:
    """Return a variable that names a folder, which need not be there yet, the default where it is unset.

    Raise ImproperlyConfigured for what can be none: a file, what lies below one, and a name that no disk takes.
    """
    folder = Path(os.environ.get(name, "").strip() or default)
    try:
        there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except OSError as error:
        raise unusable_folder(name, folder, error) from None
    if not there.is_dir():
        raise ImproperlyConfigured(f"{name}: {folder} cannot be used: {there} is a file, and a folder is needed")
    return folder


def unusable_folder(name: str, folder: Path, error: OSError) -> ImproperlyConfigured:
    """Return what to say of a folder that the system refuses."""
    return ImproperlyConfigured(f"{name}: {folder} cannot be used: {error.strerror or error}")


def read_json(name: str, *, default: object) -> object:
    """Return a variable that is JSON, the default where it is unset or empty; raise ImproperlyConfigured."""
    value = os.environ.get(name, "").strip()
    try:
        return json.loads(value) if value else default
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be JSON: {error}") from None


def read_prices(name: str, *, default: Prices) -> Prices:
    """Return what a variable says that models cost, in and out; raise ImproperlyConfigured."""
    given = read_json(name, default=default)
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"{name} must be an object of models, such as {_SOME_PRICES}")
    for model, prices in given.items():
        if not isinstance(prices, list) or len(prices) != 2 or not all(map(_is_price, prices)):
            told = f"{name}: {model!r} needs two prices of at least 0, in and out, such as {_SOME_PRICES}"
            raise ImproperlyConfigured(f"{told}, not {json.dumps(prices)}")
    return given


def _is_price(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= sys.float_info.max  # type: ignore[operator]


def read_or_make_secret(*, path: Path, bytes_of_chance: int) -> str:
    """Return the secret in a file of the data folder, made now if there is none; raise ImproperlyConfigured.

    Of several who make it at once, all get the same.
    """
    try:
        return path.read_text() if path.exists() else _make_secret(path, bytes_of_chance)
    except OSError as error:
        raise unusable_folder("ENGRAM_DATA_DIR", path.parent, error) from error


def _make_secret(path: Path, bytes_of_chance: int) -> str:
    make_private_folder(path.parent)
    drawn = path.with_name(f"{path.name}.{os.getpid()}.drawn")
    with open(os.open(drawn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(bytes_of_chance))
    try:
        os.link(drawn, path)
    except FileExistsError:
        pass
    finally:
        drawn.unlink()
    return path.read_text()


def flower_login() -> str:
    """Return Flower's `name:password`: what the environment says, else one of our own."""
    from django.conf import settings

    given = os.environ.get("FLOWER_BASIC_AUTH")
    return given or f"flower:{read_or_make_secret(path=settings.DATA_DIR / 'flower-password', bytes_of_chance=12)}"
