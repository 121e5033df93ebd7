"""The tools over HTTP answer to the host names that this installation has, whatever they are."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from pytest_django import Settings
from starlette.testclient import TestClient

from memory.mcp.door import Door
from memory.mcp.server import build_server, http_application
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.mark.parametrize(("host", "status"), [("memory.example.com", 200), ("localhost", 421)])
def test_a_name_of_ours_is_answered_and_no_other(settings: Settings, host: str, status: int) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    key = factories.key("read", workspace=factories.workspace())[1]
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream", "Host": host}
    headers["Origin"] = f"https://{host}"
    with ThreadPoolExecutor(max_workers=1) as pool:
        with TestClient(Door(inner=http_application(server=build_server()), pool=pool)) as client:
            answer = client.post("/mcp", json=_LIST, headers=headers)
        pool.submit(connections.close_all).result()
    assert answer.status_code == status
