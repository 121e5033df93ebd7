"""Workers say that they live: each notes the broker's time under its name, from the process that takes messages."""

from typing import Any

from celery import bootsteps
from redis import RedisError

from memory.api.health import NothingSeen, open_broker

_KEY = "engram.workers"
_EVERY_SECONDS = 5.0
_GONE_AFTER_SECONDS = 20.0


class Presence(bootsteps.StartStopStep):
    """A part of a worker's consumer: begins anew with each connection to the broker, as the timer does."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._timer: Any = None

    def start(self, parent: Any) -> None:
        """Note it now, and again and again."""
        note_presence(parent.hostname)
        self._timer = parent.timer.call_repeatedly(_EVERY_SECONDS, note_presence, (parent.hostname,))

    def stop(self, parent: Any) -> None:
        """Leave no sign of life behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            forget_presence(parent.hostname)


def note_presence(worker: str) -> None:
    """Note that a worker lives; a broker that is away will see it the next time."""
    try:
        with open_broker() as broker:
            broker.zadd(_KEY, {worker: broker.time()[0]})
    except RedisError:
        return


def forget_presence(worker: str) -> None:
    """Note that a worker has ended."""
    try:
        with open_broker() as broker:
            broker.zrem(_KEY, worker)
    except RedisError:
        return


def count_workers() -> int:
    """Count the workers that were seen lately, by the broker's clock, and forget the others."""
    with open_broker() as broker:
        broker.zremrangebyscore(_KEY, "-inf", broker.time()[0] - _GONE_AFTER_SECONDS)
        return int(broker.zcard(_KEY))


def see_worker() -> None:
    """Raise NothingSeen where no worker lives."""
    if not count_workers():
        raise NothingSeen("no worker")
