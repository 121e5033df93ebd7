"""While PostgreSQL recovers, whoever asks over HTTP is told to come back, and is answered once it is there again."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from memory.mcp.server import HttpGuard
from memory.models import Workspace
from memory.models.fields import OUTAGE_MESSAGE
from tests import factories
from tests.faults.servers import recovering_database
from tests.faults.waiting import wait_until
from tests.faults.web import served
from tests.faults.workforce import worker_environment

CALLS = (
    ("GET", "/api/v1/status"),
    ("POST", "/api/v1/recall"),
    ("GET", "/api/v1/episodes"),
    ("POST", "/api/v1/episodes"),
)


def test_a_request_during_recovery_is_told_to_come_back(transactional_db: None, tmp_path: Path) -> None:
    bearer = {"Authorization": f"Bearer {factories.key(workspace=factories.workspace())[1]}"}
    environment = worker_environment(model_url="", embedding_model="", timeouts={})
    environment |= {"REDIS_URL": "", "ENGRAM_LLM": "offline", "ENGRAM_EMBEDDINGS": "offline"}
    with served(folder=tmp_path, environment=environment) as address, httpx.Client(base_url=address) as web:
        assert web.get("/api/v1/status", headers=bearer).status_code == 200
        with recovering_database():
            for method, path in CALLS * 2:
                assert_is_told_to_wait(web.request(method, path, headers=bearer, json={"query": "tea"}))
            assert_is_told_to_wait(_ask_the_tools(bearer))
            admin = web.get("/admin/", headers={"Cookie": f"sessionid={'a' * 32}"})
            assert (admin.status_code, admin.text) == (503, OUTAGE_MESSAGE)
            assert 1 <= int(admin.headers["Retry-After"]) <= 60
        wait_until(lambda: web.get("/api/v1/status", headers=bearer).status_code == 200, what="an answer", every=0.2)
    assert Workspace.objects.count() == 1


def assert_is_told_to_wait(response: httpx.Response) -> None:
    """Assert a problem that names the database, and the seconds after which to try again."""
    assert response.status_code == 503, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert response.json()["detail"] == OUTAGE_MESSAGE


def _ask_the_tools(bearer: dict[str, str]) -> httpx.Response:
    async def ask() -> httpx.Response:
        with ThreadPoolExecutor(max_workers=1) as pool:
            transport = httpx.ASGITransport(app=HttpGuard(inner=_nobody, pool=pool))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.post("/mcp", headers=bearer)

    return asyncio.run(ask())


async def _nobody(*_: object) -> None:
    raise AssertionError("nobody comes in without a key")
