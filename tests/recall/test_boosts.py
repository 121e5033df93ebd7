"""What the policy state of an episode adds to its score."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import Settings

from memory.domain.policy import Policy
from memory.models import Workspace
from memory.recall.query import RecallProfile
from tests import factories
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def set_lifecycle(settings: Settings, **given: Any) -> None:
    policy: Policy = settings.POLICY
    settings.POLICY = replace(policy, lifecycle=replace(policy.lifecycle, **given))


@pytest.mark.parametrize("profile", list(RecallProfile))
@pytest.mark.parametrize(
    ("given", "boost"),
    [
        ({"lifecycle_state": "active"}, 0.05),
        ({"lifecycle_state": "validated"}, 0.03),
        ({"lifecycle_state": "candidate"}, -0.01),
        ({"lifecycle_state": "stale"}, -0.06),
        ({"lifecycle_state": "archived"}, -0.08),
        ({"verification": "disputed"}, -0.12),
        ({"lifecycle_state": "active", "verification": "disputed"}, 0.05 - 0.12),
        ({"verification": "user_confirmed"}, 0.0),
        ({}, 0.0),
    ],
)
def test_each_state_moves_the_score(
    workspace: Workspace, settings: Settings, given: dict[str, str], boost: float, profile: RecallProfile
) -> None:
    """L14: in either profile, and only while the policy is on; the X-ray names it."""
    remembered("Mara drinks tea.", workspace=workspace, **given)
    for number in range(5):
        remembered(f"The gate was painted {number} times.", workspace=workspace)
    moved = ask("Mara's tea", workspace=workspace, profile=profile, is_explained=True).results[0]
    set_lifecycle(settings, enabled=False)
    plain = ask("Mara's tea", workspace=workspace, profile=profile, is_explained=True).results[0]
    assert moved.id == plain.id
    assert moved.score == pytest.approx(plain.score + boost)
    assert moved.explain is not None
    assert moved.explain.components.get("boost", 0.0) == pytest.approx(boost)
    assert plain.explain is not None
    assert "boost" not in plain.explain.components


def test_what_is_stale_or_archived_can_be_left_out(workspace: Workspace, settings: Settings) -> None:
    """L14: an option, and off; beliefs and what has no state are untouched."""
    states = {state: remembered(f"Tea is {state or 'plain'}.", workspace=workspace, lifecycle_state=state).pk
              for state in ("", "active", "stale", "archived")}  # fmt: skip
    belief = believed("Tea is good.", workspace=workspace)
    assert ids(ask("tea", workspace=workspace)) == {*states.values(), belief.pk}
    set_lifecycle(settings, hides_stale=True)
    assert ids(ask("tea", workspace=workspace)) == {states[""], states["active"], belief.pk}
