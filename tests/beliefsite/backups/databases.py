"""Databases of their own on the suite's server: made, worked in, and dropped."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection

EMPTY = "template0"


@contextmanager
def _maintenance() -> Iterator[psycopg.Connection[Any]]:
    given = connection.settings_dict
    with psycopg.connect(
        host=given["HOST"], port=given["PORT"], user=given["USER"], password=given["PASSWORD"], dbname="postgres",
        autocommit=True,
    ) as opened:  # fmt: skip
        yield opened


def create_database(name: str, *, like: str) -> None:
    """Make a database that is a copy of another one, in the place of what is there by its name."""
    connection.close()
    with _maintenance() as opened:
        opened.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        opened.execute(f'CREATE DATABASE "{name}" TEMPLATE "{like}"')


def drop_databases(*names: str) -> None:
    """Drop databases, whoever is in them."""
    with _maintenance() as opened:
        for name in names:
            opened.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def inside_database(name: str) -> Iterator[None]:
    """Let Django use a database."""
    own, connection.settings_dict["NAME"] = connection.settings_dict["NAME"], name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = own
