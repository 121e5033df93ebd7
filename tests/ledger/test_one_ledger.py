"""C3: rows of evidence and beliefs are built in one room, and nowhere else in the product."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = {"Evidence", "Belief"}
PRODUCT = ("memory", "workers", "beliefsite", "integrations")


def buildings(path: Path) -> Iterator[tuple[str, int]]:
    """Yield where a file builds a row, or has the table's manager create one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        owner = ast.unparse(node.func) if isinstance(node.func, ast.Attribute) else ""
        is_created = owner in {f"{model}.objects.{verb}" for model in BUILT for verb in ("create", "get_or_create")}
        if name in BUILT or is_created:
            yield name or owner, node.lineno


def test_evidence_and_beliefs_are_built_in_the_ledger_alone() -> None:
    elsewhere = [
        (str(path.relative_to(ROOT)), *found)
        for part in PRODUCT
        for path in (ROOT / part).rglob("*.py")
        if "migrations" not in path.parts and path.parent != ROOT / "memory" / "ledger"
        for found in buildings(path)
    ]

    assert elsewhere == []


def test_they_are_built_there() -> None:
    """The test above sees what it looks for."""
    found = {name for path in (ROOT / "memory" / "ledger").glob("*.py") for name, _ in buildings(path)}

    assert found == BUILT
