"""A plugin of pytest: loaded, it lets the tests here write what they would compare (see __main__.py)."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--files", action="store_true", help="also write the export and the backup anew")
