"""The table of faults, from what rounds wrote down."""

import json
from pathlib import Path

import pytest

from tests.faults.__main__ import name_rounds, read_log, render_table
from tests.faults.record import FaultRecord


def test_rounds_come_together_by_fault(tmp_path: Path) -> None:
    """Medians and worsts by hand: 2, 9 and 4 seconds give 4 and 9; what differed is told once each."""
    rows = [("b", "well", 2.0), ("a", "well", 1.5), ("b", "well", 9.0), ("b", "again", 4.0)]
    log = tmp_path / "log"
    log.write_text("".join(json.dumps({"fault": f, "happened": h, "seconds": s}) + "\n" for f, h, s in rows))

    assert render_table(faults=read_log(log=log)).splitlines()[2:] == [
        "| a | well | 1.5 | 1.5 |",
        "| b | well, or again | 4.0 | 9.0 |",
    ]


def test_a_fault_that_did_not_recover_leaves_no_row(tmp_path: Path) -> None:
    record = FaultRecord()
    record.strike("a kill")

    record.write(tmp_path / "log")

    assert not (tmp_path / "log").exists()
    record.recover("went on")
    record.write(tmp_path / "log")
    assert json.loads((tmp_path / "log").read_text())["happened"] == "went on"


@pytest.mark.parametrize(("count", "name"), [(1, "one round"), (3, "3 rounds")])
def test_the_page_says_how_many_rounds_it_tells_of(count: int, name: str) -> None:
    assert name_rounds(count) == name
