"""The sample of beliefs that cannot both hold, as docs/quality.md tells of it."""

import pytest

from benchmarks.quality.contradictions import SAMPLE, Labelled, main, report


def test_what_is_found_is_counted_by_label(capsys: pytest.CaptureFixture[str]) -> None:
    report(
        [
            Labelled(person="Nora", language="en", one="Nora is 29.", other="Nora is thirty.", both_hold=False),
            Labelled(person="Nora", language="en", one="Nora lies.", other="Nora is honest.", both_hold=False),
            Labelled(person="Nora", language="en", one="Nora is 31.", other="Nora likes tea.", both_hold=True),
        ],
        shows_wrong=True,
    )
    assert capsys.readouterr().out.splitlines() == [
        "cannot both hold, found: 1 of 2",
        "can both hold, found: 0 of 1",
        "of one person's other pairs, found: 2",
        "  missed: Nora lies. | Nora is honest.",
        "  without a label: Nora is 29. | Nora is 31.",
        "  without a label: Nora is 31. | Nora is thirty.",
    ]


def test_the_rules_find_of_the_sample_what_the_page_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["contradictions.py"])
    main()
    told = capsys.readouterr().out.splitlines()
    page = (SAMPLE.parents[2] / "docs/quality.md").read_text(encoding="utf-8")
    assert all(f"| {label} | {figure} |" in page for label, figure in (line.split(", found: ") for line in told[:2]))
