"""The measure of the offline reading on authors whom its training did not see."""

import json
from pathlib import Path

import pytest

from benchmarks.quality.little_lives import main
from memory.llm.replies import AboutBelief, BeliefWord, Reading
from memory.llm.requests import ReadingRequest

LIFE = {
    "who": "Mara",
    "beliefs": [
        {"n": 4, "on": "2026-01-01", "t": "I keep bees."},
        {"n": 7, "on": "2026-01-01", "t": "Mara is a vegan."},
    ],
    "later": [
        {"on": "2026-02-01", "t": "The hives are sold.", "v": {"4": "CONTRADICTS"}},
        {"on": "2026-03-01", "t": "No cheese for me.", "v": {"7": "SUPPORTS"}},
        {"on": "2026-04-01", "t": "What do bees eat?", "v": {}},
    ],
}


def test_what_is_said_of_beliefs_is_held_against_the_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "z1.t3.jsonl").write_text(json.dumps(LIFE), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["little_lives", "z1", "--data", str(tmp_path)])
    monkeypatch.setattr("benchmarks.quality.little_lives.read_offline", end_the_first)
    main()
    assert capsys.readouterr().out.splitlines() == [
        "1 little lives, 6 pairs of a belief and a later sentence",
        "SUPPORTS: 0.00 precise, 0.00 found (0 right of 0 said, 1 to be found)",
        "CONTRADICTS: 0.33 precise, 1.00 found (1 right of 3 said, 1 to be found)",
        "PARTIAL: 0.00 precise, 0.00 found (0 right of 0 said, 0 to be found)",
    ]


def end_the_first(request: ReadingRequest) -> Reading:
    """Say of each message that it ends the first belief; Mara's own words are shown as a quote."""
    assert request.beliefs[0].statement == "Mara: “I keep bees.”"
    return Reading(new=[], about=[AboutBelief(m=1, b="1", verdict=BeliefWord.ENDED)])


def test_authors_without_data_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["little_lives", "z9", "--data", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
