"""The pages hold together, and nothing in the project speaks of anything but the project."""

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from memory.domain.policy import FORMER_NAMES
from memory.environment import CLIENT_VARIABLES, known_variables
from tests.docs.pages import PAGES, README, ROOT, committed_files, prose

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LOG_CALL = re.compile(r"\blog\.(?:debug|info|warning|error|exception)\(\s*\"([\w.]+)\"")
# Put together here so that this file is not its own first finding.
_FOREIGN = re.compile(
    "|".join(("/" + r"work/(?:wt|main|shared|\.library)\b", r"\bissue" + r" #?\d", "session" + "_id of"))
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for target in _LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        if re.match(r"https?:", target):
            continue
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists() or (anchor and anchor not in _anchors(linked)):
            dead.append(target)

    assert not dead


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the usual renderers make them."""
    headings = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in _HEADING.findall(page.read_text()))
    return {heading.strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """Code in backticks that looks like a path of ours, generated ones aside."""
    named = set(re.findall(r"`((?:memory|workers|beliefsite|tests|benchmarks|docs)/[\w./-]+\.\w+)", page.read_text()))

    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"manage\.py ([a-z_]+)", page.read_text()))

    assert named <= set(get_commands())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_variable_that_a_page_names_is_read(page: Path) -> None:
    listed = known_variables() | CLIENT_VARIABLES | FORMER_NAMES.keys()
    listed |= {"ENGRAM_FOLLOW_LINKS"}  # the plug of the retrieval check reads it
    named = set(re.findall(r"\b(ENGRAM_[A-Z_]*[A-Z]|OPENAI_[A-Z_]*[A-Z])\b(?!_?[<*])", page.read_text()))

    assert named <= listed


def test_every_log_event_is_explained() -> None:
    """docs/operations/watching.md lists the static names of the events, all of them and no others."""
    sources = [
        *(ROOT / "memory").rglob("*.py"),
        *(ROOT / "workers").rglob("*.py"),
        *(ROOT / "beliefsite").rglob("*.py"),
    ]
    logged = {name for path in sources for name in _LOG_CALL.findall(path.read_text())}
    page = (ROOT / "docs" / "operations" / "watching.md").read_text()
    table = page[page.index("| event | means |") :].split("\n\n")[0]
    first_cells = " ".join(line.split("|")[1] for line in table.splitlines())

    assert set(re.findall(r"`([\w.]+)`", first_cells)) == logged


def test_the_readme_leads_to_every_page() -> None:
    indexes = [ROOT / "docs" / folder / "README.md" for folder in ("rules", "operations")]
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in (README, *indexes)
        for target in _LINK.findall(page.read_text())
    }

    assert {page for page in PAGES if page != README} <= linked


def test_no_file_speaks_of_the_place_it_was_made_in() -> None:
    found = []
    for path in committed_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in _FOREIGN.finditer(text)]

    assert not found
