"""docs/rules.md names every rule, and its code and tests are where it says."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory.domain.policy import iter_settings
from tests.docs.pages import ROOT

RULES = ROOT / "docs" / "rules.md"
REQUIRED = {
    "L7", "L8", "L19",
    "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B8a", "B9", "B10", "B11", "B12", "B13", "B14", "B15", "B16",
    "B17", "B18", "B19", "B20", "B21", "B22", "B23", "B24", "L1", "L2", "L3", "L4", "L5", "L6", "L13", "L14", "L15",
    "L16", "L18", "D2", "D3", "D5", "D7", "D9", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R7d", "R8",
    "R10", "R10a", "C1", "C2", "C3", "C4", "E1", "E2", "E3", "E4", "E6", "R11", "R12", "R13", "R14", "R15",
    "Clock", "Origin", "Speaker", "Guard", "Echo", "Curators", "Redaction",
}  # fmt: skip

_SECTION = re.compile(r"^## (\w+)[^\n]*\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.py)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A section of the page."""

    id: str
    text: str

    def files(self, title: str) -> list[Path]:
        """List the files of the paragraph that begins with `title`."""
        paragraph = re.search(rf"^{title}: (.*?)(?=^\w+: |\n\n|\Z)", self.text, re.MULTILINE | re.DOTALL)
        return [ROOT / name for name in _FILE.findall(paragraph[1])] if paragraph else []


ROWS = [Rule(id=key, text=text) for key, text in _SECTION.findall(RULES.read_text())]


def test_no_rule_is_missing_or_stated_twice() -> None:
    ids = [rule.id for rule in ROWS]

    assert len(ids) == len(set(ids))
    assert set(ids) == REQUIRED


def test_every_number_of_the_policy_belongs_to_a_rule_of_the_page() -> None:
    """B24: a setting's description begins with its rule's id, step numbers aside."""
    named = {key for setting in iter_settings() for key in re.findall(r"\b[A-Z]\d+a?\b", setting.description)}

    assert named <= {rule.id for rule in ROWS}


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.id)
def test_code_and_tests_are_named(rule: Rule) -> None:
    assert rule.files("Code")
    assert rule.files("Tests")


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.id)
def test_each_named_file_exists(rule: Rule) -> None:
    named = [ROOT / name for name in _FILE.findall(rule.text)]

    assert not [str(path) for path in named if not path.is_file()]


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.id)
def test_each_named_test_names_its_rule(rule: Rule) -> None:
    """A test file is named for a rule only if one of its tests or docstrings says the rule's id."""
    silent = [path.name for path in rule.files("Tests") if not re.search(rf"(?i)\b{rule.id}s?\b", path.read_text())]

    assert not silent


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.id)
def test_named_code_is_code_of_the_product(rule: Rule) -> None:
    assert not [path for path in rule.files("Code") if path.is_relative_to(ROOT / "tests")]
    assert not [path for path in rule.files("Tests") if not path.is_relative_to(ROOT / "tests")]
