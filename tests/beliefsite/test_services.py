"""With DATABASE_URL and REDIS_URL set, those servers are used or nothing is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def manage(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that needs services under an environment of its own."""
    return subprocess.run(
        [sys.executable, "manage.py", "showmigrations", "memory"],
        cwd=ROOT,
        env=os.environ | {"ENGRAM_DATA_DIR": str(tmp_path), "SECRET_KEY": "x" * 50} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_database_that_cannot_be_reached_is_an_error_and_no_other_is_started(tmp_path: Path) -> None:
    ended = manage(
        tmp_path,
        DATABASE_URL="postgresql://someone@127.0.0.1:1/nowhere",
        REDIS_URL="redis://127.0.0.1:1/0",
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Engram: DATABASE_URL: the database cannot be reached:")
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "postgres").exists()


def test_a_broker_that_cannot_be_reached_is_an_error_and_no_other_is_started(tmp_path: Path) -> None:
    ended = manage(tmp_path, REDIS_URL="redis://127.0.0.1:1/0")
    assert ended.returncode == 1
    assert "REDIS_URL: the broker cannot be reached" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "broker").exists()


@pytest.mark.parametrize("secret", ["", "x" * 50], ids=["none given", "given"])
@pytest.mark.parametrize("kind", ["a file", "below a file", "too long a name", "unwritable"])
def test_a_data_folder_that_cannot_be_used_is_told_in_a_sentence(tmp_path: Path, kind: str, secret: str) -> None:
    (tmp_path / "file").touch()
    folder = {
        "a file": tmp_path / "file", "below a file": tmp_path / "file" / "data",
        "too long a name": tmp_path / ("x" * 300),
        "unwritable": Path("/proc/nowhere"),
    }[kind]  # fmt: skip
    ended = manage(folder, SECRET_KEY=secret, DATABASE_URL="", REDIS_URL="")
    assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
    assert ended.stderr.startswith(f"Engram: ENGRAM_DATA_DIR: {folder} cannot be used: ")
