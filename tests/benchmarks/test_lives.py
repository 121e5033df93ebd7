"""The benchmark of lives: how a life is told by each road, and what becomes of bad data."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.quality import lives
from benchmarks.quality.life_scores import Life, figures_of, parse_life, score_beliefs
from benchmarks.quality.lives import LIVES, Told, consolidate, post_episodes, print_row, remember, send_turns, show
from benchmarks.recall_stage import Poster
from memory.models import Workspace

SMALL: dict[str, Any] = {
    "id": "small",
    "user": "Ida",
    "episodes": [
        {"session": "s1", "occurred_at": "2026-01-01T09:00:00+00:00", "role": "user", "text": "I ride to work."},
        {"session": "s1", "occurred_at": "2026-01-01T09:01:00+00:00", "role": "assistant", "text": "By bus, perhaps?"},
        {"session": "s2", "occurred_at": "2026-01-02T09:00:00+00:00", "role": "user", "text": "I ride as ever."},
    ],
    "facts": [
        {"id": "ride", "kind": "stable", "statement": "Ida rides to work.", "sessions": 2,
         "current": [r"\brides?\b"], "not": []},
    ],
    "traps": [{"id": "bus", "kind": "advice", "false": [r"\bbus\b"]}],
    "questions": [],
}  # fmt: skip
TEXTS = [episode["text"] for episode in SMALL["episodes"]]


@pytest.fixture(autouse=True)
def without_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what beat does for a running stack: here is none."""
    monkeypatch.setattr("memory.consolidation.schedule.sweep", lambda: None)


