"""Nothing crosses workspaces or the limits of a key: every route, with every kind of key.

A route or method that this file does not know how to call fails the walk, so that a new one cannot be forgotten.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from memory.export.file_format import header_of
from memory.models import (
    Belief,
    Claim,
    ContradictionCandidate,
    Cycle,
    Episode,
    Heartbeat,
    Lineage,
    MetricCounter,
    Project,
    RevokedEvidence,
    RevokedLineage,
    Workspace,
)
from memory.models.tenancy import WorkspaceQuerySet
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db

LATER = factories.NOW + timedelta(days=1)
EMPTY_FILE = json.dumps({"engram": header_of(workspace=Workspace(), rows={})})
SECRET = "the vault stands behind the mill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a workspace holds; the rest of it rests on the one project."""

    workspace: Workspace
    project: Project
    episode: Episode
    belief: Belief
    twin: Belief
    cycle: Cycle
    rival: ContradictionCandidate

    @property
    def names(self) -> set[str]:
        """Return what no stranger's answer may hold; ids in an address are ours to know."""
        return {self.episode.pk, self.belief.pk, self.cycle.pk, self.project.slug, SECRET}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How to call one method of one route, and which permission it needs."""

    permission: str
    path: Callable[[Rows], str]
    body: Callable[[Rows], object] | None = None
    names_a_row: bool = False  # of the workspace: to others it does not exist
    content_type: str = "application/json"
    stands_in_the_way: int | None = None  # the answer to who may call it
    refuses: int = 404  # how that is said

    def sent(self, rows: Rows) -> set[str]:
        """Return the ids that the caller may be told back, having sent them: what is not there is named."""
        sent = f"{self.path(rows)} {self.body(rows) if self.body else ''}"
        return {name for name in rows.names - {SECRET} if name in sent}


def at(path: str) -> Callable[[Rows], str]:
    return lambda rows: path


def at_cycle(made: Callable[[Rows], str], act: str) -> Callable[[Rows], str]:
    return lambda rows: f"/consolidations/{made(rows)}/{act}"


def ended(rows: Rows) -> str:
    return rows.cycle.pk


def reopened(rows: Rows) -> str:
    """Let the cycle be one that can still be cancelled."""
    Cycle.objects.filter(pk=rows.cycle.pk).update(state="queued", finished_at=None)
    return rows.cycle.pk


def undone(rows: Rows) -> str:
    """Let the cycle be one that was undone."""
    Cycle.objects.filter(pk=rows.cycle.pk).update(undone_at=factories.NOW, undone_by="person lena")
    return rows.cycle.pk


CALLS: dict[tuple[str, str], Call] = {
    ("api/v1/episodes", "GET"): Call(permission="read", path=at("/episodes")),
    ("api/v1/episodes", "POST"): Call(permission="write", path=at("/episodes"), body=lambda rows: {"text": SECRET}),
    ("api/v1/beliefs", "GET"): Call(permission="read", path=at("/beliefs")),
    ("api/v1/beliefs", "POST"): Call(
        permission="curate",
        path=at("/beliefs"),
        body=lambda rows: {"statement": "The mill turns by night.", "evidence": [{"episode": rows.episode.pk}]},
        names_a_row=True,
        refuses=422,
    ),
    ("api/v1/beliefs/merge", "POST"): Call(
        permission="curate",
        path=at("/beliefs/merge"),
        body=lambda rows: {"beliefs": [rows.belief.pk, rows.twin.pk], "reason": "the same"},
        names_a_row=True,
    ),
    ("api/v1/beliefs/<belief_id:belief_id>/split", "POST"): Call(
        permission="curate",
        path=lambda rows: f"/beliefs/{rows.belief.pk}/split",
        body=lambda rows: {
            "parts": [
                {"statement": f"The vault stands {where}.", "evidence": [{"episode": rows.episode.pk}]}
                for where in ("behind the mill", "beside the barn")
            ],
            "reason": "two vaults",
        },
        names_a_row=True,
    ),
    ("api/v1/beliefs/<belief_id:belief_id>/correct", "POST"): Call(
        permission="curate",
        path=lambda rows: f"/beliefs/{rows.belief.pk}/correct",
        body=lambda rows: {"reason": "moved", "statement": "The vault stands beside the barn."},
        names_a_row=True,
    ),
    ("api/v1/beliefs/<belief_id:belief_id>", "GET"): Call(
        permission="read", path=lambda rows: f"/beliefs/{rows.belief.pk}", names_a_row=True
    ),
    ("api/v1/beliefs/<belief_id:belief_id>/history", "GET"): Call(
        permission="read", path=lambda rows: f"/beliefs/{rows.belief.pk}/history", names_a_row=True
    ),
    ("api/v1/beliefs/<belief_id:belief_id>/<act:act>", "POST"): Call(
        permission="curate",
        path=lambda rows: f"/beliefs/{rows.belief.pk}/archive",
        body=lambda rows: {"reason": "out of date"},
        names_a_row=True,
    ),
    ("api/v1/beliefs/<belief_id:belief_id>/lineage", "GET"): Call(
        permission="read", path=lambda rows: f"/beliefs/{rows.belief.pk}/lineage", names_a_row=True
    ),
    ("api/v1/consolidations", "GET"): Call(permission="read", path=at("/consolidations")),
    ("api/v1/consolidations", "POST"): Call(permission="curate", path=at("/consolidations"), body=lambda rows: {}),
    ("api/v1/consolidations/<cycle_id:cycle_id>", "GET"): Call(
        permission="read", path=lambda rows: f"/consolidations/{rows.cycle.pk}", names_a_row=True
    ),
    **{
        (f"api/v1/consolidations/<cycle_id:cycle_id>/{act}", "POST"): Call(
            permission="curate", path=at_cycle(made, act), body=lambda rows: {}, names_a_row=True
        )
        for act, made in {"cancel": reopened, "undo": ended, "release": undone}.items()
    },
    ("api/v1/recall", "POST"): Call(
        permission="read", path=at("/recall"), body=lambda rows: {"query": SECRET, "limit": 100}
    ),
    ("api/v1/recollections", "POST"): Call(
        permission="read", path=at("/recollections"), body=lambda rows: {"query": SECRET, "session": "s-1"}
    ),
    ("api/v1/context", "POST"): Call(
        permission="read", path=at("/context"), body=lambda rows: {"query": SECRET, "session": "s-1"}
    ),
    ("api/v1/remember", "POST"): Call(permission="write", path=at("/remember"), body=lambda rows: {"text": SECRET}),
    ("api/v1/memories/<memory_id:memory_id>/claims", "GET"): Call(
        permission="read", path=lambda rows: f"/memories/{rows.episode.pk}/claims", names_a_row=True
    ),
    ("api/v1/memories/<memory_id:memory_id>/feedback", "POST"): Call(
        permission="write",
        path=lambda rows: f"/memories/{rows.belief.pk}/feedback",
        body=lambda rows: {"value": "useful"},
        names_a_row=True,
    ),
    ("api/v1/memories/<memory_id:memory_id>/resolve", "POST"): Call(
        permission="write",
        path=lambda rows: f"/memories/{rows.episode.pk}/resolve",
        body=lambda rows: {},
        names_a_row=True,
    ),
    ("api/v1/memories/<memory_name:memory_id>", "GET"): Call(
        permission="read", path=lambda rows: f"/memories/{rows.episode.pk}", names_a_row=True
    ),
    ("api/v1/memories/<memory_name:memory_id>", "DELETE"): Call(
        permission="write", path=lambda rows: f"/memories/{rows.belief.pk}", names_a_row=True
    ),
    ("api/v1/reflection", "GET"): Call(permission="read", path=at("/reflection")),
    **{
        (f"api/v1/reflection/{what}", "POST"): Call(permission="curate", path=at(f"/reflection/{what}"))
        for what in ("merges", "meta-beliefs", "prune", "subjects")
    },
    ("api/v1/contradictions", "GET"): Call(permission="read", path=at("/contradictions")),
    ("api/v1/contradictions", "POST"): Call(
        permission="curate", path=at("/contradictions"), body=lambda rows: {"check": True}
    ),
    ("api/v1/contradictions/<int:pair_id>/<settling:settling>", "POST"): Call(
        permission="curate", path=lambda rows: f"/contradictions/{rows.rival.pk}/dismiss", names_a_row=True
    ),
    ("api/v1/erase", "POST"): Call(
        permission="owner", path=at("/erase"), body=lambda rows: {"user": rows.episode.user or "nobody in particular"}
    ),
    ("api/v1/export", "GET"): Call(permission="owner", path=at("/export")),
    ("api/v1/import", "POST"): Call(
        permission="owner",
        path=at("/import"),
        body=lambda rows: EMPTY_FILE,
        content_type="application/x-ndjson",
        stands_in_the_way=409,  # the memory that is there
    ),
    ("api/v1/memory.md", "GET"): Call(permission="read", path=at("/memory.md")),
    ("api/v1/projects/<project_slug:slug>/memory.md", "GET"): Call(
        permission="read", path=lambda rows: f"/projects/{rows.project.slug}/memory.md", names_a_row=True
    ),
    ("api/v1/status", "GET"): Call(permission="read", path=at("/status")),
    ("api/v1/turns", "POST"): Call(
        permission="write", path=at("/turns"), body=lambda rows: {"session": "s-1", "role": "user", "content": SECRET}
    ),
}

# Routes without keys, each with its reason.
PUBLIC = {
    "": "leads to the admin",
    "healthz": "a probe that tells nothing but that the process lives",
    "readyz": "a probe that names what is missing",
    "metrics": "counts over all workspaces, for the operator: this machine, or the token",
    "api/schema": "describes the API and holds no rows",
    "api/docs": "shows the schema",
    "^api/": "answers 404 to what is no route",
    "^admin/r/": "answers 410 to all",
}
ADMIN = "admin/"  # by session and membership, with tests of its own


@pytest.fixture
def rows(db: None) -> Rows:
    """Fill a workspace with a row of every kind that an answer could show."""
    workspace = factories.workspace()
    project = factories.project(workspace=workspace, slug="hidden-project")
    episode = remembered(SECRET, workspace=workspace, project=project, category="commitment")
    remembered(f"{SECRET}!", workspace=workspace)
    belief = believed(SECRET, workspace=workspace, project=project)
    general = believed(f"{SECRET} for all", workspace=workspace)
    twin = believed(f"{SECRET}, as ever", workspace=workspace, project=project)
    said = Claim.objects.create(
        workspace=workspace, episode=episode, number=1, sentence=SECRET, reader="rules-1", created_at=factories.NOW
    )
    for judged in (belief, general):
        factories.evidence(belief=judged, episode=episode, claim=said)
    Lineage.objects.create(workspace=workspace, parent=general, child=belief, kind="split", created_at=factories.NOW)
    RevokedLineage.objects.create(
        workspace=workspace, parent=general, child=belief, kind="merge", created_at=factories.NOW, undone_at=LATER
    )
    for judged in (belief, general):
        RevokedEvidence.objects.create(
            workspace=workspace, belief=judged, episode=episode, verdict="SUPPORTS", kind="ordinary", base_weight=1,
            basis="model", reason=SECRET, created_at=factories.NOW, undone_at=LATER,
        )  # fmt: skip
    cycle = Cycle.objects.create(
        workspace=workspace, trigger="person", now=factories.NOW, state="finished", finished_at=factories.NOW
    )
    first, second = sorted((belief.pk, twin.pk))
    rival = ContradictionCandidate.objects.create(
        workspace=workspace, first_id=first, second_id=second, similarity=0.7, created_at=factories.NOW
    )
    return Rows(
        workspace=workspace, project=project, episode=episode, belief=belief, twin=twin, cycle=cycle, rival=rival
    )


def routes(patterns: list[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern) and not route.startswith(ADMIN):
            yield route, pattern.callback


def methods(view: Any) -> set[str]:
    named = {name for name in view.view_class.http_method_names if hasattr(view.view_class, name)}
    return {name.upper() for name in named - {"options", "head"}}


def send(who: Caller, method: str, call: Call, rows: Rows) -> Any:
    path = call.path(rows)
    if method == "POST" and call.body:
        return who.post(path, call.body(rows), content_type=call.content_type)
    return who.request(method, path)


def holds(rows: Rows) -> dict[str, int]:
    """Count a workspace's rows of every model."""
    return {model.__name__: model.objects.for_workspace(rows.workspace).count() for model in tenant_models()}


