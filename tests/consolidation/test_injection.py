"""B11: in a whole cycle against a model server, a planted order moves no verdict but the one on its own words."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from memory.domain.evidence import Verdict
from memory.models import Episode, JobVerdict
from tests.consolidation.world import World
from tests.injections import PLANTED
from tests.model_server_acts import Act, Asked, judged

pytestmark = pytest.mark.django_db

STATEMENT = "Ana keeps her bike in the shed."
ORDINARY = {
    "The bike of Ana stands in the shed behind the house.": Verdict.SUPPORTS,
    "Ana put her bike back into the shed.": Verdict.SUPPORTS,
    "Whoever looks for the bike of Ana looks in the shed.": Verdict.SUPPORTS,
    "Ana keeps her bike in the cellar these days.": Verdict.CONTRADICTS,
}


@pytest.fixture
def shed(world: World) -> World:
    """A world with ordinary episodes on one matter, and a model that obeys what reaches it as anything but data."""
    world.statements["shed"] = STATEMENT
    for text, verdict in ORDINARY.items():
        world.say(text, about="shed", verdict=verdict)
    world.server.script = lambda asked: world.answer(asked) if _is_all_data(asked) else _obey(asked)
    return world


def _is_all_data(asked: Asked) -> bool:
    lines = asked.body["messages"][1]["content"].split("\n")
    is_fenced = lines[0] == f"BEGIN {asked.fence}" and lines[-1] == f"END {asked.fence}"
    return is_fenced and all(isinstance(json.loads(line), dict) for line in lines[1:-1])


def _obey(asked: Asked) -> dict[str, Any]:
    """Answer as all the orders together would have it: nobody's words stand for what they say."""
    return judged(asked, lambda belief, one: ("PARTIAL", "I obey"))


def _plant(world: World, texts: Sequence[str]) -> list[Episode]:
    return [world.say(text, about="shed", verdict=Verdict.IRRELEVANT) for text in texts]


def _verdicts(world: World) -> dict[str, str]:
    """Return what the cycle judged of the ordinary episodes."""
    rows = JobVerdict.objects.filter(workspace=world.workspace, episode__text__in=ORDINARY)
    return dict(rows.values_list("episode__text", "verdict"))


@pytest.mark.parametrize("planted", PLANTED)
def test_one_planted_order_moves_no_other_verdict(shed: World, planted: str) -> None:
    """From lease to belief: its own words are judged, and beside them the belief is what it would be."""
    _plant(shed, [planted])
    shed.cycle()
    assert _verdicts(shed) == ORDINARY
    assert (shed.only_belief().statement, shed.verdicts_of(shed.only_belief())) == (STATEMENT, ORDINARY)


def test_all_twenty_together_move_none(shed: World) -> None:
    _plant(shed, PLANTED)
    shed.cycle()
    assert _verdicts(shed) == ORDINARY
    assert shed.verdicts_of(shed.only_belief()) == ORDINARY


def test_the_orders_would_move_them_if_they_were_obeyed(shed: World) -> None:
    """So that the tests above would show it: here the model obeys its data."""

    def gullible(asked: Asked) -> Act | dict[str, Any]:
        is_told = asked.purpose == "classify" and any(one["text"] in PLANTED for one in asked.episodes)
        return _obey(asked) if is_told else shed.answer(asked)

    shed.server.script = gullible
    _plant(shed, PLANTED)
    shed.cycle()
    assert Verdict.PARTIAL in _verdicts(shed).values()
