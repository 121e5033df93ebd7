"""No process starts with times that do not hold each other (E6, B9)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = {
    "web": ["-c", "import beliefsite.wsgi"],
    "tools": ["-c", "import beliefsite.mcp"],
    "worker": ["-m", "celery", "-A", "beliefsite", "worker", "--pool", "solo"],
    "beat": ["-m", "celery", "-A", "beliefsite", "beat", "--pidfile="],
    "command": ["manage.py", "check"],
}


def start(name: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Start a process that has nothing but its own empty folder to run on."""
    own = {"ENGRAM_DATA_DIR": str(tmp_path), "SECRET_KEY": "x" * 50, "DATABASE_URL": "", "REDIS_URL": ""}
    return subprocess.run(
        [sys.executable, *PROCESSES[name]],
        cwd=ROOT,
        env=os.environ | own | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", PROCESSES)
def test_a_call_that_fits_nowhere_is_refused_before_anything_starts(name: str, tmp_path: Path) -> None:
    """E6, B9: both settings are named, and how to mend it."""
    ended = start(name, tmp_path, ENGRAM_BUDGET_CALL_SECONDS="60")
    assert ended.returncode != 0
    assert "ENGRAM_EXTRACTION_SECONDS is 45, and ENGRAM_BUDGET_CALL_SECONDS is 60" in ended.stderr
    assert "Set ENGRAM_EXTRACTION_SECONDS to more than 61" in ended.stderr
    assert not (tmp_path / "postgres").exists()


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_a_message_that_would_come_again_too_early_is_refused(name: str, tmp_path: Path) -> None:
    """E6, B9: in one line, not in a trace."""
    ended = start(name, tmp_path, ENGRAM_VISIBILITY_TIMEOUT="60")
    assert ended.returncode == 1
    assert "Engram: ENGRAM_VISIBILITY_TIMEOUT is 60, and a task may take 130 s" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_is_left_out_is_derived(tmp_path: Path) -> None:
    """E6, B9: limits of tasks, when their messages come again, and how long a worker has to end."""
    shown = "from django.conf import settings as s; print(s.CELERY_TASK_SOFT_TIME_LIMIT, s.CELERY_TASK_TIME_LIMIT,"
    shown += " s.CELERY_VISIBILITY_TIMEOUT, s.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT)"
    own = {"ENGRAM_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "beliefsite.settings"}
    slow = {
        "ENGRAM_BUDGET_CALL_SECONDS": "60",
        "ENGRAM_BUDGET_ATTEMPT_SECONDS": "130",
        "ENGRAM_EXTRACTION_SECONDS": "130",
        "ENGRAM_BUDGET_WORKING_SECONDS": "900",
    }
    ended = subprocess.run(
        [sys.executable, "-c", shown], cwd=ROOT, env=os.environ | own | slow, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["280", "300", "350", "120"]
