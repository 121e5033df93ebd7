"""The time limits that follow from the policy: what holds a model call, and how long a task may take (B9)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from memory.domain.policy import Policy
from memory.domain.policy_consolidation import BudgetPolicy

CALL_SECONDS = "ENGRAM_BUDGET_CALL_SECONDS"
ANSWER_SECONDS = "ENGRAM_REMEMBER_ANSWER_SECONDS"
SPARE_SECONDS = 20.0  # of a task beside its calls, and again between its soft limit and its hard one
_REDELIVERY_SECONDS = 50.0  # from a task's hard limit to where its message comes again


@dataclass(frozen=True, slots=True, kw_only=True)
class TooShort:
    """A time that leaves no room for a model call: nothing that has only so much ever makes one."""

    setting: str
    seconds: float
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTime:
    """How long one kind of task may take over its calls, and the settings that this comes of."""

    task: str
    seconds: float
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLimits:
    """Seconds after which any task is ended softly, and then hard, and after which its message comes again at best."""

    soft: int
    hard: int
    redelivery: int
    longest: TaskTime


def room_for_a_call(*, budget: BudgetPolicy) -> float:
    """Return the seconds of which a step must have more to begin a call: the call's longest, and the margin."""
    return budget.call_seconds + budget.margin_seconds


def holds_a_call(*, seconds: float, budget: BudgetPolicy) -> bool:
    """Tell whether so much time is enough for a model call."""
    return seconds > room_for_a_call(budget=budget)


def step_seconds(*, budget: BudgetPolicy) -> float:
    """Return how long a step of a cycle may take: its last call begins in time, and has a call's longest."""
    return budget.last_call_seconds + budget.call_seconds


_MOST_DOUBLINGS = 30


def cooldown(*, failures: int, budget: BudgetPolicy) -> timedelta:
    """Return how long to rest after a failure that came after so many in a row: twice as long each time."""
    doubled: timedelta = timedelta(minutes=budget.cooldown_minutes) * 2 ** min(failures, _MOST_DOUBLINGS)
    return min(doubled, timedelta(hours=budget.cooldown_hours))


def find_too_short(*, policy: Policy) -> list[TooShort]:
    """List the times that hold no call, though calls are what they are for; a call that reads may be longer."""
    reading = replace(policy.budget, call_seconds=max(policy.budget.call_seconds, policy.reading.seconds))
    asked = [(time, policy.budget) for time in _times_of_calls(policy)]
    asked += [(time, reading) for time in _times_of_readings(policy)]
    return [time for time, budget in asked if not holds_a_call(seconds=time.seconds, budget=budget)]


def _times_of_readings(policy: Policy) -> Iterator[TooShort]:
    yield TooShort(setting="ENGRAM_EXTRACTION_SECONDS", seconds=policy.extraction.seconds, who="the reading of turns")
    seconds = step_seconds(budget=policy.budget)
    yield TooShort(setting="ENGRAM_BUDGET_LAST_CALL_SECONDS", seconds=seconds, who="a reading in a cycle")


def _times_of_calls(policy: Policy) -> Iterator[TooShort]:
    budget = policy.budget
    yield TooShort(setting="ENGRAM_BUDGET_WORKING_SECONDS", seconds=budget.working_seconds, who="a cycle")
    yield TooShort(
        setting="ENGRAM_BUDGET_ATTEMPT_SECONDS",
        seconds=budget.attempt_seconds,
        who="a cycle that another worker took over",
    )
    yield TooShort(
        setting="ENGRAM_CONTRADICTION_CHECK_SECONDS",
        seconds=policy.contradiction.check_seconds,
        who="a look for contradictions",
    )


def task_limits(*, policy: Policy) -> TaskLimits:
    """Return the limits of tasks in whole seconds: whatever its own times allow a task, it comes to its own end."""
    longest = max(_task_times(policy), key=lambda task: task.seconds)
    soft = longest.seconds + SPARE_SECONDS
    hard = soft + SPARE_SECONDS
    return TaskLimits(
        soft=math.ceil(soft), hard=math.ceil(hard), redelivery=math.ceil(hard + _REDELIVERY_SECONDS), longest=longest
    )


def _task_times(policy: Policy) -> Iterator[TaskTime]:
    """Yield each kind of task that takes as long as a setting says."""
    call, budget = (CALL_SECONDS, "ENGRAM_BUDGET_LAST_CALL_SECONDS"), policy.budget
    yield TaskTime(task="a step of a cycle", seconds=step_seconds(budget=budget), settings=call)
    # What was read out of a text is embedded in one more call.
    yield TaskTime(task="remembering", seconds=step_seconds(budget=budget) + budget.call_seconds, settings=call)
    # Turns are read, then what was read is summed up.
    yield TaskTime(
        task="the reading of turns", seconds=2 * policy.extraction.seconds, settings=("ENGRAM_EXTRACTION_SECONDS",)
    )
    yield TaskTime(task="maintenance", seconds=policy.maintenance.seconds, settings=("ENGRAM_MAINTENANCE_SECONDS",))
    yield TaskTime(task="linking", seconds=policy.graph.seconds, settings=("ENGRAM_GRAPH_SECONDS",))
