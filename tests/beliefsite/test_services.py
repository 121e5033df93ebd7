"""With DATABASE_URL and REDIS_URL set, those servers are used or nothing is."""

import os
import subprocess
import sys
from pathlib import Path

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
