"""A workspace, a clock, and a model server that knows what every text means."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from django.db.models import Model
from numpy.typing import NDArray

from memory.domain.evidence import Verdict
from memory.ledger.beliefs import hash_statement
from memory.ledger.confidence import find_drift, recompute_beliefs
from memory.llm.registry import default_embedder
from memory.llm.types import DIMENSIONS
from memory.models import (
    Basis,
    Belief,
    BeliefAccess,
    BeliefEmbedding,
    ChildVerdict,
    ClusterJob,
    ClusterMember,
    Cycle,
    CycleStep,
    Episode,
    EpisodeEmbedding,
    Evidence,
    GateDecision,
    JobVerdict,
    Lineage,
    ModelCall,
    RevokedEvidence,
    RevokedLineage,
    StructuralChild,
    StructuralJob,
    Workspace,
)
from memory.search.vectors import store_belief_vectors
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.model_server import ModelServer
from tests.model_server_acts import Act, Asked, garbage, judged, refuse, stall

Reply = Act | dict[str, list[dict[str, Any]]]  # what a message does: "new" and "about" lines, without its number
MODEL = "scripted"  # an embedding model that no profile ships for: raw cosines are the reference scale


WRITTEN: tuple[type[Model], ...] = (
    Episode, EpisodeEmbedding, Belief, BeliefEmbedding, BeliefAccess, Evidence,
    Cycle, CycleStep, ClusterJob, ClusterMember, JobVerdict, GateDecision, ModelCall,
    StructuralJob, StructuralChild, ChildVerdict, Lineage, RevokedEvidence, RevokedLineage,
)  # fmt: skip
_SIGNS_OF_LIFE = {"leased_until", "seen_at", "deadline_at"}
_HEAVY = {"vector", "candidate_vector", "search"}


def _columns(model: type[Model]) -> list[str]:
    """Name a table's columns that mean something."""
    return [field.attname for field in model._meta.concrete_fields if field.name not in _SIGNS_OF_LIFE | _HEAVY]


class Directions:
    """Hands out vectors whose cosines are dictated: two texts about one matter are as alike as the product of theirs.

    A text that nobody placed points its own way.
    """

    def __init__(self) -> None:
        self._axes: dict[str, int] = {}
        self._placed: dict[str, dict[str, float]] = {}

    def place(self, text: str, matters: dict[str, float]) -> None:
        """Let a text lie at these cosines to its matters."""
        self._placed[text] = matters

    def matter_of(self, text: str) -> str:
        """Name what a text is about first of all."""
        return next(iter(self._placed.get(text, {text: 1.0})))

    def __call__(self, texts: Sequence[str], dimensions: int) -> NDArray[np.float32]:
        """Embed as a server would."""
        return np.stack([self._vector(text, dimensions) for text in texts])

    def _vector(self, text: str, dimensions: int) -> NDArray[np.float32]:
        matters = self._placed.get(text, {text: 1.0})
        vector = np.zeros(dimensions, dtype=np.float32)
        for matter, likeness in matters.items():
            vector[self._axis(f"matter {matter}")] = likeness
        rest = 1.0 - sum(likeness**2 for likeness in matters.values())
        if rest > 1e-6:
            vector[self._axis(f"text {text}")] = math.sqrt(rest)
        return vector

    def _axis(self, name: str) -> int:
        axis = self._axes.setdefault(name, len(self._axes))
        assert axis < DIMENSIONS, "more directions than dimensions"
        return axis


