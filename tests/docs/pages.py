"""The pages of documentation as tests read them."""

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
OPERATIONS = sorted((ROOT / "docs" / "operations").glob("*.md"))
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *kinds: str) -> list[str]:
    """Return the bodies of a page's fenced blocks of these kinds, in their order."""
    return [body for kind, body in _FENCE.findall(page.read_text()) if kind in kinds]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


@cache
def committed_files() -> list[Path]:
    """List the files under version control; all files but hidden and installed ones where there is no git."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and not _is_made(path)]


def _is_made(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT).parts)
