"""B21: what a key limited to projects sees of beliefs that belong to none, and may do to them: nothing but look."""

from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from memory.models import Belief, BeliefEvent, Episode, Permission
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.api.test_tenancy import SECRET, Rows, leaked, rows
from tests.recall.memories import believed, remembered

__all__ = ["rows"]

pytestmark = pytest.mark.django_db

GENERAL = f"{SECRET} for all"
_PARTS = [{"statement": f"The vault stands {where}.", "evidence": [{"episode": "{episode}"}]} for where in ("in", "by")]

READS = ["/beliefs/{belief}", "/beliefs/{belief}/history", "/beliefs/{belief}/lineage", "/memories/{belief}"]
FEEDBACK = ("POST", "/memories/{belief}/feedback", {"value": "useful"})
CHANGES: list[tuple[str, str, dict[str, Any]]] = [
    *(("POST", f"/beliefs/{{belief}}/{act}", {}) for act in ("pin", "unpin", "archive", "challenge", "restore")),
    ("POST", "/beliefs/{belief}/correct", {}),
    ("POST", "/beliefs/{belief}/correct", {"statement": "The vault is empty."}),
    ("POST", "/beliefs/{belief}/split", {"parts": _PARTS}),
    ("POST", "/beliefs/merge", {"beliefs": ["{belief}", "{twin}"]}),
    ("DELETE", "/memories/{belief}", {}),
]
EVERY_CHANGE = pytest.mark.parametrize(("method", "path", "body"), CHANGES, ids=[f"{m} {p}" for m, p, _ in CHANGES])


def general(rows: Rows) -> Belief:
    return Belief.objects.get(statement=GENERAL)


def send(who: Caller, rows: Rows, method: str, path: str, body: dict[str, Any]) -> Any:
    names = {"belief": general(rows).pk, "twin": rows.twin.pk, "episode": rows.episode.pk}
    if method != "POST":
        return who.request(method, path.format(**names))
    reason = {} if "value" in body else {"reason": "so"}
    return who.post(path.format(**names), _filled(body, names) | reason)


def _filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, names) for key, one in value.items()}
    return [_filled(one, names) for one in value] if isinstance(value, list) else value.format(**names)


@pytest.mark.parametrize(
    ("method", "path", "body"), [*(("GET", path, {}) for path in READS), FEEDBACK, *CHANGES],
)  # fmt: skip
def test_one_that_rests_on_another_project_does_not_exist(
    rows: Rows, method: str, path: str, body: dict[str, Any]
) -> None:
    other = factories.project(workspace=rows.workspace)
    answer = send(caller(workspace=rows.workspace, projects=(other,)), rows, method, path, body)
    assert is_problem(answer, 404)
    assert not leaked(answer, rows)


@pytest.mark.parametrize("path", READS)
def test_one_that_rests_on_the_keys_project_is_shown(rows: Rows, path: str) -> None:
    answer = send(caller("read", workspace=rows.workspace, projects=(rows.project,)), rows, "GET", path, {})
    assert answer.status_code == 200


def state() -> tuple[Any, ...]:
    return list(Belief.objects.order_by("pk").values()), Episode.objects.count(), BeliefEvent.objects.count()


@EVERY_CHANGE
def test_one_that_rests_on_the_keys_project_is_not_changed(
    rows: Rows, method: str, path: str, body: dict[str, Any]
) -> None:
    """B19, R7: whatever the key's permission; it belongs to all."""
    before = state()
    answer = send(caller("owner", workspace=rows.workspace, projects=(rows.project,)), rows, method, path, body)
    assert is_problem(answer, 403)
    assert state() == before


def test_none_is_stated_from_two_projects_nor_named_where_one_says_the_same(rows: Rows) -> None:
    """B22: the conflict with what this key may not see would tell that it is there."""
    other = factories.project(workspace=rows.workspace)
    hidden = believed("The mill turns by night.", workspace=rows.workspace)
    factories.evidence(belief=hidden, episode=remembered("By night!", workspace=rows.workspace))
    said = [remembered("It turns.", workspace=rows.workspace, project=one) for one in (rows.project, other)]
    who = caller("curate", workspace=rows.workspace, projects=(rows.project, other))
    body = {"statement": hidden.statement, "evidence": [{"episode": one.pk} for one in said]}
    answer = who.post("/beliefs", body)
    assert is_problem(answer, 403)
    assert hidden.pk not in answer.content.decode()


USER_FILTERS: dict[str, dict[str, Any] | None] = {
    "GET /episodes": None,
    "GET /beliefs": None,
    "POST /recall": {"query": SECRET, "limit": 100},
    "POST /recollections": {"query": f"{SECRET}, says ben or lena", "session": "s-1"},
    "POST /context": {"query": SECRET},
}
# Beside POST /episodes and POST /turns, which take lines of any kind.
USER_NAMERS = {
    "POST /erase": "whose memories go",
    "GET /export": "whose memories an owner is told",
    "POST /remember": "whose memory it becomes",
    "GET /memory.md": "whose trusted beliefs are told (tests/publishing)",
    "GET /projects/{slug}/memory.md": "whose trusted beliefs are told (tests/publishing)",
}


def takes_user(operation: dict[str, Any], components: dict[str, Any]) -> bool:
    """Tell whether an operation has a field or a parameter `user`."""
    if any(one["name"] == "user" for one in operation.get("parameters", ())):
        return True
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    named = [one.get("$ref", "") for one in [content, *content.get("oneOf", ())]]
    return any("user" in components[ref.rpartition("/")[2]].get("properties", {}) for ref in named if ref)


def test_every_route_that_takes_a_user_is_walked() -> None:
    schema = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    found = {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if takes_user(operation, schema["components"]["schemas"])
    }
    assert found == USER_FILTERS.keys() | USER_NAMERS.keys()


@pytest.mark.parametrize("route", list(USER_FILTERS))
def test_another_users_filter_shows_nothing_of_a_user(rows: Rows, route: str) -> None:
    for text, user in ((f"{SECRET}, says lena", "lena"), (f"{SECRET}, says ben", "ben")):
        remembered(text, workspace=rows.workspace, user=user)
        believed(text, workspace=rows.workspace, user=user)
    who, (method, path) = caller(Permission.READ, workspace=rows.workspace), route.split()
    body = USER_FILTERS[route]
    answer = who.get(path, user="ben") if body is None else who.post(path, body | {"user": "ben"})
    assert answer.status_code == 200, method
    assert "says ben" in answer.content.decode()
    assert "says lena" not in answer.content.decode()
