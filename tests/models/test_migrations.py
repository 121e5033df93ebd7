"""The schema is made by migrations, and taken away again."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from memory.models import Belief
from memory.search.prepared import _halfvec_type
from tests import factories

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def migrated_again() -> Iterator[None]:
    yield
    _halfvec_type.cache_clear()  # the extension was dropped and made again
    connection.close()
    call_command("migrate", verbosity=0)


def ours() -> list[str]:
    return [name for name in connection.introspection.table_names() if name.startswith("memory_")]


def test_the_schema_goes_and_comes_back(migrated_again: None) -> None:
    call_command("migrate", "memory", "zero", verbosity=0)
    assert ours() == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_class WHERE relname = 'memory_episode_number'")
        assert cursor.fetchone() == (0,)

    call_command("migrate", verbosity=0)
    _halfvec_type.cache_clear()
    connection.close()
    factories.belief(workspace=factories.workspace(), statement="The mill turns.")
    assert Belief.objects.get().statement == "The mill turns."
