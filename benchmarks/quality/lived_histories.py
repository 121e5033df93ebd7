"""Live simulated histories through the real pipeline, and read its beliefs at sampled times.

Episodes go through the ingest, cycles through every step of consolidation with the database beneath; only the model
behind the client is scripted: a verdict is what the episode says of the statement, a new statement is what most of the
episodes shown support. Vectors are dictated, too: texts about one habit are alike, those of one context more so.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.quality.histories import SPAN_DAYS, STATEMENTS, Claim, History, Said, judge, state_majority
from benchmarks.quality.reliability import Sample
from memory.ingest.arrival import Arrival, Stored
from memory.ingest.episodes import take_episodes
from memory.models import Belief, Workspace
from tests.consolidation.inline import run_cycle
from tests.consolidation.world import Directions
from tests.model_server import Asked, ModelServer

BEGIN = datetime(2026, 1, 1, 8, tzinfo=UTC)
CYCLE_DAYS = 7.0
SAMPLED_DAYS = 20

# Cosines to the habit and to a context. Two texts of one context have .97, of two contexts .77, and one that names its
# context has .85 to one that names none; what says yes is as near to what says no, as with every small model.
_OF_HABIT, _OF_HABIT_IN_CONTEXT, _OF_CONTEXT, _OF_BOTH = 0.97, 0.88, 0.44, 0.31
_CLAIMS = (*STATEMENTS, *(Claim(does=does, context=one, elsewhere=True) for does in (True, False) for one in (0, 1)))


class ScriptedModel:
    """Answers about one history as a model would that reads its texts without error."""

    def __init__(self, *, history: History) -> None:
        self.history = history
        self.directions = Directions()
        self.claims = {history.word(claim): claim for claim in _CLAIMS}
        for text, claim in self.claims.items():
            self.directions.place(text, _matters(claim))

    def serve_through(self, server: ModelServer) -> None:
        """Let a server answer for this model from now on."""
        server.embed, server.script = self.directions, self.answer

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        """Answer one request; the server's own good sense answers for purposes that are not known here."""
        if asked.purpose == "classify":
            return {"verdicts": [self._judge(asked.items[0]["belief"], episode) for episode in asked.episodes]}
        return self._state(asked.episodes, STATEMENTS) if asked.purpose == "synthesize" else None

    def _judge(self, statement: str, episode: dict[str, str]) -> dict[str, str]:
        verdict = judge(said=self.claims[episode["text"]], statement=self.claims[statement])
        return {"id": episode["id"], "verdict": verdict.value, "reason": "as scripted"}

    def _state(self, episodes: Sequence[dict[str, str]], among: Sequence[Claim]) -> dict[str, str]:
        claim = state_majority((self.claims[episode["text"]] for episode in episodes), among=among)
        habit = self.history.habit
        return {
            "statement": self.history.word(claim),
            "subject": habit.person,
            "predicate": habit.does if claim.does else habit.does_not,
            "context": "general" if claim.context is None else habit.contexts[claim.context],
            "timeframe": "current",
        }


def _matters(claim: Claim) -> dict[str, float]:
    if claim.context is None:
        return {"habit": _OF_HABIT}
    if claim.elsewhere:
        return {"habit": _OF_HABIT_IN_CONTEXT, "context 0": _OF_BOTH, "context 1": _OF_BOTH}
    return {"habit": _OF_HABIT_IN_CONTEXT, f"context {claim.context}": _OF_CONTEXT}


def live_through(*, history: History, server: ModelServer, workspace: Workspace, seed: int) -> list[Sample]:
    """Live one history in an empty workspace, a cycle a week; return its active beliefs at random times.

    The times are drawn uniformly from the whole span; at those before the first belief there is nothing to score.
    """
    model = ScriptedModel(history=history)
    model.serve_through(server)
    rng = random.Random(f"{seed}/{history.number}/times")
    days = sorted(rng.uniform(0, SPAN_DAYS) for _ in range(SAMPLED_DAYS))
    samples: list[Sample] = []
    for begin, end in _weeks():
        samples += [sample for day in days if begin <= day < end for sample in _read(model, workspace, day)]
        said = [said for said in history.said if begin <= said.day < end]
        if said:
            _store(said, history=history, workspace=workspace, end=end)
            run_cycle(workspace, BEGIN + timedelta(days=end))
    return samples


def _weeks() -> Iterator[tuple[float, float]]:
    begin = 0.0
    while begin < SPAN_DAYS:
        yield begin, min(begin + CYCLE_DAYS, SPAN_DAYS)
        begin += CYCLE_DAYS


def _read(model: ScriptedModel, workspace: Workspace, day: float) -> list[Sample]:
    """Return what is believed now as samples of a day."""
    beliefs = Belief.objects.for_workspace(workspace.pk).active().order_by("pk")
    return [
        Sample(
            history=model.history.number,
            kind=model.history.kind,
            confidence=confidence,
            is_true=model.history.is_true(model.claims[statement], day=day),
        )
        for statement, confidence in beliefs.values_list("statement", "confidence")
    ]


def _store(said: Sequence[Said], *, history: History, workspace: Workspace, end: float) -> None:
    """Store a week's episodes as if each had come when it occurred, from a session of its own."""
    lines = [
        {
            "text": history.word(one.claim),
            "occurred_at": (BEGIN + timedelta(days=one.day)).isoformat(),
            "session": f"day {one.day:.6f}",
            "language": "en",
        }
        for one in said
    ]
    arrival = Arrival(workspace=workspace, now=BEGIN + timedelta(days=end), is_replay=True)
    outcomes = take_episodes(raw_lines=lines, arrival=arrival)
    assert all(isinstance(outcome, Stored) and not outcome.is_duplicate for outcome in outcomes), outcomes
