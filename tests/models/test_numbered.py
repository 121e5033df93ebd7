"""How numbered statements are planned."""

import pytest
from django.db import DataError

from memory.search.prepared import Constant, TimedSearch, run_prepared

pytestmark = pytest.mark.django_db


def test_what_is_not_kept_is_planned_for_its_values() -> None:
    """B17: a search's transaction plans for any values, and what is not prepared would be planned so, too."""
    statement = "SELECT %(number)s::int, current_setting('plan_cache_mode')"

    def modes() -> list[tuple[int, str]]:
        return [
            run_prepared(statement=statement, parameters={"number": number}, keeps_plan=keeps_plan).fetchall()[0]
            for number, keeps_plan in enumerate((True, False, True))
        ]

    with TimedSearch(effort=64) as timed:
        found = timed.run(modes, seconds=5.0)
    assert found == [(0, "force_generic_plan"), (1, "force_custom_plan"), (2, "force_generic_plan")]


@pytest.mark.parametrize("keeps_plan", [True, False])
def test_what_the_database_refuses_is_an_error_of_djangos(keeps_plan: bool) -> None:
    """Whoever tries again after an outage or a deadlock knows them by that."""
    with pytest.raises(DataError, match="division by zero"):
        run_prepared(statement="SELECT 1 / %(number)s::int", parameters={"number": 0}, keeps_plan=keeps_plan)


def test_constants_are_part_of_the_statement() -> None:
    constants: dict[str, Constant] = {"ids": (1, 2), "nobody": (), "number": 3, "name": "it's %(number)s"}
    row = run_prepared(
        statement="SELECT %(ids)s, %(nobody)s, %(number)s, %(name)s, %(given)s::text",
        parameters={"given": "$1"},
        keeps_plan=True,
        constants=constants,
    ).fetchone()
    assert row == ([1, 2], [], 3, "it's %(number)s", "$1")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "text"),
        (["plain", "", "NULL", 'a "quoted" {one}, with \\ and \n', "Ελένη"], "text"),
        ([1, -2, 2**40], "bigint"),
        ([0.1, -1e300, 1 / 3, float("inf")], "float8"),
        ([None, "nobody"], "text"),
    ],
)
def test_a_list_arrives_as_it_was(values: list[object], kind: str) -> None:
    statement = f"SELECT %(values)s::{kind}[], cardinality(%(values)s::{kind}[])"
    row = run_prepared(statement=statement, parameters={"values": values}, keeps_plan=True).fetchone()
    assert row == (values, len(values))
