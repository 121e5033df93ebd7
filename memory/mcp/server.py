"""The tools behind the official SDK; imported only by the processes that serve them, since the SDK takes seconds."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from django.conf import settings
from django.db import close_old_connections
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ValidationError
from starlette.applications import Starlette

from memory.mcp.answers import Told
from memory.mcp.catalogue import INSTRUCTIONS, TOOLS, Refusal, Tool
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
                told = redact(_in_words(error.__cause__)).text
                raise ToolError(f"Error executing tool {self.name}: {told}") from error.__cause__
            raise


def _in_words(error: ValidationError) -> str:
    reasons = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, reason['loc']))}: {reason['msg']}" for reason in reasons)


def build_server(*, key_text: str = "") -> MCPServer:
    """Build a server of all tools, for the holder of a key; without one each call brings its own in its header."""
    return MCPServer(
        "engram",
        version=str(settings.SPECTACULAR_SETTINGS["VERSION"]),
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        tools=[_for_sdk(tool, key_text) for tool in TOOLS],
    )


def _for_sdk(tool: Tool, key_text: str) -> SdkTool:
    """Return a tool as the SDK knows it; an argument that nobody knows is an error, never ignored."""
    made = _PlainTool.from_function(
        _as_coroutine(tool, key_text),
        name=tool.name,
        title=tool.title,
        description=tool.description,
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent or tool.is_read_only,
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
            told = await loop.run_in_executor(POOL, _call, tool, key, arguments)
        except Refusal as refusal:
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


def _call(tool: Tool, key_text: str, arguments: dict[str, Any]) -> Told:
    """Call a tool; the thread's connection to the database is looked at before and after, as with a request."""
    close_old_connections()
    try:
        return tool.call(key_text=key_text, arguments=arguments)
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
