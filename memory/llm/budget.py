"""What one step may spend on model calls, and how it says that it must stop."""

import time
from dataclasses import dataclass
from typing import Self

from memory.domain.policy import BudgetPolicy
from memory.ending import is_ending

TOKENS_ARE_SPENT = "the workspace's tokens of this day are spent"
MONEY_IS_SPENT = "the workspace's money of this day is spent"
RECALL_IS_SPENT = "the tokens of this day for recall's embeddings are spent"
CAP_REASONS = {TOKENS_ARE_SPENT, MONEY_IS_SPENT}


class MustWait(Exception):
    """A model asks for more patience than a step has; the caller gives its lease back for that long."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__(f"wait {seconds:.1f} s")
        self.seconds = seconds


class OutOfBudget(Exception):
    """No further call can be afforded; the message says why.

    `is_slow`: a call before it was not answered in its time.
    """

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_slow = is_slow


class DailyCapReached(OutOfBudget):
    """The workspace has spent the tokens or the money that it may spend in a day: waiting within a cycle is no use."""


class LeaseLost(Exception):
    """Somebody else has taken the work over; what was in flight is in the ledger for them."""


@dataclass(slots=True, kw_only=True)
class CallBudget:
    """Time and further attempts of one step, shared by all its asks; `deadline` is a reading of time.monotonic()."""

    deadline: float
    call_timeout: float
    attempts: int
    max_parallel: int
    wait_limit: float = 5.0
    margin: float = 1.0

    @classmethod
    def of_step(cls, *, seconds: float, policy: BudgetPolicy) -> Self:
        """Return the budget of a step that has so many seconds."""
        return cls(
            deadline=time.monotonic() + seconds,
            call_timeout=policy.call_seconds,
            attempts=policy.call_attempts,
            max_parallel=policy.calls_in_flight,
            wait_limit=policy.wait_seconds,
            margin=policy.margin_seconds,
        )

    def seconds_left(self) -> float:
        """Return the seconds to the deadline, negative after it."""
        return self.deadline - time.monotonic()

    def allows_call(self, *, after: float = 0.0) -> bool:
        """Tell whether a call begun after so many seconds would end before the deadline, and the process goes on."""
        return not is_ending() and self.seconds_left() - after > self.call_timeout + self.margin

    def take_attempt(self) -> bool:
        """Spend one further attempt; return False where none is left."""
        if self.attempts < 1:
            return False
        self.attempts -= 1
        return True

    def give_attempt(self) -> None:
        """Return an attempt that brought the work forward."""
        self.attempts += 1
