"""What stands before the tools over HTTP: the host and the origin that a request names, and its key."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Executor
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error, close_old_connections
from django.http.request import split_domain_port, validate_host

from memory.access import NO_KEY, UNKNOWN_KEY, find_key
from memory.models.fields import OUTAGE_MESSAGE, OUTAGE_RETRY_SECONDS, is_outage

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_REFUSALS = {
    HTTPStatus.MISDIRECTED_REQUEST: "This server does not answer to that host name.",
    HTTPStatus.FORBIDDEN: "Pages of that origin may not call this server.",
    HTTPStatus.NOT_FOUND: "There is nothing at this address; messages go to /mcp.",
    HTTPStatus.METHOD_NOT_ALLOWED: "Send messages by POST; there are no sessions and no streams here.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is longer than 4 MiB.",
}


class Door:
    """Lets in who names a host of ours, comes from no foreign page, and holds a key.

    A page that a browser was led to by a name of its own for this machine fails at the first two.
    """

    def __init__(self, *, inner: Application, pool: Executor) -> None:
        self._inner = inner
        self._pool = pool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request here, or pass it on."""
        refusal = await self._refuse(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._inner(scope, receive, _as_problems(send))
        else:
            await _answer(*refusal, send)

    async def _refuse(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not is_our_host(headers.get("host", "")):
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST)
        if not is_our_origin(headers.get("origin")):
            return _refusal(HTTPStatus.FORBIDDEN)
        loop = asyncio.get_running_loop()
        try:
            wrong = await loop.run_in_executor(self._pool, _wrong_with, headers.get("authorization", ""))
        except Error as error:
            if not is_outage(error):
                raise
            return HTTPStatus.SERVICE_UNAVAILABLE, OUTAGE_MESSAGE
        if wrong:
            return HTTPStatus.UNAUTHORIZED, wrong
        return None if scope["method"] == "POST" else _refusal(HTTPStatus.METHOD_NOT_ALLOWED)


def is_our_host(host: str) -> bool:
    """Tell whether a Host header names a host that this server answers to."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_our_origin(origin: str | None) -> bool:
    """Tell whether a request comes from no page, or from one of a host of ours."""
    return origin is None or is_our_host(urlsplit(origin).netloc)


def _wrong_with(authorization: str) -> str:
    """Say what is wrong with the key that a request brings; "" where nothing is."""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        return NO_KEY
    close_old_connections()
    try:
        return "" if find_key(text=key.strip()) else UNKNOWN_KEY
    finally:
        close_old_connections()


def _as_problems(send: Send) -> Send:
    """Answer with a problem where what is inside refuses a request in bare words: a body too long, an address."""
    is_replaced = False

    async def answer(message: MutableMapping[str, Any]) -> None:
        nonlocal is_replaced
        if message["type"] == "http.response.start" and _is_bare_refusal(message):
            is_replaced = True
            await _answer(*_refusal(HTTPStatus(message["status"])), send)
        elif not is_replaced:
            await send(message)

    return answer


def _is_bare_refusal(start: MutableMapping[str, Any]) -> bool:
    kind = {name.lower(): value for name, value in start.get("headers", ())}.get(b"content-type", b"")
    return start["status"] >= HTTPStatus.BAD_REQUEST and b"json" not in kind


def _refusal(status: HTTPStatus) -> tuple[HTTPStatus, str]:
    return status, _REFUSALS.get(status, status.description or status.phrase)


async def _answer(status: HTTPStatus, detail: str, send: Send) -> None:
    problem = {"type": "about:blank", "title": status.phrase, "status": status, "detail": detail}
    headers = [(b"content-type", b"application/problem+json")]
    if status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append((b"retry-after", b"%d" % OUTAGE_RETRY_SECONDS))
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(problem).encode()})
