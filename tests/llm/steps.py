"""A step of consolidation, as the tests of model calls play it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory.llm.call_log import CallBudget, CallScope
from memory.llm.replies import Verdicts
from memory.llm.runner import FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.llm.types import LanguageModel
from tests.llm.asking import classification


@dataclass
class Step:
    """A step of consolidation that keeps what it is given."""

    scope: CallScope
    model: LanguageModel
    answers: list[ModelAnswer] = field(default_factory=list)
    fence: Callable[[], bool] = lambda: True

    def ask(self, *asks: ModelRequest, **given: Any) -> list[FailedRequest]:
        """Run the asks with a small budget."""
        limits = {"attempts": 6, "max_parallel": 4, "call_timeout": 2.0, "seconds": 30.0, "margin": 0.5} | given
        deadline = time.monotonic() + limits.pop("seconds")
        budget = CallBudget(deadline=deadline, **limits)
        return run_requests(
            asks=asks, scope=self.scope, budget=budget, model=self.model, store=self.answers.extend, fence=self.fence
        )

    def judged(self) -> list[str]:
        """Return the ids of the episodes that got a verdict, as often as they got one."""
        replies = [answer.reply for answer in self.answers if isinstance(answer.reply, Verdicts)]
        return sorted(verdict.id for reply in replies for verdict in reply.verdicts)


def batch(*texts: str, key: str = "belief") -> ModelRequest:
    """Ask for verdicts on a few texts."""
    return ModelRequest(key=key, request=classification(*texts))
