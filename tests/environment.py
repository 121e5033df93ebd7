"""Pytest plugin, loaded before settings are read: the suite's own database and broker, under .data/test.

Each of the suite's parallel workers has both to itself, under .data/test-gw0 and so on.
"""

import os
import sys
from pathlib import Path

import hypothesis
import pytest

_TESTS = Path(__file__).resolve().parent
_ROOT = _TESTS.parent
_FAULTS = _TESTS / "faults"

# What tests share tells what it found instead, as tests themselves do.
pytest.register_assert_rewrite(*(f"tests.{folder.parent.name}" for folder in _TESTS.glob("*/__init__.py")))

# Every run draws the same examples, so that a change is what makes one fail; HYPOTHESIS_PROFILE=random draws others.
hypothesis.settings.register_profile("same", derandomize=True, database=None)
hypothesis.settings.register_profile("random", derandomize=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# The suite never touches the data that `make up` keeps, nor a model server of the person who runs it.
os.environ.setdefault("ENGRAM_DATA_DIR", str(_ROOT / ".data" / "test"))
if _worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["ENGRAM_DATA_DIR"] += f"-{_worker}"
os.environ.update(ENGRAM_LLM="offline", ENGRAM_EMBEDDINGS="static", TOKENIZERS_PARALLELISM="false")
os.environ["ENGRAM_KEEP_CONNECTIONS"] = "0"  # threads that play workers end with their connections
for _name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DEBUG"):
    os.environ.pop(_name, None)
# Hundreds of processes are started: each would compile the whole project anew, a third of the time that it takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: the last one would run alone, while the other workers are idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow") or _FAULTS in item.path.parents}
    items.sort(key=lambda item: item.path not in slow)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers of parallel workers that were ended before they could: an interrupt ends them at once."""
    if not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        return
    from beliefsite.embedded import EmbeddedBroker, EmbeddedPostgres

    for folder in (_ROOT / ".data").glob("test-gw*"):
        for server in (EmbeddedPostgres(folder), EmbeddedBroker(folder)):
            if server.answers():
                server.start()  # as a user of it, who stops it if no other is left
                server.stop()
