"""What the README shows of `make demo`: how it is got, and written anew.

    python -m tests.docs.demo_sample

runs the demo in a folder of its own and puts what it prints, shortened, into the README. To be run when the rules of
the offline models say the same in other words; tests/docs/test_demo.py holds either to what the demo is about.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import README, ROOT, blocks

_SECONDS = 240
_LEFT_OUT = re.compile(r"^Also believed no longer\n.*?(?=^MEMORY\.md on )|^What now\n.*", re.MULTILINE | re.DOTALL)
_UNSET = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ENGRAM_EMBEDDINGS")


def main() -> None:
    """Write the README's sample anew."""
    with tempfile.TemporaryDirectory() as folder:
        printed = run_demo(folder=Path(folder))
    shown = re.sub(r"(?<= )/\S*(?=/data/)/data", "…/.data", _shorten(printed))
    README.write_text(README.read_text().replace(sample_shown(), shown))


def _shorten(printed: str) -> str:
    """Leave out what is neither of the change nor of MEMORY.md."""
    between, end = list(_LEFT_OUT.finditer(printed))
    return f"{printed[: between.start()]}…\n\n{printed[between.end() : end.start()]}…\n"


def run_demo(*, folder: Path) -> str:
    """Run the demo with its data in a folder, whose name is short enough for a socket, and return what it prints."""
    environment = {
        **os.environ, **dict.fromkeys(_UNSET, ""), "ENGRAM_DATA_DIR": str(folder / "data"), "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "manage.py", "demo"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def sample_shown() -> str:
    """Return the sample in the README."""
    [sample] = [block for block in blocks(README, "text") if "Recall: " in block]
    return sample


if __name__ == "__main__":
    main()
