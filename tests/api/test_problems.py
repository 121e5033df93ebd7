"""Errors: always a problem, never a trace."""

import pytest
from django.test import Client, RequestFactory

from memory.api import responses
from memory.models import Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db

SOME = "bl_000000000000"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/api/", "/api/v1/", "/api/v1/nothing", "/api/v1/beliefs/", "/api/v2/beliefs", "/api/v1/beliefs/%0A/split"]
)
@pytest.mark.parametrize("is_debugging", [True, False])
def test_an_unknown_route_is_a_404(settings: object, method: str, path: str, is_debugging: bool) -> None:
    settings.DEBUG = is_debugging  # type: ignore[attr-defined]
    assert is_problem(Client(enforce_csrf_checks=True).generic(method, path), 404)


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/beliefs"), ("PUT", "/recall"), ("GET", "/recall")])
def test_a_method_that_an_address_does_not_know_is_a_405(reader: Caller, method: str, path: str) -> None:
    assert is_problem(reader.request(method, path), 405)


def test_methods_are_kept_from_those_without_a_key(workspace: Workspace) -> None:
    assert is_problem(Caller(None).request("DELETE", "/beliefs"), 401)


def test_a_foreign_host_is_told_the_setting() -> None:
    response = Client(headers={"Host": "evil.example"}).get("/api/v1/status")
    assert is_problem(response, 400)
    assert "ALLOWED_HOSTS" in response.json()["detail"]


@pytest.mark.parametrize("path", ["/recall", "/consolidations", "/import"])
def test_a_body_in_chunks_is_a_411(path: str) -> None:
    """It would be taken for an empty one: a dry run would be a real cycle."""
    client = Client(headers={"Transfer-Encoding": "chunked"})
    response = client.generic("POST", f"/api/v1{path}", CONTENT_LENGTH="")
    assert is_problem(response, 411)


@pytest.mark.parametrize("path", ["/recall", "/episodes", "/consolidations"])
def test_a_name_that_cannot_be_sent_back_is_a_422(path: str, workspace: Workspace) -> None:
    assert is_problem(caller(workspace=workspace).post(path, {"\ud800": 1}), 422)


@pytest.mark.parametrize(
    ("path", "query", "field", "told"),
    [
        ("/beliefs", {"status": "gone"}, "status", "One of these is expected: active, challenged"),
        ("/recall", {"query": "tea", "types": ["dream"]}, "types", "One of these is expected: episode, belief."),
        ("/recall", {"query": "tea", "mode": "all"}, "mode", "expected: facts_only, facts_plus_rules, full_context."),
    ],
)
def test_a_choice_that_is_none_is_told_the_choices(
    reader: Caller, path: str, query: dict[str, object], field: str, told: str
) -> None:
    response = reader.post(path, query) if path == "/recall" else reader.get(path, **query)
    assert is_problem(response, 422)
    assert told in str(response.json()["errors"][field])


@pytest.mark.parametrize("path", ["/recall", "/recollections", "/episodes", "/beliefs"])
def test_a_project_that_is_not_there_is_named(reader: Caller, path: str) -> None:
    """B21: a 404 as ever, that says which field is to blame."""
    asked = {"query": "tea", "project": "nowhere"}
    response = reader.get(path, project="nowhere") if path in ("/episodes", "/beliefs") else reader.post(path, asked)
    assert is_problem(response, 404)
    assert response.json()["errors"] == {"project": ["There is no project 'nowhere' that this key may see."]}


@pytest.mark.parametrize(
    ("held", "method", "path", "needed"),
    [("write", "GET", "/beliefs", "read"), ("read", "POST", "/erase", "owner"), ("read", "POST", "/episodes", "write")],
)
def test_a_key_without_the_permission_is_told_which_it_takes(
    workspace: Workspace, held: str, method: str, path: str, needed: str
) -> None:
    response = caller(held, workspace=workspace).request(method, path)
    assert is_problem(response, 403)
    assert response.json()["detail"] == f"This key may not do that: it takes a key with the permission {needed}."


