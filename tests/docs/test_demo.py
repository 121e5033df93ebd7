"""`make demo` tells what is believed before and after a change, and the README shows it.

Not word by word: what the offline models make of a sentence gets better. `python -m tests.docs.demo_sample` writes the
README's sample anew.
"""

import re
from pathlib import Path

import pytest
from pytest_django import Settings

from memory.models import MemoryFile
from memory.publishing.publish import publish_workspace
from tests.docs.demo_sample import run_demo, sample_shown
from tests.factories import NOW
from tests.publishing.passes import trusted
from workers.management.commands.demo import make_workspace

_OLD, _NEW = "Halloway", "Corbel"
_PUBLISHED = "the big glass now"  # what stands in MEMORY.md until the demo's last message
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
    _assert_publishes(printed)
    headings = iter(_headings(printed))
    missing = [heading for heading in _headings(sample_shown()) if heading not in headings]
    assert not missing, "python -m tests.docs.demo_sample writes the README's sample anew"


def test_the_sample_in_the_readme_tells_of_the_change() -> None:
    _assert_tells_of_the_change(sample_shown())
    _assert_publishes(sample_shown())


@pytest.mark.django_db(transaction=True)
def test_a_second_run_begins_with_an_empty_memory_and_the_same_file(settings: Settings, tmp_path: Path) -> None:
    """P2: what the first run published is gone with the first pass; what a person wrote below it stays."""
    settings.DEMO_DIR = tmp_path / "demo"
    _, first = make_workspace(user="Agnes")
    trusted(first.workspace, "Choir is on Wednesdays.", user="Agnes")
    publish_workspace(workspace_id=first.workspace_id, now=NOW)
    path = Path(first.path)
    assert "Choir is on Wednesdays." in path.read_text()
    with path.open("a") as file:
        file.write("My notes\n")

    _, second = make_workspace(user="Agnes")
    publish_workspace(workspace_id=second.workspace_id, now=NOW)

    assert (second.path, MemoryFile.objects.count()) == (first.path, 1)
    assert path.read_text() == "My notes\n"


def _assert_publishes(text: str) -> None:
    """A belief that stands among Beliefs is a former one once it has ended."""
    before, after = _sections(text, r"MEMORY\.md on ")

    assert re.search(rf"^  - .*{_PUBLISHED}.* \(confidence: 0\.\d\d, evidence: \d\)$", before, re.MULTILINE)
    assert "Former" not in before
    beliefs, former = after.split("## Former Beliefs")
    assert _PUBLISHED not in beliefs
    assert re.search(rf"^  - \[NO LONGER TRUE\] .*{_PUBLISHED}", former, re.MULTILINE)


def _assert_tells_of_the_change(text: str) -> None:
    """The old belief is held, then closed by the message that the new one rests on."""
    before, after, at_the_end = _sections(text, "Believed on ")
    [announcement] = _sections(text, "Agnes on ")
    [recall] = _sections(text, "Recall: ")

    assert _NEW in announcement
    assert "(" not in "".join(line for line in before.splitlines() if _BELIEF.match(line))
    assert not _confidence(before, _NEW)
    [closed] = [line for line in after.splitlines() if _BELIEF.match(line) and "(invalidated" in line]
    assert _OLD in closed
    assert re.search(rf"  against .*{_NEW}", after)
    assert 0.5 < _confidence(after, _NEW) <= _confidence(at_the_end, _NEW)
    assert "(invalidated" not in at_the_end
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
