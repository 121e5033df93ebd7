"""The sample of beliefs that cannot both hold, as docs/quality.md tells of it."""

import pytest

from benchmarks.quality.contradictions import SAMPLE, Labelled, main, report
from tests.consolidation.pair_answers import CONTRADICTS, SUPPORTS, ScriptedReader


def test_what_is_found_is_counted_by_label(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        ("Nora is 29.", "Nora is thirty."): CONTRADICTS, ("Nora is honest.", "Nora lies."): SUPPORTS,
        ("Nora is 31.", "Nora is thirty."): CONTRADICTS,
    }  # fmt: skip
    monkeypatch.setattr("benchmarks.quality.contradictions.reader", lambda: ScriptedReader(answers))
    pairs = [
        Labelled(person="Nora", language="en", one="Nora is 29.", other="Nora is thirty.", both_hold=False),
        Labelled(person="Nora", language="en", one="Nora lies.", other="Nora is honest.", both_hold=False),
        Labelled(person="Nora", language="en", one="Nora is 31.", other="Nora likes tea.", both_hold=True),
    ]
    report(pairs, shows_wrong=True, has_others=True)
    assert capsys.readouterr().out.splitlines() == [
        "cannot both hold, found: 1 of 2",
        "cannot both hold, called support: 1 of 2",
        "can both hold, found: 0 of 1",
        "can both hold, called support: 0 of 1",
        "of one person's other pairs, found: 1",
        "  called support: Nora lies. | Nora is honest.",
        "  without a label: Nora is 31. | Nora is thirty.",
    ]


def test_the_reader_finds_of_the_sample_what_the_page_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["contradictions.py"])
    main()
    told = capsys.readouterr().out.splitlines()
    page = (SAMPLE.parents[2] / "docs/quality.md").read_text(encoding="utf-8")
    assert all("| {} | {} |".format(*line.split(": ")) in page for line in told)
