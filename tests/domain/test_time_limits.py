"""Times hold each other, and a task's limits hold them all (E6, B9)."""

from dataclasses import replace

import pytest

from memory.domain.policy import Policy
from memory.domain.time_limits import find_too_short, holds_a_call, step_seconds, task_limits

USUAL = Policy()


def changed(policy: Policy = USUAL, /, **stages: dict[str, float]) -> Policy:
    """Return a policy with other numbers: changed(budget={"call_seconds": 60.0})."""
    return replace(policy, **{stage: replace(getattr(policy, stage), **given) for stage, given in stages.items()})


def too_short(policy: Policy) -> set[str]:
    return {short.setting for short in find_too_short(policy=policy)}


def test_the_usual_times_hold_each_other() -> None:
    """E6, B9: and the limits of tasks are what docs/operations/limits.md says."""
    limits = task_limits(policy=USUAL)
    assert too_short(USUAL) == set()
    assert (limits.soft, limits.hard, limits.redelivery) == (110, 130, 180)


@pytest.mark.parametrize(
    ("stage", "constant", "seconds", "setting"),
    [
        ("budget", "working_seconds", 11.0, "ENGRAM_BUDGET_WORKING_SECONDS"),
        ("budget", "attempt_seconds", 11.0, "ENGRAM_BUDGET_ATTEMPT_SECONDS"),
        ("extraction", "seconds", 31.0, "ENGRAM_EXTRACTION_SECONDS"),
        ("contradiction", "check_seconds", 11.0, "ENGRAM_CONTRADICTION_CHECK_SECONDS"),
    ],
)
def test_a_time_that_holds_no_call_is_named(stage: str, constant: str, seconds: float, setting: str) -> None:
    """E6, B9, F2: a call takes 10 s, one that reads 30, and its margin 1: so many are too few."""
    assert too_short(changed(**{stage: {constant: seconds}})) == {setting}
    assert too_short(changed(**{stage: {constant: seconds + 0.1}})) == set()


def test_a_slow_model_needs_other_times_too() -> None:
    """E6, B9: of 60 s a call, what is left as it was and holds none is named at once."""
    slow = changed(budget={"call_seconds": 60.0})
    assert too_short(slow) == {"ENGRAM_BUDGET_ATTEMPT_SECONDS", "ENGRAM_EXTRACTION_SECONDS"}
    mended = changed(slow, budget={"attempt_seconds": 130.0}, extraction={"seconds": 130.0})
    assert too_short(mended) == set()


@pytest.mark.parametrize("call", [0.5, 10.0, 60.0, 600.0])
@pytest.mark.parametrize("last_call", [5.0, 60.0, 300.0])
@pytest.mark.parametrize("reading", [1.0, 45.0, 1000.0])
def test_whatever_the_times_a_task_comes_to_its_own_end(call: float, last_call: float, reading: float) -> None:
    """E6, B9: a call lies within its step, a step within the soft limit, that within the hard one, and so on."""
    policy = changed(budget={"call_seconds": call, "last_call_seconds": last_call}, extraction={"seconds": reading})
    limits = task_limits(policy=policy)
    step = step_seconds(budget=policy.budget)
    assert holds_a_call(seconds=step, budget=policy.budget)
    assert step + call < limits.soft  # remembering embeds what it read
    assert 2 * reading < limits.soft  # turns are read, and summed up
    assert limits.soft < limits.hard < limits.redelivery


@pytest.mark.parametrize(
    ("stage", "given", "setting"),
    [
        ("budget", {"last_call_seconds": 500.0}, "ENGRAM_BUDGET_LAST_CALL_SECONDS"),
        ("extraction", {"seconds": 500.0}, "ENGRAM_EXTRACTION_SECONDS"),
        ("maintenance", {"seconds": 500.0}, "ENGRAM_MAINTENANCE_SECONDS"),
        ("graph", {"seconds": 500.0}, "ENGRAM_GRAPH_SECONDS"),
    ],
)
def test_the_longest_task_names_its_setting(stage: str, given: dict[str, float], setting: str) -> None:
    """E6: what is to be lowered is known."""
    assert setting in task_limits(policy=changed(**{stage: given})).longest.settings
