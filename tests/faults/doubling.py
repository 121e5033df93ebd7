"""The application as workers see it when a broker delivers every message twice (`celery -A tests.faults.doubling`)."""

from typing import Any

from beliefsite.celery import app

__all__ = ["app"]

_send_once = app.amqp.send_task_message


def _send_twice(*args: Any, **kwargs: Any) -> Any:
    """Publish the same message, under the same task id, two times."""
    _send_once(*args, **kwargs)
    return _send_once(*args, **kwargs)


app.amqp.send_task_message = _send_twice  # type: ignore[misc]  # a cached property, replaced on purpose
