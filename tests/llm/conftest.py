"""A scripted server and a client of it for every test of this folder."""

from collections.abc import Iterator

import pytest

from memory.llm.openai_model import DIALECTS, OpenAIModel
from tests.model_server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Run a scripted server; each has a port of its own."""
    with ModelServer() as running:
        yield running
    DIALECTS.forget()


@pytest.fixture
def model(server: ModelServer) -> OpenAIModel:
    """Return the real client, pointed at the scripted server."""
    return openai_model(server)


def openai_model(server: ModelServer) -> OpenAIModel:
    """Make the real client of a scripted server."""
    return OpenAIModel(api_key="", base_url=server.url, synthesis_model="small", classification_model="smaller")
