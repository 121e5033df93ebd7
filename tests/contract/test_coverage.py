"""The scenes leave no door of the API out: a new route or method fails here until somebody asks it something."""

import json
import re
from collections import Counter
from typing import Any

from django.urls import Resolver404, resolve

from memory.api.urls import urlpatterns
from tests.api.caller import PREFIX
from tests.contract.callers import KEYS, WITHOUT_KEY
from tests.contract.scenes import all_scenes

# 500 is nobody's promise; the rest of the page of errors has to be met, but for a server that is down.
STATUSES = {200, 201, 202, 400, 401, 403, 404, 405, 409, 411, 413, 415, 422, 429}
_IDS = {"ep": "ep_0123456789ab", "bl": "bl_0123456789ab", "cy": "cy_0123456789ab", "pair": "7", "cursor": "page"}


def asked() -> list[tuple[dict[str, Any], int]]:
    """Return every request of every scene with the status of its answer."""
    found: list[tuple[dict[str, Any], int]] = []
    for scene in all_scenes():
        answers = json.loads(scene.answers.read_text(encoding="utf-8"))
        found += zip(
            scene.requests, (answer["status"] for answer in answers), strict=False
        )  # what has no answer yet fails elsewhere
    return found


def _operation(request: dict[str, Any]) -> tuple[str, str] | None:
    """Return the route that a request reaches, and its method."""
    method, _, path = request["do"].partition(" ")
    named = re.sub(r"\b(ep|bl|cy|pair|cursor)#\d+(?::\d+)?", lambda name: _IDS[name[1]], path.partition("?")[0])
    try:
        return method, resolve(PREFIX + named).route.removeprefix("api/v1/")
    except Resolver404:
        return None


def test_every_operation_is_answered_and_refused() -> None:
    known = {
        (method, str(pattern.pattern))
        for pattern in urlpatterns
        for method in pattern.callback.view_class.permission_for  # type: ignore[attr-defined]
    }
    answered = {_operation(request) for request, status in asked() if status < 400}
    refused = {_operation(request) for request, status in asked() if status in (401, 403)}
    assert (known - answered, known - refused) == (set(), set())


def test_every_status_is_met_and_no_failure_of_ours_is_recorded() -> None:
    assert {status for _, status in asked()} == STATUSES


def test_every_kind_of_key_asks() -> None:
    assert {request["as"] for request, _ in asked()} == {*KEYS, *WITHOUT_KEY}


def test_there_is_as_much_as_was_promised() -> None:
    """400 requests, of which 150 go wrong."""
    counted = Counter(status >= 400 for _, status in asked())
    assert counted.total() >= 400
    assert counted[True] >= 150
