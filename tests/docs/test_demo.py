"""What the README shows of `make demo` is what it prints."""

import os
import re
import subprocess
import sys

import pytest

from tests.docs.pages import README, ROOT, blocks

_SECONDS = 240
_DIFFERS = {
    r"\b(bl|ep)_[0-9a-f]{12}\b": r"\1_…",
    r"process \d+": "process …",
    r"(PostgreSQL|Valkey) [\d.]+": r"\1 …",
    r"(?<= )/\S*(?=/data/)": "…",
}


def _lines(text: str) -> list[str]:
    """Return the lines of a text without what differs on every run."""
    for pattern, stands_for in _DIFFERS.items():
        text = re.sub(pattern, stands_for, text)
    return [line.rstrip() for line in text.replace("/data/", "/.data/").splitlines()]


@pytest.mark.slow
def test_the_demo_prints_what_the_readme_shows(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every line of the sample, bar those that stand for more, in its order."""
    folder = tmp_path_factory.mktemp("demo")  # short enough for a socket
    unset = dict.fromkeys(("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"), "")
    environment = {**os.environ, **unset, "ENGRAM_DATA_DIR": str(folder / "data"), "PYTHONWARNINGS": "ignore"}
    [sample] = [block for block in blocks(README, "text") if "What is believed no longer" in block]

    done = subprocess.run(
        [sys.executable, "manage.py", "demo"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-3000:]
    printed = iter(_lines(done.stdout))
    assert not [line for line in _lines(sample) if line.strip(" …") and line not in printed]