def tenant_models() -> list[Any]:
    return [model for model in apps.get_app_config("memory").get_models() if model not in WITHOUT_WORKSPACE]


WITHOUT_WORKSPACE: dict[type, str] = {
    Workspace: "the tenant itself",
    MetricCounter: "counts what happens to messages of every workspace",
    Heartbeat: "a sign of life of a process that serves every workspace",
}

EVERY_CALL = pytest.mark.parametrize(("route", "method"), list(CALLS), ids=[f"{m} {r}" for r, m in CALLS])


def test_every_route_and_method_is_walked() -> None:
    found = {
        (route, method) for route, view in routes(get_resolver().url_patterns) if route not in PUBLIC
        for method in methods(view)
    }  # fmt: skip
    assert found == set(CALLS)


@EVERY_CALL
@pytest.mark.parametrize("kind", ["no key", "wrong key", "revoked key"])
def test_without_a_living_key_nothing_answers(rows: Rows, route: str, method: str, kind: str) -> None:
    key, text = factories.key(workspace=rows.workspace)
    key.__class__.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    who = Caller({"no key": None, "wrong key": "engram_wrong", "revoked key": text}[kind])
    before = holds(rows)
    response = send(who, method, CALLS[route, method], rows)
    assert is_problem(response, 401)
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert holds(rows) == before


