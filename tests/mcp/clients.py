"""Clients of the SDK, connected as agents are."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.docs.pages import ROOT


@asynccontextmanager
async def over_http(url: str, *, headers: Mapping[str, str]) -> AsyncIterator[Client]:
    """Speak to the server at an address."""
    async with (
        create_mcp_http_client(headers=dict(headers)) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def over_command(command: Sequence[str], *, environment: Mapping[str, str]) -> AsyncIterator[Client]:
    """Start a server in the checkout, as a client does, and speak to it."""
    program, *arguments = command
    server = StdioServerParameters(command=program, args=arguments, env=dict(environment), cwd=str(ROOT))
    async with Client(server) as client:
        yield client


def text_of(answer: object) -> str:
    """Return what a tool told the model."""
    content = answer.content[0]  # type: ignore[attr-defined]  # of whichever kind of result
    return str(content.text)
