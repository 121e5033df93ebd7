"""Secrets that are made once; Flower never shows its pages to everyone."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import Settings

from beliefsite.environment import flower_login, read_or_make_secret


def test_a_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret"
    first = read_or_make_secret(path=path, bytes_of_chance=32)
    assert len(first) >= 32
    assert read_or_make_secret(path=path, bytes_of_chance=32) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["secret"]


def test_flower_has_a_password_of_its_own(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setenv("FLOWER_BASIC_AUTH", "")
    assert flower_login() == f"flower:{(tmp_path / 'flower-password').read_text()}"


def test_flower_takes_the_login_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_BASIC_AUTH", "mara:of her own")
    assert flower_login() == "mara:of her own"


def test_however_flower_is_started_it_asks_for_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the application gives it, a Flower without arguments is open to everyone."""
    monkeypatch.setenv("FLOWER_BASIC_AUTH", "mara:of her own")
    program = "; ".join(
        [
            "import beliefsite.celery",
            "from flower.command import apply_env_options, apply_options",
            "from flower.options import options",
            "apply_env_options()",
            "apply_options('flower', [])",
            "assert options.basic_auth == ['mara:of her own'], options.basic_auth",
        ]
    )
    subprocess.run([sys.executable, "-c", program], cwd=settings.BASE_DIR, check=True)
