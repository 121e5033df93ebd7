"""What a bar says of a figure, and what a benchmark exits with."""

import json
from pathlib import Path

import pytest

from benchmarks.bars import Bar, report_bars

KEPT = Bar(name="a ratio", value=1.5, bar=2.0)
MISSED = Bar(name="a rate", value=999.0, bar=1_000.0, is_ceiling=False)


def test_a_ceiling_is_kept_below_it_and_a_floor_above_it() -> None:
    values = (1.0, 2.0, 3.0)
    assert [Bar(name="", value=value, bar=2.0).is_met for value in values] == [True, True, False]
    assert [Bar(name="", value=value, bar=2.0, is_ceiling=False).is_met for value in values] == [False, True, True]


def test_one_missed_bar_is_enough_to_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert (report_bars(bars=[KEPT], path=None), report_bars(bars=[KEPT, MISSED], path=None)) == (0, 1)
    assert [line.endswith("MISSED") for line in capsys.readouterr().out.splitlines()] == [False, False, True]


def test_figures_are_written_beside_what_they_were_held_against(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    report_bars(bars=[MISSED], path=path)
    assert json.loads(path.read_text()) == [
        {"name": "a rate", "value": 999.0, "bar": 1_000.0, "is_ceiling": False, "is_met": False}
    ]
