"""docs/settings.md lists every variable, as the code has it; .env.example those that people look for."""

import json
import re

import pytest

from memory.environment import Variable, iter_variables, known_variables
from tests.contract.keeping import RECORDED
from tests.docs import settings_table


def test_the_page_is_current() -> None:
    assert settings_table.PAGE.read_text() == settings_table.render()


def test_the_page_lists_every_variable_once() -> None:
    """B24: a stranger finds each variable where the page is searched."""
    listed = re.findall(r"^\| `([A-Z_0-9]+)` \| [^|]+ \| [^|]+ \|", settings_table.render(), re.MULTILINE)

    assert sorted(listed) == sorted(known_variables())


@pytest.mark.parametrize("variable", list(iter_variables()), ids=lambda variable: variable.name)
def test_the_default_that_is_told_is_the_one_that_holds(variable: Variable) -> None:
    """Where settings keep a text as it stands, and where what holds depends on nothing else."""
    held = json.loads((RECORDED / "settings.json").read_text())["variables"][variable.name]["default"]
    told = variable.example if variable.default is None else variable.default

    if isinstance(held, str):
        assert told == held
    elif isinstance(held, bool) and told:
        assert told in ({"1", "on"} if held else {"0"})
    elif isinstance(held, dict):
        assert json.loads(told) == held
