"""A caller of the API with a key."""

import json
from typing import Any

from django.test import Client

from memory.models import Project, Workspace
from tests import factories

PREFIX = "/api/v1"
PROBLEM = "application/problem+json"


class Caller:
    """Sends requests with one key, or with none."""

    def __init__(self, key: str | None) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = Client(headers=headers)

    def get(self, path: str, **query: Any) -> Any:
        """GET an address below the prefix, or a whole one."""
        return _read_out(self._client.get(_address(path), query))

    def post(self, path: str, body: object = None, *, content_type: str = "application/json") -> Any:
        """POST a body as JSON; text goes as it is."""
        text = body if isinstance(body, (str, bytes)) else json.dumps({} if body is None else body)
        return self._client.post(_address(path), text, content_type=content_type)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None) -> Any:
        """Send a request without a body."""
        return _read_out(self._client.generic(method, _address(path), headers=headers))


def _read_out(response: Any) -> Any:
    """Read a stream to its end, as every server does: one left open would end in the middle of another test."""
    if response.streaming:
        response.streaming_content = [b"".join(response.streaming_content)]
    return response


def caller(*permissions: str, workspace: Workspace, projects: tuple[Project, ...] = ()) -> Caller:
    """Return a caller with a new key; without permissions it is an owner's."""
    return Caller(factories.key(*permissions, workspace=workspace, projects=projects)[1])


def _address(path: str) -> str:
    return path if path.startswith(("http", PREFIX, "/healthz", "/readyz")) else PREFIX + path


def is_problem(response: Any, status: int) -> bool:
    """Tell whether a response is a problem of this status, with the members that every problem has."""
    body = response.json()
    return (
        response.status_code == body["status"] == status
        and response.headers["Content-Type"] == PROBLEM
        and bool(body["title"] and body["detail"])
        and body["type"] == "about:blank"
    )
