"""Serve the tools through the official SDK, and guard its HTTP address by host, origin and key.

Imported only by processes that serve tools: importing the SDK takes seconds.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Executor, ThreadPoolExecutor
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import Error, close_old_connections
from django.http.request import split_domain_port, validate_host
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError
from starlette.applications import Starlette

from memory import VERSION
from memory.access import NO_KEY, UNKNOWN_KEY, find_key
from memory.answers.base import Answer
from memory.mcp.catalogue import INSTRUCTIONS, TOOLS
from memory.mcp.interface import Effect, Tool, ToolRefused
from memory.models.fields import OUTAGE_MESSAGE, OUTAGE_RETRY_SECONDS, is_outage
from memory.redaction.redact import redact

_THREADS = 8
PATH = "/mcp"

# Threads of our own, which live as long as the process: the SDK's come and go, and their connections with them.
POOL = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="mcp")
CONTEXT = "ctx"


class _PlainTool(SdkTool):
    """A tool that says of arguments that do not fit what is wrong with each, and no more."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                told = redact(_describe_errors(error.__cause__)).text
                raise ToolError(f"Error executing tool {self.name}: {told}") from error.__cause__
            raise


def _describe_errors(error: ValidationError) -> str:
    reasons = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, reason['loc']))}: {reason['msg']}" for reason in reasons)


def build_server(*, key_text: str = "") -> MCPServer:
    """Build a server of all tools, for the holder of a key; without one each call brings its own in its header."""
    return MCPServer(
        "engram",
        version=VERSION,
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        tools=[_sdk_tool(tool, key_text) for tool in TOOLS],
    )


def _sdk_tool(tool: Tool, key_text: str) -> SdkTool:
    """Return a tool as the SDK knows it; an argument that nobody knows is an error, never ignored."""
    made = _PlainTool.from_function(
        _as_coroutine(tool, key_text),
        name=tool.name,
        title=tool.title,
        description=tool.description,
        annotations=ToolAnnotations(
            read_only_hint=tool.effect is Effect.READ,
            destructive_hint=tool.effect is Effect.DESTROY,
            idempotent_hint=tool.effect in (Effect.READ, Effect.REPEATABLE),
            open_world_hint=False,
        ),
    )
    arguments = made.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    made.parameters["additionalProperties"] = False
    return made


def _as_coroutine(tool: Tool, key_text: str) -> Callable[..., Awaitable[CallToolResult]]:
    """Return the tool as the SDK calls it: with a context in the place of the caller."""

    async def run(**arguments: Any) -> CallToolResult:
        context: Context = arguments.pop(CONTEXT)
        key = key_text or _key_in(context)
        loop = asyncio.get_running_loop()
        try:
            told = await loop.run_in_executor(POOL, _call_tool, tool, key, arguments, bool(key_text))
        except ToolRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        content = TextContent(type="text", text=told.as_text())
        return CallToolResult(content=[content], structured_content=told.model_dump(mode="json"))

    signature = inspect.signature(tool.run)
    arguments = [one for one in signature.parameters.values() if one.name != "caller"]
    context = inspect.Parameter(CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    returned = Annotated[CallToolResult, signature.return_annotation]
    run.__signature__ = signature.replace(parameters=[*arguments, context], return_annotation=returned)  # type: ignore[attr-defined]  # what `inspect` reads
    run.__annotations__ = {one.name: one.annotation for one in (*arguments, context)} | {"return": returned}
    run.__name__ = tool.name
    return run


def _call_tool(tool: Tool, key_text: str, arguments: dict[str, Any], is_local: bool) -> Answer:
    """Call a tool; the thread's connection to the database is looked at before and after, as with a request."""
    close_old_connections()
    try:
        return tool.call(key_text=key_text, arguments=arguments, is_local=is_local)
    finally:
        close_old_connections()


def _key_in(context: Context) -> str:
    scheme, _, key = (context.headers or {}).get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def http_application(*, server: MCPServer) -> Starlette:
    """Return the server as an ASGI application; no call leaves anything behind in the process."""
    # The door checks hosts and origins by this installation's settings; the SDK would let loopback names in alone.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return server.streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, transport_security=unchecked
    )


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


class HttpGuard:
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
            await _send_problem(*refusal, send)

    async def _refuse(self, scope: Scope) -> tuple[HTTPStatus, str] | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not is_our_host(headers.get("host", "")):
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST)
        if not is_our_origin(headers.get("origin")):
            return _refusal(HTTPStatus.FORBIDDEN)
        loop = asyncio.get_running_loop()
        try:
            wrong = await loop.run_in_executor(self._pool, _key_problem, headers.get("authorization", ""))
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


def _key_problem(authorization: str) -> str:
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
            await _send_problem(*_refusal(HTTPStatus(message["status"])), send)
        elif not is_replaced:
            await send(message)

    return answer


def _is_bare_refusal(start: MutableMapping[str, Any]) -> bool:
    kind = {name.lower(): value for name, value in start.get("headers", ())}.get(b"content-type", b"")
    return start["status"] >= HTTPStatus.BAD_REQUEST and b"json" not in kind


def _refusal(status: HTTPStatus) -> tuple[HTTPStatus, str]:
    return status, _REFUSALS.get(status, status.description or status.phrase)


async def _send_problem(status: HTTPStatus, detail: str, send: Send) -> None:
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
