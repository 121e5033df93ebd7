"""Servers that are in trouble: a client of them gets the answers that a test gives."""

import time
from typing import Any

import httpx
from engram_client import Engram
from engram_client.client import Options


class Troubled(httpx.BaseTransport):
    """Answers with what it was given, one after the other, and keeps when it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.asked_at = list(answers), list[float]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked_at.append(time.monotonic())
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_of(transport: Troubled, **options: Any) -> Engram:
    return Engram("http://engram.test", key="k", transport=transport, options=Options(**options))


FOUND = httpx.Response(200, json={"results": [], "degraded": []})


def refused(status: int, **headers: str) -> httpx.Response:
    told = {"title": "No", "status": status, "detail": "later"}
    return httpx.Response(status, json=told, headers={name.replace("_", "-"): value for name, value in headers.items()})
