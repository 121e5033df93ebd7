"""Models that choke on some texts.

Those of this machine digest everything, so that what a model of a server refuses is made up: the embedding model
refuses a text with one mark, as a server does with what it cannot read, and the language model answers nothing sensible
where it sees the other. Gunicorn takes this file as its configuration (`-c python:benchmarks.choking`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.people import UNJUDGEABLE, UNREADABLE
from memory.llm.requests import Request
from memory.llm.types import CallFailed, Completion, FailureKind

Complete = Callable[..., Completion]
Embed = Callable[..., NDArray[np.float32]]


def spoil_models() -> None:
    """Let the models of this process choke from here on."""
    from memory.llm.offline import OfflineModel, StaticEmbedder

    OfflineModel.complete = choking_model(OfflineModel.complete)  # type: ignore[method-assign]
    StaticEmbedder.embed = choking_embedder(StaticEmbedder.embed)  # type: ignore[method-assign]


def post_worker_init(worker: object) -> None:
    """Let the models of a web process choke; Gunicorn calls this by its name."""
    spoil_models()


def choking_model(complete: Complete) -> Complete:
    """Return a method of a language model that answers unless a text of the request is more than it bears."""

    def answer(self: Any, *, request: Request, timeout: float) -> Completion:
        if any(UNJUDGEABLE in episode.text for episode in getattr(request, "episodes", ())):
            raise CallFailed("the reply is no JSON", kind=FailureKind.MALFORMED)
        return complete(self, request=request, timeout=timeout)

    return answer


def choking_embedder(embed: Embed) -> Embed:
    """Return a method of an embedding model that embeds unless one of the texts is more than it bears."""

    def answer(self: Any, texts: Sequence[str], **given: Any) -> NDArray[np.float32]:
        if any(UNREADABLE in text for text in texts):
            raise CallFailed("a text cannot be read", kind=FailureKind.BAD_REQUEST)
        return embed(self, texts, **given)

    return answer
