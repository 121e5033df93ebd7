"""The database backend that settings name: Django looks for a `DatabaseWrapper` in a module of this name."""

import select

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.features import DatabaseFeatures as PostgresFeatures
from psycopg.pq import ConnStatus, TransactionStatus


class DatabaseFeatures(PostgresFeatures):
    """What the server must be: a search asks for any value of a group, which older ones do not know."""

    minimum_database_version = (16,)


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL as Django knows it."""

    features_class = DatabaseFeatures

    def is_usable(self) -> bool:
        """Tell whether the connection is alive; the server is asked only where that cannot be seen from here.

        Before its first statement every request checks this. A server that has ended, or ended this connection, has
        closed it, and that can be read; where nothing is to be read, nothing has happened. A host that vanished without
        a word shows itself at the first statement only.
        """
        return _is_quiet(self.connection) or super().is_usable()


def _is_quiet(connection: "psycopg.Connection[object] | None") -> bool:
    """Tell whether a connection is open and free, as far as this end knows, and nothing has come unasked."""
    if connection is None or connection.pgconn.status != ConnStatus.OK:
        return False
    if connection.pgconn.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.INTRANS):
        return False
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return not poll.poll(0)
