"""How numbered statements are planned."""

import pytest

from memory.models.numbered import run_numbered
from memory.models.search_time import TimedSearch

pytestmark = pytest.mark.django_db


def test_what_is_not_kept_is_planned_for_its_values() -> None:
    """B17: a search's transaction plans for any values, and what is not prepared would be planned so, too."""
    statement = "SELECT %(number)s::int, current_setting('plan_cache_mode')"

    def modes() -> list[tuple[int, str]]:
        return [
            run_numbered(statement=statement, parameters={"number": number}, keeps_plan=keeps_plan).fetchall()[0]
            for number, keeps_plan in enumerate((True, False, True))
        ]

    with TimedSearch(effort=64) as timed:
        found = timed.run(modes, seconds=5.0)
    assert found == [(0, "force_generic_plan"), (1, "force_custom_plan"), (2, "force_generic_plan")]
