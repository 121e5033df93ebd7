"""Is the database away for a while? Who asks tells the caller to come back, rather than that something is broken."""

from django.db import InterfaceError, OperationalError

RETRY_SECONDS = 5  # the embedded database is started again within one; a recovery takes a few
AWAY = "The database is starting, recovering or full; try again after the time in Retry-After."

# Lost or refused connections, no room or no memory, an operator's or a crash's end, a start, a disk that fails.
_CLASSES = ("08", "53", "58")
_STATES = ("57P01", "57P02", "57P03")


def is_outage(error: BaseException | None) -> bool:
    """Tell whether an error came of a database that is away, and not of what was asked of it."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)  # none where there was no server to say anything
    return state is None or state in _STATES or state[:2] in _CLASSES