class FakePoster:
    """The API of a stack, which answers from a list and keeps what it was asked."""

    def __init__(self, **answers: list[tuple[int, Any]]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, Any]] = []

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Answer a post."""
        return self._answer(path, body)

    def get(self, path: str) -> tuple[int, Any]:
        """Answer a get."""
        return self._answer(path, None)

    def _answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((path, body))
        answers = self._answers[path.removeprefix("/api/v1/").partition("/")[0].partition("?")[0]]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class FakeCycles(FakePoster):
    """An API whose cycles have these counts of clusters, or whole counts, one after the other."""

    def __init__(self, *counts: int | dict[str, int], **answers: list[tuple[int, Any]]) -> None:
        wholes = [one if isinstance(one, dict) else {"clusters": one} for one in counts]
        cycles = [
            answer
            for whole in wholes
            for answer in [(201, {"id": "c"}), (200, {"state": "done"}), (200, {"counts": whole})]
        ]
        super().__init__(consolidations=cycles, **answers)


def told_to(poster: FakePoster, life: Life | None = None) -> Told:
    """Return a life before it is told to an API."""
    return Told(life=life or parse_life(SMALL), workspace=Workspace(name="w"), poster=cast(Poster, poster))


def bodies(poster: FakePoster, path: str) -> list[Any]:
    """Return what was posted to a path."""
    return [body for asked, body in poster.asked if asked == f"/api/v1{path}"]


def test_cycles_run_until_one_reads_nothing_and_finds_no_cluster() -> None:
    poster = FakeCycles({"messages": 3}, {"messages": 0, "clusters": 1}, {"messages": 0, "clusters": 0})
    consolidate(told_to(poster))

    assert len(bodies(poster, "/consolidations")) == 3


def test_a_cycle_that_is_under_way_is_waited_for() -> None:
    poster = FakePoster(
        consolidations=[(409, {"id": "open"}), (200, {"state": "running"}), (200, {"state": "done", "counts": {}})]
    )
    consolidate(told_to(poster))

    assert [path for path, _ in poster.asked[1:]] == ["/api/v1/consolidations/open"] * 3


def test_messages_are_posted_in_one_go_with_who_said_them_when() -> None:
    poster = FakeCycles(0, episodes=[(201, {})])
    post_episodes(told_to(poster))

    (posted,) = bodies(poster, "/episodes")
    assert [line["text"] for line in posted["episodes"]] == TEXTS
    assert [line["source"] for line in posted["episodes"]] == ["human", "ai", "human"]
    assert {line["user"] for line in posted["episodes"]} == {"Ida"}
    assert [line["session"] for line in posted["episodes"]] == ["small-s1", "small-s1", "small-s2"]
    assert posted["episodes"][2]["occurred_at"] == "2026-01-02T09:00:00+00:00"


def test_turns_are_sent_one_by_one_and_read_before_anything_is_consolidated(monkeypatch: pytest.MonkeyPatch) -> None:
    poster = FakeCycles(0, turns=[(202, {})])
    waiting = iter([1, 0])
    seen: list[int] = []

    def count(workspace: Workspace) -> int:
        seen.append(len(bodies(poster, "/turns")))
        assert bodies(poster, "/consolidations") == []
        return next(waiting)

    monkeypatch.setattr(lives, "wake_and_count", count)
    send_turns(told_to(poster))

    turns = bodies(poster, "/turns")
    assert [(turn["role"], turn["content"]) for turn in turns] == [
        ("user", TEXTS[0]), ("assistant", TEXTS[1]), ("user", TEXTS[2]),
    ]  # fmt: skip
    assert seen == [3, 3]
    assert len(bodies(poster, "/consolidations")) == 1


def test_what_the_user_says_is_remembered_each_text_done_before_the_next() -> None:
    queued, done = (201, {"state": "queued"}), (201, {"state": "done"})
    poster = FakeCycles(0, remember=[queued, done, done])
    remember(told_to(poster))

    assert [body["text"] for body in bodies(poster, "/remember")] == [TEXTS[0], TEXTS[0], TEXTS[2]]
    assert {body["source"] for body in bodies(poster, "/remember")} == {"human"}


def test_all_pages_of_beliefs_are_read() -> None:
    more = "http://127.0.0.1:8000/api/v1/beliefs?cursor=2"
    poster = FakePoster(
        beliefs=[
            (200, {"results": [{"statement": "one"}], "next": more}),
            (200, {"results": [{"statement": "two"}], "next": None}),
        ]
    )

    assert told_to(poster).beliefs() == ["one", "two"]
    assert poster.asked[1][0] == "/api/v1/beliefs?cursor=2"


def test_a_question_is_asked_for_the_user_of_the_life() -> None:
    poster = FakePoster(recall=[(200, {"results": [{"text": "a"}, {"text": "b"}]})])

    assert told_to(poster).recall("how?", limit=3) == ["a", "b"]
    assert bodies(poster, "/recall") == [{"query": "how?", "limit": 3, "user": "Ida"}]


def test_a_refusal_is_no_answer() -> None:
    with pytest.raises(AssertionError):
        told_to(FakePoster(recall=[(422, {"title": "no"})])).recall("how?", limit=3)


def test_beliefs_are_shown_with_what_they_count_as(capsys: pytest.CaptureFixture[str]) -> None:
    show(life=parse_life(SMALL), beliefs=["Ida rides.", "Ida takes the bus.", "I ride.", "Ida sings."])

    assert capsys.readouterr().out.splitlines() == [
        "# small",
        "  true   Ida rides.",
        "  false  Ida takes the bus.",
        "  unfit  I ride.",
        "  ?      Ida sings.",
    ]


def test_a_row_stands_under_the_names_of_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    figures = figures_of(score_beliefs(life=parse_life(SMALL), beliefs=["Ida rides.", "Ida rides on."]))
    print_row("replay", figures, is_first=True)

    names, row = (line.split() for line in capsys.readouterr().out.splitlines())
    assert len(names) == 1 + len(figures) + sum(" " in name for name in figures)
    assert row == ["replay", "2.0", "0.0", "100.0", "0.0", "100.0", "0.0", "1.0", "0.0", "0.0", "0.0"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the benchmark as a command."""
    monkeypatch.setattr(sys, "argv", ["lives", *arguments])
    return lives.main()


def test_the_lives_that_ship_are_sound(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--check") == 0
    assert capsys.readouterr().out.startswith(f"{len(list(LIVES.glob('*.json')))} lives, ")


def test_bad_data_are_named_and_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = SMALL | {"facts": [SMALL["facts"][0] | {"current": ["walks"]}]}
    (tmp_path / "bad.json").write_text(json.dumps(bad))

    assert run(monkeypatch, "--data", str(tmp_path)) == 1
    assert "small: ride: its own patterns do not find its statement" in capsys.readouterr().out.splitlines()


def test_an_unknown_life_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "--life", "nobody", "--check")
