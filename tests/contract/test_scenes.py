"""Every request of every scene is answered as it was recorded."""

import pytest

from tests.contract.keeping import Keeper
from tests.contract.scenes import Scene, all_scenes, play


@pytest.mark.django_db
@pytest.mark.parametrize("scene", all_scenes(), ids=lambda scene: scene.name)
def test_answers_are_as_they_were_recorded(scene: Scene, keeper: Keeper) -> None:
    answers = play(scene)
    numbered = [{**answer, "request": f"{n}. {answer['request']}"} for n, answer in enumerate(answers, 1)]
    keeper.keep(scene.answers, numbered)
