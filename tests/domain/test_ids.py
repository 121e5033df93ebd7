"""An id tells what kind of thing it names."""

import re
from collections.abc import Callable

import pytest

from memory.domain.identity import IdKind, id_pattern, is_episode_id
from memory.models.fields import new_belief_id, new_cycle_id, new_episode_id


@pytest.mark.parametrize(
    ("drawn", "kind"), [(new_episode_id, IdKind.EPISODE), (new_belief_id, IdKind.BELIEF), (new_cycle_id, IdKind.CYCLE)]
)
def test_an_id_fits_the_pattern_of_its_kind_alone(drawn: Callable[[], str], kind: IdKind) -> None:
    fitting = [other for other in IdKind if re.fullmatch(id_pattern(other), drawn())]
    assert (fitting, len(drawn())) == ([kind], 15)


def test_a_pattern_takes_several_kinds() -> None:
    pattern = re.compile(id_pattern(IdKind.EPISODE, IdKind.BELIEF))
    ids = [new_episode_id(), new_belief_id(), new_cycle_id(), f"x{new_belief_id()}", f"{new_belief_id()}0"]
    assert [bool(pattern.fullmatch(one)) for one in ids] == [True, True, False, False, False]


def test_a_memory_is_an_episode_by_its_id() -> None:
    assert (is_episode_id(new_episode_id()), is_episode_id(new_belief_id())) == (True, False)
