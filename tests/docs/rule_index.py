"""The index of code and tests by rule: `python -m tests.docs.rule_index` writes docs/rules/index.md.

A file belongs to a rule where a docstring or a comment of it says the rule's id.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "rules"
INDEX = FOLDER / "index.md"
CODE = ("memory", "workers", "beliefsite", "integrations")
HEADING = re.compile(r"^## (\w+)", re.MULTILINE)

_INTRODUCTION = """# Code and tests by rule

Written by `python -m tests.docs.rule_index` from the docstrings and comments that say a rule's id.
"""


def main() -> None:
    """Write the index."""
    INDEX.write_text(render())


@cache
def render() -> str:
    """Return the text of the index."""
    ids = rule_ids()
    code, tests = _mentions(set(ids), CODE), _mentions(set(ids), ("tests",))
    rows = (f"\n## {key}\n\nCode: {_line(code[key])}\n\nTests: {_line(tests[key])}\n" for key in ids)
    return _INTRODUCTION + "".join(rows)


def rule_ids() -> list[str]:
    """List the ids of the rules, page by page, in their order."""
    return [key for page in pages() for key in HEADING.findall(page.read_text())]


def pages() -> list[Path]:
    """List the pages that state rules."""
    return [page for page in sorted(FOLDER.glob("*.md")) if page.name not in {"README.md", "index.md"}]


def _mentions(ids: set[str], folders: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        words = set(re.findall(r"\w+", "\n".join(_prose(path.read_text()))))
        for key in ids & words:
            found[key].append(str(path.relative_to(ROOT)))
    return found


def _prose(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def _line(files: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in files)


if __name__ == "__main__":
    main()