def test_a_head_is_a_get_without_a_body(reader: Caller) -> None:
    response = reader.request("HEAD", "/beliefs")
    assert (response.status_code, response.content) == (200, b"")


def test_another_media_type_is_a_415(reader: Caller) -> None:
    assert is_problem(reader._client.post("/api/v1/recall", "query=tea", content_type="text/plain"), 415)


@pytest.mark.parametrize(
    "header", ["Basic abc", "Bearer", "Bearer a b", "Bearer \xe4", "bearer engram_nonsense", "engram_nonsense"]
)
def test_a_header_that_holds_no_key_of_ours_is_a_401(workspace: Workspace, header: str) -> None:
    response = Client(headers={"Authorization": header}).get("/api/v1/beliefs")
    assert is_problem(response, 401)
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("is_debugging", [True, False])
def test_a_failure_of_ours_is_a_500_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, settings: object, reader: Caller, is_debugging: bool
) -> None:
    settings.DEBUG = is_debugging  # type: ignore[attr-defined]

    def fail(**_: object) -> None:
        raise RuntimeError("the secret of the cellar")

    monkeypatch.setattr("memory.api.operations.read_status", fail)
    response = reader.get("/status")
    assert is_problem(response, 500)
    assert "cellar" not in response.content.decode()
    assert "Traceback" not in response.content.decode()


@pytest.mark.parametrize(("path", "is_ours"), [("/api/v1/beliefs", True), ("/admin/", False)])
def test_failures_outside_views_are_problems_for_the_api_alone(rf: RequestFactory, path: str, is_ours: bool) -> None:
    for response in (
        responses.server_error(rf.get(path)),
        responses.bad_request(rf.get(path), Exception("foreign host")),
    ):
        assert (response.headers["Content-Type"] == "application/problem+json") is is_ours


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/nothing", "There is nothing at /api/v1/nothing: /api/v1 is followed by episodes, beliefs, consolidations,"),
        ("/beliefs/42", "/api/v1/beliefs is followed by merge or an id such as bl_3f9a1c0b77de."),
        (
            f"/beliefs/{SOME}/pinn",
            f"/api/v1/beliefs/{SOME} is followed by history, lineage, split, correct, pin, unpin,",
        ),
        (f"/beliefs/{SOME}/pin/now", f"nothing follows /api/v1/beliefs/{SOME}/pin."),
        ("/contradictions/7", "/api/v1/contradictions/7 is followed by dismiss or reopen."),
        (f"/beliefs/{SOME}", f"There is no belief {SOME} that this key may see."),
        ("/consolidations/cy_000000000000", "There is no consolidation cy_000000000000 that this key may see."),
        ("/memories/ep_000000000000", "There is no memory ep_000000000000 that this key may see."),
    ],
)
def test_a_404_tells_an_address_from_an_act_and_an_id(reader: Caller, path: str, told: str) -> None:
    response = reader.get(path)
    assert is_problem(response, 404)
    assert told in response.json()["detail"]


def test_a_belief_that_is_none_is_named(workspace: Workspace) -> None:
    mine = factories.belief(workspace=workspace)
    theirs = factories.belief(workspace=factories.workspace())
    curator = caller("curate", "read", workspace=workspace)
    told = f"There is no belief {theirs.pk} that this key may see."
    asked = {"reason": "the same"}
    for path, body in (
        (f"/beliefs/{theirs.pk}/pin", asked),
        ("/beliefs/merge", asked | {"beliefs": [mine.pk, theirs.pk]}),
    ):
        response = curator.post(path, body)
        assert is_problem(response, 404)
        assert response.json()["detail"] == told


def test_a_secret_in_an_address_is_not_repeated() -> None:
    """L2."""
    secret = "ghp_" + "a1B2" * 9
    response = Client().get(f"/api/v1/{secret}")
    assert is_problem(response, 404)
    assert secret not in response.content.decode()
