"""Secrets that are made once and kept beside the data, readable by their owner alone."""

import os
import secrets
from pathlib import Path

from beliefsite.embedded.server import make_private_folder
from beliefsite.typed_environment import unusable_folder


def kept_secret(*, path: Path, bytes_of_chance: int) -> str:
    """Return the secret in a file of the data folder, made now if there is none; raise ImproperlyConfigured.

    Of several who make it at once, all get the same.
    """
    try:
        return path.read_text() if path.exists() else _make(path, bytes_of_chance)
    except OSError as error:
        raise unusable_folder("ENGRAM_DATA_DIR", path.parent, error) from error


def _make(path: Path, bytes_of_chance: int) -> str:
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
    return given or f"flower:{kept_secret(path=settings.DATA_DIR / 'flower-password', bytes_of_chance=12)}"
