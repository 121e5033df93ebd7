"""A workspace of one person who tells things, read by the rules of this machine: no server anywhere."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memory.models import Belief, Cycle, Episode, Evidence, Workspace
from tests import factories
from tests.consolidation.inline import run_cycle

DAY = timedelta(days=1)


@dataclass(slots=True, kw_only=True)
class Teller:
    """Mara, and a clock that goes on with every cycle."""

    workspace: Workspace
    now: datetime = factories.NOW

    def tell(self, *texts: str, **given: Any) -> list[Episode]:
        """Store what Mara says, each from an origin of its own."""
        fields: dict[str, Any] = {
            "source": "human", "user": "mara", "language": "en", "created_at": self.now, "occurred_at": self.now,
        }  # fmt: skip
        return [factories.episode(workspace=self.workspace, text=text, **fields | given) for text in texts]

    def cycle(self, *texts: str, after: timedelta = DAY, before_gate: Callable[[], object] = lambda: None) -> Cycle:
        """Let time pass, tell something, and run a cycle; something else may happen before its gate."""
        self.now += after
        self.tell(*texts)
        return run_cycle(self.workspace, self.now, before_gate=before_gate)

    def count_against(self, word: str, *, by: str) -> None:
        """Give the belief with a word what an episode says against it, of no cycle."""
        Evidence.objects.create(
            workspace=self.workspace,
            belief=self.belief(word),
            episode=Episode.objects.get(workspace=self.workspace, text=by),
            verdict="CONTRADICTS",
            basis="model",
            created_at=self.now,
        )

    def belief(self, word: str) -> Belief:
        """Return the one belief whose statement has a word."""
        return Belief.objects.get(workspace=self.workspace, statement__contains=word)

    def stands(self) -> dict[str, Any]:
        """Return what is believed and on which claims, without the keys of rows."""
        columns = (
            "statement", "subject", "predicate", "context", "status", "alpha", "beta", "evidence_count",
            "peak_confidence", "prediction_error", "storage_strength", "last_reinforced_at", "archive_due_at",
        )  # fmt: skip
        rows = Evidence.objects.filter(workspace=self.workspace).order_by("belief", "episode")
        return {
            "beliefs": list(Belief.objects.filter(workspace=self.workspace).order_by("pk").values("pk", *columns)),
            "evidence": list(
                rows.values_list("belief", "episode", "verdict", "base_weight", "basis", "claim", "cycle")
            ),
        }
