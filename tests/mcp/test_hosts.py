"""The tools over HTTP answer to the host names that this installation has, whatever they are."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from pytest_django import Settings
from starlette.testclient import TestClient

from memory.mcp.server import HttpGuard, build_server, http_application
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def post(path: str, body: str, **headers: str) -> Any:
    """Send a body to the application with a living key."""
    key = factories.key("read", workspace=factories.workspace())[1]
    sent = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream", **headers}
    sent["Content-Type"] = "application/json"
    with ThreadPoolExecutor(max_workers=1) as pool:
        with TestClient(HttpGuard(inner=http_application(server=build_server()), pool=pool)) as client:
            answer = client.post(path, content=body, headers=sent)
        pool.submit(connections.close_all).result()
    return answer


@pytest.mark.parametrize(("host", "status"), [("memory.example.com", 200), ("localhost", 421)])
def test_a_name_of_ours_is_answered_and_no_other(settings: Settings, host: str, status: int) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    answer = post("/mcp", json.dumps(_LIST), Host=host, Origin=f"https://{host}")
    assert answer.status_code == status


@pytest.mark.parametrize(("path", "length", "status"), [("/mcp", 4 * 1024 * 1024 + 1, 413), ("/elsewhere", 2, 404)])
def test_what_is_refused_behind_the_door_is_a_problem_too(path: str, length: int, status: int) -> None:
    """The SDK says no in bare words; whoever reads a problem from us reads one here."""
    answer = post(path, " " * length, Host="localhost")
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
