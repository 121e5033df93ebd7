"""Log lines without secrets, whatever an error or a request line repeats."""

from typing import Any

from memory.redaction.redact import redact

_REQUEST = "request"  # the method and address of a call, as the middleware names it
_OF_THE_LINE = {"level", "logger", "timestamp"}  # what code alone says, and the clock


def redact_event(logger: Any, method: str, event: Any) -> Any:
    """Take secrets out of every text of a log event; the last step before it is written (structlog's signature).

    Of a call's address the query goes altogether: it has people's words in it, in an encoding that hides them.
    """
    if isinstance(event.get(_REQUEST), str):
        event[_REQUEST] = event[_REQUEST].partition("?")[0]
    return {
        name: redact(value).text if isinstance(value, str) and name not in _OF_THE_LINE else value
        for name, value in event.items()
    }
