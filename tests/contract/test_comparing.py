"""The comparison fails where it should: whatever of an answer changes is noticed, and named."""

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from rest_framework.exceptions import NotAuthenticated

from memory.answers.status import Status
from memory.api import operations
from tests.contract.keeping import SCENES, Keeper, differences
from tests.contract.placeholders import Placeholders, literal_ids
from tests.contract.scenes import Scene, all_scenes, play

ANSWER = {
    "request": "3. POST /recall as reader",
    "status": 200,
    "headers": {"Content-Type": "application/json"},
    "body": {
        "results": [{"id": "ep#1", "score": 0.5085, "relevant": True}, {"id": "bl#1", "confidence": 0.75}],
        "degraded": [],
    },
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return the answer with another value in one place."""
    answer = copy.deepcopy(ANSWER)
    *way, last = path
    inside: Any = answer
    for step in way:
        inside = inside[step]
    inside[last] = to
    return answer


def test_what_is_the_same_differs_in_nothing() -> None:
    assert differences([ANSWER], [copy.deepcopy(ANSWER)]) == []


@pytest.mark.parametrize(
    ("path", "to", "told"),
    [
        (("status",), 201, "3. POST /recall as reader.status: recorded 200, now 201"),
        (("headers", "Content-Type"), "text/html", 'reader.headers.Content-Type: recorded "application/json"'),
        (("headers", "Retry-After"), "7", 'reader.headers.Retry-After: not recorded, now "7"'),
        (("body", "results", 0, "relevant"), False, "reader.body.results[0].relevant: recorded true, now false"),
        (("body", "results", 0, "score"), 0.52, "reader.body.results[0].score: recorded 0.5085, now 0.52"),
        (("body", "results", 1, "confidence"), 0.7501, "results[1].confidence: recorded 0.75, now 0.7501"),
        (("body", "results", 1, "confidence"), "0.75", 'results[1].confidence: recorded 0.75, now "0.75"'),
        (("body", "results", 0, "relevant"), 1, "results[0].relevant: recorded true, now 1"),
        (("body", "results", 0, "id"), "ep#2", 'results[0].id: recorded "ep#1", now "ep#2"'),
        (("body", "results", 0), {"id": "ep#1", "score": 0.5085}, "[0].relevant: recorded true, now missing"),
        (("body", "degraded"), ["vector"], 'body.degraded[0]: not recorded, now "vector"'),
        (("body", "results"), ANSWER["body"]["results"][:1], "body.results[1]: recorded"),  # type: ignore[index]
    ],
)
def test_what_changed_is_named_with_its_request(path: tuple[str | int, ...], to: Any, told: str) -> None:
    [found] = differences([ANSWER], [changed(*path, to=to)])
    assert told in found


def test_only_likenesses_may_be_rounded_otherwise() -> None:
    assert differences(ANSWER, changed("body", "results", 0, "score", to=0.5086)) == []
    assert differences(ANSWER, changed("body", "results", 1, "confidence", to=0.7501)) != []


def test_answers_in_another_order_are_other_answers() -> None:
    results: Any = ANSWER["body"]
    assert differences(ANSWER, changed("body", "results", to=results["results"][::-1]))


def test_every_value_of_every_kind_of_answer_is_looked_at() -> None:
    """One recorded answer of each status: each of its values is taken away, and given another, in turn."""
    for answer in _one_of_each_status().values():
        for way in list(_leaves(answer)):
            for spoil in (_take_away, _replace):
                spoiled = copy.deepcopy(answer)
                spoil(spoiled, way)
                assert differences(answer, spoiled), f"{answer['request']}: {way}"


def _one_of_each_status() -> dict[int, dict[str, Any]]:
    recorded = (json.loads(scene.answers.read_text(encoding="utf-8")) for scene in all_scenes())
    return {answer["status"]: answer for answers in recorded for answer in answers if len(str(answer)) < 5_000}


def _leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inside in steps:
        yield (*way, step)
        yield from _leaves(inside, (*way, step))


def _parent(answer: Any, way: tuple[Any, ...]) -> Any:
    for step in way[:-1]:
        answer = answer[step]
    return answer


def _take_away(answer: Any, way: tuple[Any, ...]) -> None:
    del _parent(answer, way)[way[-1]]


def _replace(answer: Any, way: tuple[Any, ...]) -> None:
    _parent(answer, way)[way[-1]] = "something else"


def _scene(name: str) -> Scene:
    return Scene(file=SCENES / f"{name}.jsonl")


@pytest.mark.django_db
def test_a_field_that_the_code_loses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the code to the message: with the request, what to do about it, and where it has to stand."""

    class PoorerStatus(Status):
        dead_letters: int = 0  # a default is left out

    monkeypatch.setattr(operations, "Status", PoorerStatus)
    told = _failure(_scene("standing"))
    assert "1. GET /status as reader.body.dead_letters: recorded 0, now missing" in told
    assert "python -m tests.contract" in told
    assert "CHANGELOG.md" in told


@pytest.mark.django_db
def test_a_status_that_the_code_changes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NotAuthenticated, "status_code", 403)
    assert "2. POST /episodes as nobody.status: recorded 401, now 403" in _failure(_scene("doors_without_key"))


def _failure(scene: Scene) -> str:
    answers = [{**answer, "request": f"{n}. {answer['request']}"} for n, answer in enumerate(play(scene), 1)]
    with pytest.raises(pytest.fail.Exception) as failed:
        Keeper().keep(scene.answers, answers)
    return str(failed.value)


def test_ids_have_one_name_throughout_a_scene() -> None:
    names = Placeholders(began=datetime(2026, 11, 1, tzinfo=UTC), literal=literal_ids("GET /beliefs/bl_3f9a1c0b77de"))
    first = names.hide({"episode": "ep_00000a000000", "belief": "bl_00000b000000", "of": ["ep_00000c000000"]})
    assert first == {"episode": "ep#1", "belief": "bl#1", "of": ["ep#2"]}
    assert names.hide("There is no ep_00000c000000, nor bl_3f9a1c0b77de.") == "There is no ep#2, nor bl_3f9a1c0b77de."
    assert names.reveal({"do": "GET /memories/ep#2"}) == {"do": "GET /memories/ep_00000c000000"}
    assert names.reveal("ep#2:6") == "ep_00000c"
    assert names.hide("More than one id begins with ep_00000c.") == "More than one id begins with ep#2:6."
    with pytest.raises(LookupError, match="ep#3"):
        names.reveal("GET /memories/ep#3")


def test_times_of_a_scene_are_compared_and_those_of_the_wall_are_not() -> None:
    names = Placeholders(began=datetime(2026, 11, 1, tzinfo=UTC))
    assert names.hide("2026-03-02T09:00:00Z") == "2026-03-02T09:00:00Z"
    assert names.hide({"recorded_at": "2026-11-02T09:00:00.123456Z"}) == {"recorded_at": "<wall clock>"}


def test_cursors_and_numbers_of_pairs_have_names() -> None:
    names = Placeholders(began=datetime(2026, 11, 1, tzinfo=UTC))
    page = names.hide({"next": "http://testserver/api/v1/beliefs?limit=1&cursor=MjAyNi0w"})
    assert page == {"next": "http://testserver/api/v1/beliefs?limit=1&cursor=cursor#1"}
    assert names.hide({"pairs": [{"id": 4711, "total": 1}]}) == {"pairs": [{"id": "pair#1", "total": 1}]}
    assert names.reveal("GET /beliefs?cursor=cursor#1") == "GET /beliefs?cursor=MjAyNi0w"
