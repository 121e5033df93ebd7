"""Fixtures of the whole suite."""

import pytest


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Bring the suite's database and broker up before the test database is made."""
    from beliefsite.services import ensure_services

    ensure_services()