@EVERY_CALL
def test_a_key_of_another_workspace_sees_and_changes_nothing(rows: Rows, route: str, method: str) -> None:
    before, call = holds(rows), CALLS[route, method]
    response = send(caller(workspace=factories.workspace()), method, call, rows)
    assert not leaked(response, rows) - call.sent(rows)
    assert response.status_code == call.refuses or not call.names_a_row
    assert holds(rows) == before


@EVERY_CALL
def test_a_key_of_another_project_sees_nothing_of_this_one(rows: Rows, route: str, method: str) -> None:
    """B21: nor anything without a project, nor a global belief that rests on this one."""
    call = CALLS[route, method]
    other = factories.project(workspace=rows.workspace)
    response = send(caller(workspace=rows.workspace, projects=(other,)), method, call, rows)
    assert not leaked(response, rows) - call.sent(rows)
    assert response.status_code in (403, call.refuses) or not call.names_a_row


def leaked(response: Any, rows: Rows) -> set[str]:
    """Return what an answer tells of the rows."""
    text = (b"".join(response.streaming_content) if response.streaming else response.content).decode()
    return {name for name in rows.names if name in text}


def test_the_walk_would_notice_a_leak(rows: Rows) -> None:
    owner = caller(workspace=rows.workspace)
    belief, project, cycle = rows.belief.pk, rows.project.slug, rows.cycle.pk
    told = {}
    for (route, method), call in CALLS.items():
        with transaction.atomic():
            if call.names_a_row:
                told[f"{method} {route.removeprefix('api/v1/')}"] = leaked(send(owner, method, call, rows), rows)
            transaction.set_rollback(True)
    of_belief, of_cycle = "beliefs/<belief_id:belief_id>", "consolidations/<cycle_id:cycle_id>"
    assert told == {
        "POST beliefs": {project},
        "POST beliefs/merge": {belief, project, SECRET},
        f"GET {of_belief}": {belief, rows.episode.pk, project, SECRET},
        f"GET {of_belief}/history": {SECRET},
        f"GET {of_belief}/lineage": {belief, SECRET},
        f"POST {of_belief}/<act:act>": {belief, project, SECRET},
        f"POST {of_belief}/split": {belief, project, SECRET},
        f"POST {of_belief}/correct": {belief, project, SECRET},
        "GET memories/<memory_name:memory_id>": {belief, rows.episode.pk, project, SECRET},
        f"GET {of_cycle}": {cycle},
        "GET memories/<memory_id:memory_id>/claims": {belief, rows.episode.pk, SECRET},
        "DELETE memories/<memory_name:memory_id>": {belief},
        "POST memories/<memory_id:memory_id>/feedback": {belief},
        "POST memories/<memory_id:memory_id>/resolve": {rows.episode.pk},
        "POST contradictions/<int:pair_id>/<settling:settling>": {belief, SECRET},
        "GET projects/<project_slug:slug>/memory.md": set(),  # nothing there is trusted enough: see tests/publishing
        **{f"POST {of_cycle}/{act}": {cycle} for act in ("cancel", "undo", "release")},
    }


@EVERY_CALL
@pytest.mark.parametrize("held", ["read", "write", "curate", "owner"])
def test_a_permission_opens_what_it_names_and_no_more(rows: Rows, route: str, method: str, held: str) -> None:
    """Owner includes all, curate includes read and write, write does not include read."""
    includes = {"read": "read", "write": "write", "curate": "read write curate", "owner": "read write curate owner"}
    call, before = CALLS[route, method], holds(rows)
    response = send(caller(held, workspace=rows.workspace), method, call, rows)
    if call.permission in includes[held].split():
        assert 200 <= response.status_code < 300 or response.status_code == call.stands_in_the_way
    else:
        assert is_problem(response, 403)
        assert {**holds(rows), "ApiKey": 0} == {**before, "ApiKey": 0}


@pytest.mark.parametrize("model", tenant_models(), ids=lambda model: model.__name__)
def test_every_model_belongs_to_a_workspace(model: Any) -> None:
    assert model._meta.get_field("workspace").related_model is Workspace
    assert model._meta.get_field("workspace").null is False
    assert isinstance(model.objects.all(), WorkspaceQuerySet)
