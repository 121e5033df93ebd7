"""What becomes of the database connection while a model thinks."""

from django.conf import settings
from django.db import connection


def rest_connection() -> None:
    """Give the connection back before a wait, or keep it, to be looked at when it is next used.

    A server may restart while a model thinks: the next statement on a kept connection asks first whether it is alive,
    and opens another where it is not. Inside a transaction there is no choice.
    """
    if connection.in_atomic_block:
        return
    if settings.ENGRAM_KEEP_CONNECTIONS:
        connection.close_if_unusable_or_obsolete()
    else:
        connection.close()
