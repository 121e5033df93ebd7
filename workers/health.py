"""What others learn of workers: a heartbeat in the broker, metrics for Prometheus, and the word that one shuts down.

Each worker notes the broker's time under its name, which `/readyz` counts. `/metrics` is for this machine or for
callers with the token. Children do not hear the signal that ends their parent; a page of memory that they share with
it says so, and their steps begin no further model call.
"""

import hmac
import mmap
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from celery import bootsteps
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST
from redis import RedisError

from memory.api.operations import NotSeenLately, open_broker
from memory.api.responses import plain_problem
from memory.metrics import render_metrics
from memory.signals import set_shutdown_check

_HEARTBEATS_KEY = "engram.workers"
_HEARTBEAT_SECONDS = 5.0
_GONE_AFTER_SECONDS = 20.0


class Presence(bootsteps.StartStopStep):
    """A part of a worker's consumer: begins anew with each connection to the broker, as the timer does."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._timer: Any = None

    def start(self, parent: Any) -> None:
        """Note it now, and again and again."""
        record_heartbeat(parent.hostname)
        self._timer = parent.timer.call_repeatedly(_HEARTBEAT_SECONDS, record_heartbeat, (parent.hostname,))

    def stop(self, parent: Any) -> None:
        """Leave no sign of life behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            remove_heartbeat(parent.hostname)


def record_heartbeat(worker: str) -> None:
    """Note that a worker lives; a broker that is away will see it the next time."""
    try:
        with open_broker() as broker:
            broker.zadd(_HEARTBEATS_KEY, {worker: broker.time()[0]})
    except RedisError:
        return


def remove_heartbeat(worker: str) -> None:
    """Note that a worker has ended."""
    try:
        with open_broker() as broker:
            broker.zrem(_HEARTBEATS_KEY, worker)
    except RedisError:
        return


def count_workers() -> int:
    """Count the workers that were seen lately, by the broker's clock, and forget the others."""
    with open_broker() as broker:
        broker.zremrangebyscore(_HEARTBEATS_KEY, "-inf", broker.time()[0] - _GONE_AFTER_SECONDS)
        return int(broker.zcard(_HEARTBEATS_KEY))


def check_worker_seen() -> None:
    """Raise NothingSeen where no worker lives."""
    if not count_workers():
        raise NotSeenLately("no worker")


_LOOPBACK = {"127.0.0.1", "::1"}

TASK_NAMES = (
    "extract",
    "read",
    "read_messages",
    "cluster",
    "synthesize",
    "classify",
    "apply",
    "gate",
    "restructure",
    "finish",
    "extract_turns",
    "remember",
    "sweep",
    "tick",
    "catch_up",
    "count_words",
    "keep_indexes",
    "link_memories",
    "maintain_memory",
    "publish_beliefs",
)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the metrics of all workspaces."""
    if not may_read_metrics(request):
        return plain_problem(status=403, detail="Metrics are for this machine, or for ENGRAM_METRICS_TOKEN.")
    rendered = render_metrics(tasks=[f"workers.{name}" for name in TASK_NAMES])
    return HttpResponse(rendered, content_type=CONTENT_TYPE_LATEST)


def may_read_metrics(request: HttpRequest) -> bool:
    """Tell whether the caller has the token; where none is set, whether it sits on this machine.

    Behind a proxy everybody seems to. A site that is reached by other names than this machine's own has one, or may
    have; so it needs the token.
    """
    if settings.ENGRAM_METRICS_TOKEN:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {settings.ENGRAM_METRICS_TOKEN}".encode())
    is_forwarded = settings.SECURE_PROXY_SSL_HEADER or {"X-Forwarded-For", "Forwarded", "Via"} & set(request.headers)
    return settings.IS_LOOPBACK and not is_forwarded and request.META.get("REMOTE_ADDR") in _LOOPBACK


_SHUTDOWN_SIGNALS = (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT)


def share_shutdown_flag() -> mmap.mmap:
    """Make the page, before children are forked, and let steps of this process and its children ask it."""
    page = mmap.mmap(-1, 1)
    set_shutdown_check(lambda: page[0] != 0)
    return page


def set_flag_on_signals(*, page: mmap.mmap) -> None:
    """Note on the page that a signal has come, before Celery's own handler, which may sleep, goes on with it."""
    for number in _SHUTDOWN_SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _noting_handler(page, handler))


def _noting_handler(
    page: mmap.mmap, handler: Callable[[int, FrameType | None], Any]
) -> Callable[[int, FrameType | None], Any]:
    def note(number: int, frame: FrameType | None) -> Any:
        page[0] = 1
        return handler(number, frame)

    return note
