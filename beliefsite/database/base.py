"""The database backend that settings name: Django looks for a `DatabaseWrapper` in a module of this name."""

import select

import psycopg
from django.db.backends.postgresql import base
from psycopg.pq import ConnStatus


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL as Django knows it."""

    def is_usable(self) -> bool:
        """Tell whether the connection is alive; the server is asked only where its socket has something to say.

        Before its first statement every request checks this. A server that has ended, or ended this connection, has
        closed it, and that can be read; where nothing is to be read, nothing has happened.
        """
        return _is_quiet(self.connection) or super().is_usable()


def _is_quiet(connection: "psycopg.Connection[object] | None") -> bool:
    """Tell whether a connection is open, as far as this end knows, and nothing has come that nobody waits for."""
    if connection is None or connection.pgconn.status != ConnStatus.OK:
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
