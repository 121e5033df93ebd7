"""What is done once an answer has been sent, on the thread that made it: nobody waits for it.

For servers that answer a request on one thread from its beginning to its end (WSGI).
"""

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import structlog
from django.core.signals import request_finished, request_started
from rest_framework.response import Response

log = structlog.get_logger(__name__)


class _Waiting(threading.local):
    """What waits for the answer that this thread makes."""

    def __init__(self) -> None:
        self.acts: list[Callable[[], None]] = []


_waiting = _Waiting()


def do_afterwards(act: Callable[[], None]) -> None:
    """Do something once the `AnswerResponse` to the request in hand has been sent; what it raises is logged.

    Its log names that request, though what is bound to the log ends with the answer.
    """
    _waiting.acts.append(partial(copy_context().run, _try, act))


class AnswerResponse(Response):
    """A response after which what waits for it is done, before Django looks after this thread's connections."""

    def close(self) -> None:
        _do_all()
        super().close()


def _do_all(**_: Any) -> None:
    acts, _waiting.acts = _waiting.acts, []
    for act in acts:
        act()


def _try(act: Callable[[], None]) -> None:
    try:
        act()
    except Exception:
        log.exception("afterwards_failed")


# Where an error took the place of the answer, or its end was never told: nothing waits for another request.
request_finished.connect(_do_all)
request_started.connect(_do_all)
