"""docs/rules states every rule once, with its numbers, and its index is current."""

import re

import pytest

from memory.domain.policy import Setting, iter_settings
from tests.docs import rule_index

REQUIRED = {
    "L7", "L8", "L19", "P1", "P2", "P3", "P4", "P5", "P7", "P8", "P11", "P12",
    "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B8a", "B9", "B10", "B11", "B12", "B13", "B14", "B15", "B16",
    "B17", "B18", "B19", "B20", "B21", "B22", "B23", "B24", "L1", "L2", "L3", "L4", "L5", "L6", "L13", "L14", "L15",
    "L16", "L18", "D2", "D3", "D5", "D7", "D9", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R7d", "R8",
    "R10", "R10a", "C1", "C2", "C3", "C4", "E1", "E2", "E3", "E4", "E6", "R11", "R12", "R13", "R14", "R15",
    "F1", "F2", "F3", "F4", "F5", "F6",
    "Clock", "Origin", "Speaker", "Echo", "Curators", "Redaction",
}  # fmt: skip


def test_no_rule_is_missing_or_stated_twice() -> None:
    ids = rule_index.rule_ids()

    assert len(ids) == len(set(ids))
    assert set(ids) == REQUIRED


def test_every_number_of_the_policy_belongs_to_a_rule() -> None:
    """B24: a setting's description begins with its rule's id, step numbers aside."""
    named = {key for setting in iter_settings() for key in re.findall(r"\b[A-Z]\d+a?\b", setting.description)}

    assert named <= set(rule_index.rule_ids())


def test_every_setting_stands_in_a_table() -> None:
    text = "".join(page.read_text() for page in rule_index.pages())

    assert not [setting.name for setting in iter_settings() if f"| `{setting.name}` |" not in text]


def test_every_table_tells_the_numbers_of_the_policy() -> None:
    text = "".join(page.read_text() for page in rule_index.pages())
    rows = re.findall(r"^\| `(ENGRAM_\w+)` \| (.+?) \| (.+?) \|$", text, re.MULTILINE)

    assert sorted(rows) == sorted(_row_of(setting) for setting in iter_settings())


def _row_of(setting: Setting) -> tuple[str, str, str]:
    """Return a setting as its table has it: once, with its default, and described without the rules' ids."""
    number = str(setting.default).lower() if setting.kind is bool else f"{setting.default:.12g}"
    return setting.name, number, setting.description.partition(": ")[2]


def test_the_index_is_current() -> None:
    assert rule_index.INDEX.read_text() == rule_index.render()


@pytest.mark.parametrize("key", sorted(REQUIRED))
def test_every_rule_has_code_and_tests(key: str) -> None:
    assert re.search(rf"^## {key}\n\nCode: `[^\n]+\n\nTests: `", rule_index.render(), re.MULTILINE)
