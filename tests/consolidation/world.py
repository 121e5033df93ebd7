"""A workspace, a clock, and a model server that knows what every text means."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.consolidation.evidence import recompute_belief
from memory.consolidation.sources import hash_statement
from memory.domain.verdicts import Verdict
from memory.llm.embeddings import DIMENSIONS, embedder
from memory.models import Basis, Belief, BeliefAccess, Cycle, Episode, Evidence, Workspace
from memory.models.vectors import store_belief_vectors
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.model_server import Asked, ModelServer

MODEL = "scripted"  # an embedding model that no profile ships for: raw cosines are the reference scale


class Directions:
    """Hands out vectors whose cosines are dictated: two texts about one matter are as alike as the product of theirs.

    A text that nobody placed points its own way.
    """

    def __init__(self) -> None:
        self._axes: dict[str, int] = {}
        self._placed: dict[str, tuple[str, float]] = {}

    def place(self, text: str, *, about: str, likeness: float) -> None:
        """Let a text lie at this cosine to its matter."""
        self._placed[text] = (about, likeness)

    def matter_of(self, text: str) -> str:
        """Name what a text is about, as it was placed."""
        return self._placed.get(text, (text, 1.0))[0]

    def __call__(self, texts: Sequence[str], dimensions: int) -> NDArray[np.float32]:
        """Embed as a server would."""
        return np.stack([self._vector(text, dimensions) for text in texts])

    def _vector(self, text: str, dimensions: int) -> NDArray[np.float32]:
        about, likeness = self._placed.get(text, (text, 1.0))
        vector = np.zeros(dimensions, dtype=np.float32)
        vector[self._axis(f"matter {about}")] = likeness
        if likeness < 1.0:
            vector[self._axis(f"text {text}")] = math.sqrt(1.0 - likeness**2)
        return vector

    def _axis(self, name: str) -> int:
        axis = self._axes.setdefault(name, len(self._axes))
        assert axis < DIMENSIONS, "more directions than dimensions"
        return axis


@dataclass(slots=True, kw_only=True)
class World:
    """One workspace whose episodes mean what a test says they mean."""

    server: ModelServer
    workspace: Workspace
    now: datetime = factories.NOW
    directions: Directions = field(default_factory=Directions)
    verdicts: dict[str, str] = field(default_factory=dict)  # by text, or by statement + "|" + text
    statements: dict[str, str] = field(default_factory=dict)  # by matter; else the first episode's text

    def __post_init__(self) -> None:
        self.server.embed = self.directions
        self.server.script = self.answer

    def answer(self, asked: Asked) -> dict[str, Any]:
        """Answer as the test has laid down; a verdict that it did not mention is SUPPORTS."""
        if asked.purpose == "classify":
            statement = asked.items[0]["belief"]
            return {"verdicts": [self._verdict(statement, episode) for episode in asked.episodes]}
        text = asked.episodes[0]["text"]
        statement = self.statements.get(self.directions.matter_of(text), text)
        return {
            "statement": statement,
            "subject": "Ana" if statement else "",
            "predicate": "said" if statement else "",
            "context": "general",
            "timeframe": "current",
        }

    def _verdict(self, statement: str, episode: dict[str, str]) -> dict[str, str]:
        text = episode["text"]
        verdict = self.verdicts.get(f"{statement}|{text}", self.verdicts.get(text, Verdict.SUPPORTS))
        return {"id": episode["id"], "verdict": verdict, "reason": "as scripted"}

    def say(
        self, text: str, *, about: str, likeness: float = 0.95, verdict: str = Verdict.SUPPORTS, **given: Any
    ) -> Episode:
        """Store an episode that nobody has consolidated yet, from an origin of its own unless one is given."""
        self.directions.place(text, about=about, likeness=likeness)
        self.verdicts.setdefault(text, verdict)
        fields: dict[str, Any] = {"language": "en", "created_at": self.now, "occurred_at": self.now}
        return factories.episode(workspace=self.workspace, text=text, **fields | given)

    def say_all(self, texts: Iterable[str], *, about: str, **given: Any) -> list[Episode]:
        """Store several episodes about one matter."""
        return [self.say(text, about=about, **given) for text in texts]

    def hold(self, statement: str, *, about: str, supports: int = 3, contradicts: int = 0, **given: Any) -> Belief:
        """Store a belief with settled evidence, each row from an origin of its own."""
        self.directions.place(statement, about=about, likeness=given.pop("likeness", 1.0))
        fields: dict[str, Any] = {
            "subject": "Ana",
            "language": "en",
            "statement_hash": hash_statement(statement, "Ana"),
            "last_reinforced_at": self.now,
            "created_at": self.now,
        }
        belief = factories.belief(workspace=self.workspace, statement=statement, **fields | given)
        BeliefAccess.objects.create(belief=belief, workspace=self.workspace)
        vector = embedder().embed([statement])[0]
        store_belief_vectors(workspace_id=self.workspace.pk, model=MODEL, vectors={belief.pk: vector})
        self._evidence(belief, [Verdict.SUPPORTS] * supports + [Verdict.CONTRADICTS] * contradicts)
        recompute_belief(belief=belief, now=self.now)
        return belief

    def _evidence(self, belief: Belief, verdicts: Sequence[Verdict]) -> None:
        for number, verdict in enumerate(verdicts):
            episode = factories.episode(
                workspace=self.workspace,
                text=f"Earlier word {number} on: {belief.statement}",
                state="settled",
                project=belief.project,
                user=belief.user,
                created_at=self.now,
                occurred_at=self.now,
            )
            Evidence.objects.create(
                workspace=self.workspace,
                belief=belief,
                episode=episode,
                verdict=verdict,
                basis=Basis.MODEL,
                created_at=self.now,
            )

    def cycle(self, *, after: timedelta = timedelta()) -> Cycle:
        """Let time pass, then run a cycle to its end in this process."""
        self.now += after
        return run_cycle(self.workspace, self.now)

    def calls(self, purpose: str) -> int:
        """Count the calls of a purpose that reached the server."""
        return len(self.server.calls(purpose))

    def only_belief(self) -> Belief:
        """Return the workspace's one belief."""
        return Belief.objects.get(workspace=self.workspace)

    def verdicts_of(self, belief: Belief) -> dict[str, str]:
        """Return the verdict of each evidence row, by the episode's text."""
        return dict(Evidence.objects.filter(belief=belief).values_list("episode__text", "verdict"))

    def states(self, *episodes: Episode) -> list[str]:
        """Return the consolidation states of episodes, in their order."""
        found = dict(Episode.objects.values_list("pk", "state"))
        return [found[episode.pk] for episode in episodes]
