"""What tests of recall begin with."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import psycopg
import pytest
from django.db import connection
from psycopg import sql
from pytest_django import Settings


@pytest.fixture
def with_numbers(settings: Settings) -> Callable[..., None]:
    """Change numbers of recall's policy."""

    def change(**numbers: float) -> None:
        settings.POLICY = replace(settings.POLICY, recall=replace(settings.POLICY.recall, **numbers))

    return change


@pytest.fixture
def closed() -> Callable[..., AbstractContextManager[None]]:
    """Give a way to keep everybody else out of some tables, so that a statement that asks one waits."""

    @contextmanager
    def close(*tables: str) -> Iterator[None]:
        facts = connection.settings_dict
        with psycopg.connect(host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"]) as other:
            for table in tables:
                other.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(table)))
            yield
            other.rollback()

    return close