class TroubledServer(ModelServer):
    """A scripted server that can be out of order until it is mended."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: dict[str, Act] = {}  # by purpose, until taken out
        self.refused_word = ""  # texts with it are refused by the embedding model
        self.stalling_word = ""  # texts with it take it more than a second
        self.after_embedding: Callable[[], object] = lambda: None

    def mend(self) -> None:
        """Forget what was planned and logged, and answer at once again."""
        with self._lock:
            self._plan.clear()
        self.log.clear()
        self.broken.clear()
        self.latency, self.refused_word, self.stalling_word = 0.0, "", ""
        self.after_embedding = lambda: None

    def planned(self, purpose: str) -> Act | None:
        """Take the next planned act, else the standing trouble."""
        act = super().planned(purpose)
        if purpose == "embed":
            self.after_embedding()
            if self.refused_word and any(self.refused_word in text for text in self.log[-1].texts):
                return refuse(400)
            if self.stalling_word and any(self.stalling_word in text for text in self.log[-1].texts):
                return stall(1.2)
        return act or self.broken.get(purpose)


def _stated(statement: str, *, subject: str = "Ana", context: str = "general") -> dict[str, Any]:
    return {
        "statement": statement,
        "subject": subject if statement else "",
        "predicate": "said" if statement else "",
        "context": context,
        "timeframe": "current",
    }


@dataclass(slots=True, kw_only=True)
class World:
    """One workspace whose episodes mean what a test says they mean."""

    server: ModelServer
    workspace: Workspace
    now: datetime = factories.NOW
    directions: Directions = field(default_factory=Directions)
    verdicts: dict[str, str] = field(default_factory=dict)  # by text, or by statement + "|" + text
    statements: dict[str, str] = field(default_factory=dict)  # by matter; else the first episode's text
    before_gate: Callable[[], object] = lambda: None
    revisions: dict[str, str] = field(default_factory=dict)  # by statement; "" for none
    divisions: dict[str, dict[str, str]] = field(default_factory=dict)  # by statement: statements by context
    unions: dict[str, str] = field(default_factory=dict)  # by either statement: the one for both, "" to keep one
    contexts: dict[str, str] = field(default_factory=dict)  # of statements that a cluster supports; else general
    changes_its_mind: bool = False  # whether what contradicts comes after all that supports
    readings: dict[str, Reply] = field(default_factory=dict)  # by a message's text; else it does nothing
    contradictions: dict[str, str | list[str]] = field(default_factory=dict)  # by fact: what it contradicts
    spoilt: set[str] = field(default_factory=set)  # statements of which the model speaks only nonsense

    def __post_init__(self) -> None:
        self.server.embed = self.directions
        self.server.script = self.answer

    @property
    def trouble(self) -> TroubledServer:
        """Return the server where it is one that can be put out of order."""
        assert isinstance(self.server, TroubledServer)
        return self.server

    def answer(self, asked: Asked) -> Act | dict[str, Any]:
        """Answer as the test has laid down; a verdict that it did not mention is SUPPORTS."""
        if asked.purpose == "contradict":
            return self._contradiction(asked)
        if asked.purpose == "read":
            return self._reading(asked)
        if asked.purpose != "synthesize":
            return self._answer_about(asked.items[0]["belief"], asked)
        text = asked.first["text"]
        statement = self.statements.get(self.directions.matter_of(text), text)
        if statement in self.spoilt:
            return garbage()
        context = self.contexts.get(statement, "general")
        return _stated(statement, subject=asked.first.get("speaker", "Ana"), context=context)

    def _reading(self, asked: Asked) -> Act | dict[str, Any]:
        """Say what the test has laid down of each message; beliefs are named by their statements."""
        new: list[dict[str, Any]] = []
        about: list[dict[str, Any]] = []
        for message in asked.messages:
            reply = self.readings.get(message["text"], {})
            if isinstance(reply, Act):
                return reply
            named: dict[str, Any] = {**asked.held}
            named |= {line["statement"]: f"n{number}" for number, line in enumerate(new, start=1)}
            for line in reply.get("new", []):
                names = {"replaces", "because"} & line.keys()
                tied: dict[str, Any] = {name: str(named.get(line[name], "")) for name in names}
                new.append({"kind": "lasting", **line, **tied, "m": message["m"]})
                named[line["statement"]] = f"n{len(new)}"
            for line in reply.get("about", []):
                if line["b"] in named:
                    about.append({**line, "b": str(named[line["b"]]), "m": message["m"]})
        return {"new": new, "about": about}

    def _contradiction(self, asked: Asked) -> dict[str, Any]:
        """Name the beliefs that the fact contradicts, by their places among those asked about."""
        given = self.contradictions.get(asked.items[0]["fact"], [])
        rivals = [given] if isinstance(given, str) else given
        numbers = [item["number"] for item in asked.beliefs if item["belief"] in rivals]
        return {"contradicts": numbers, "reason": "as scripted" if numbers else ""}

    def _answer_about(self, statement: str, asked: Asked) -> Act | dict[str, Any]:
        if self.spoilt.intersection(belief["belief"] for belief in asked.beliefs):
            return garbage()
        match asked.purpose:
            case "classify":
                return judged(asked, lambda belief, episode: self._verdict(belief["belief"], episode["text"]))
            case "revise":
                return _stated(self.revisions.get(statement, ""))
            case "split":
                parts = self.divisions.get(statement, {}).items()
                return {"parts": [_stated(part, context=context) for context, part in parts]}
        known = [self.unions[item["belief"]] for item in asked.items if item["belief"] in self.unions]
        return {"same": bool(known), **_stated(known[0] if known else "")}

    def _verdict(self, statement: str, text: str) -> tuple[str, str]:
        verdict = self.verdicts.get(f"{statement}|{text}", self.verdicts.get(text, Verdict.SUPPORTS))
        return verdict, "as scripted"

    def say(
        self, text: str, *, about: str, likeness: float = 0.95, verdict: str = Verdict.SUPPORTS, **given: Any
    ) -> Episode:
        """Store an episode that nobody has consolidated yet, from an origin of its own unless one is given."""
        self.directions.place(text, {about: likeness})
        self.verdicts.setdefault(text, verdict)
        fields: dict[str, Any] = {"language": "en", "created_at": self.now, "occurred_at": self.now}
        return factories.episode(workspace=self.workspace, text=text, **fields | given)

    def say_all(self, texts: Iterable[str], *, about: str, **given: Any) -> list[Episode]:
        """Store several episodes about one matter."""
        return [self.say(text, about=about, **given) for text in texts]

    def hold(self, statement: str, *, about: str, supports: int = 3, contradicts: int = 0, **given: Any) -> Belief:
        """Store a belief with settled evidence, each row from an origin of its own."""
        self.directions.place(statement, {about: given.pop("likeness", 1.0)})
        fields: dict[str, Any] = {
            "subject": "Ana",
            "language": "en",
            "last_reinforced_at": self.now,
            "created_at": self.now,
            **given,
        }
        fields["statement_hash"] = hash_statement(statement, fields["subject"], fields.get("context", "general"))
        belief = factories.belief(workspace=self.workspace, statement=statement, **fields)
        BeliefAccess.objects.create(belief=belief, workspace=self.workspace)
        vector = default_embedder().embed([statement])[0]
        store_belief_vectors(workspace_id=self.workspace.pk, model=MODEL, vectors={belief.pk: vector})
        self._evidence(belief, [Verdict.SUPPORTS] * supports + [Verdict.CONTRADICTS] * contradicts)
        recompute_beliefs(beliefs=[belief], now=self.now)
        Belief.objects.filter(pk=belief.pk).update(is_due=False)  # the gates have seen it
        return belief

    def _evidence(self, belief: Belief, verdicts: Sequence[Verdict]) -> None:
        """Store earlier words; unless a mind changes, the last support comes last, so that there is no turn (C1)."""
        last = verdicts.count(Verdict.SUPPORTS) - 1
        in_order = sorted(range(len(verdicts)), key=lambda number: number == last and not self.changes_its_mind)
        for number, verdict in enumerate(verdicts):
            occurred_at = self.now - timedelta(minutes=len(verdicts) - in_order.index(number))
            episode = factories.episode(
                workspace=self.workspace,
                text=f"Earlier word {number} on: {belief.statement}",
                state="settled",
                project=belief.project,
                user=belief.user,
                created_at=self.now,
                occurred_at=occurred_at,
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
        cycle = run_cycle(self.workspace, self.now, before_gate=self.before_gate)
        self.check(cycle)
        return cycle

    def check(self, cycle: Cycle) -> None:
        """Assert what must hold after every cycle that has ended, whatever happened in it."""
        assert cycle.finished_at
        assert not Episode.objects.filter(workspace=self.workspace, state="leased").exists()
        assert not ClusterJob.objects.filter(cycle=cycle).open().exists()
        assert find_drift(workspace=self.workspace)[1] == []

    def calls(self, purpose: str) -> int:
        """Count the calls of a purpose that reached the server."""
        return len(self.server.calls(purpose))

    def now_of(self, belief: Belief) -> Belief:
        """Read a belief anew."""
        return Belief.objects.get(pk=belief.pk)

    def only_belief(self) -> Belief:
        """Return the workspace's one belief."""
        return Belief.objects.get(workspace=self.workspace)

    def verdicts_of(self, belief: Belief) -> dict[str, str]:
        """Return the verdict of each evidence row, by the episode's text."""
        return dict(Evidence.objects.filter(belief=belief).values_list("episode__text", "verdict"))

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Return every row that consolidation writes, without what tells only that somebody is alive."""
        return {
            model.__name__: list(model._default_manager.order_by("pk").values(*_columns(model))) for model in WRITTEN
        }

    def states(self, *episodes: Episode) -> list[str]:
        """Return the consolidation states of episodes, in their order."""
        found = dict(Episode.objects.values_list("pk", "state"))
        return [found[episode.pk] for episode in episodes]
