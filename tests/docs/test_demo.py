"""`make demo` tells what is believed before and after a change, and the README shows it.

Not word by word: what the offline models make of a sentence gets better. `python -m tests.docs.demo_sample` writes the
README's sample anew.
"""

import re

import pytest

from tests.docs.demo_sample import run_demo, sample_shown

_OLD, _NEW = "Monday", "Wednesday"
_BELIEF = re.compile(r"^  (\d\.\d\d)  \[.*\]  (.*)")
_DIFFERS = {
    r"process \d+": "process …",
    r"(PostgreSQL|Valkey) [\d.]+": r"\1 …",
    r"(?<= )/\S*(?=/data/)": "…",
}


@pytest.mark.slow
def test_the_demo_tells_of_a_change_as_the_readme_shows_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its headings are those of the README, in their order."""
    printed = run_demo(folder=tmp_path_factory.mktemp("demo"))

    _assert_tells_of_the_change(printed)
    headings = iter(_headings(printed))
    missing = [heading for heading in _headings(sample_shown()) if heading not in headings]
    assert not missing, "python -m tests.docs.demo_sample writes the README's sample anew"


def test_the_sample_in_the_readme_tells_of_the_change() -> None:
    _assert_tells_of_the_change(sample_shown())


def _assert_tells_of_the_change(text: str) -> None:
    """The old belief is held, then challenged by the sentence that the new one rests on, which is borne out later."""
    before, after, at_the_end = _sections(text, "Believed on ")
    [announcement] = _sections(text, "Agnes on ")
    [recall] = _sections(text, "Recall: ")

    assert _NEW in announcement
    assert "challenged" not in before
    assert not _confidence(before, _NEW)
    [challenged] = [line for line in after.splitlines() if _BELIEF.match(line) and "(challenged" in line]
    assert _OLD in challenged
    assert re.search(rf"  against .*{_NEW}", after)
    assert _confidence(after, _OLD) < _confidence(before, _OLD)
    assert 0.5 < _confidence(after, _NEW) < _confidence(at_the_end, _NEW)
    assert not _confidence(at_the_end, _OLD)
    assert len(re.findall(r"  for  ", at_the_end)) > 1
    then, now = recall.split("\n  now\n")
    assert re.search(rf"belief .*{_OLD}", then)
    assert _NEW not in then
    assert re.search(rf"belief .*{_NEW}", now)


def _sections(text: str, title: str) -> list[str]:
    """Return what stands under each heading that begins so."""
    return re.findall(rf"^{title}.*\n((?:  .*\n)+)", text, re.MULTILINE)


def _confidence(section: str, word: str) -> float:
    """Return how sure a section is of what it believes with this word; 0.0 if it does not."""
    found = [match for line in section.splitlines() if (match := _BELIEF.match(line)) and word in match[2]]
    return max((float(match[1]) for match in found), default=0.0)


def _headings(text: str) -> list[str]:
    """Return the lines that stand at the margin, without what differs on every run."""
    for pattern, stands_for in _DIFFERS.items():
        text = re.sub(pattern, stands_for, text)
    return re.findall(r"^[^\s…].*", text.replace("/data/", "/.data/"), re.MULTILINE)
