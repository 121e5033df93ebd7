"""A remembered text's facts meet what is believed, under the workspace's lock; what must be asked first is named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memory.consolidation.handmade import Hand, as_source
from memory.consolidation.related import KnownBeliefs
from memory.consolidation.sources import source_of
from memory.domain.actor import read_actor
from memory.domain.remembering import Course, Match, says_something
from memory.ledger.equivalents import find_tombstone, was_erased
from memory.llm.requests import StatedBelief
from memory.models import Belief, Claim, FactOutcome, RememberedFact, Remembrance, RivalOutcome
from memory.models.remembrances import REMEMBERED
from memory.models.vectors import Vectors
from memory.remembering.changing import bear_out, conceive, contradict, found, hear
from memory.remembering.linking import link_neighbours
from memory.remembering.reading import ReadFact
from memory.remembering.surroundings import Likeness, choose_match, find_near, surroundings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which of some beliefs a fact contradicts, the most similar first; equal questions have equal answers."""

    fact: StatedBelief
    ids: tuple[str, ...]
    beliefs: tuple[StatedBelief, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Which beliefs a fact contradicts, the most similar first, why, and the call that said so."""

    rivals: tuple[str, ...] = ()
    reason: str = ""
    call_id: int | None = None


class Unasked(Exception):
    """Nothing was changed: a question stands open."""

    def __init__(self, question: Question) -> None:
        super().__init__("a contradiction must be asked about first")
        self.question = question


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """One remembrance among the beliefs that are there; what it made itself it contradicts no more."""

    remembrance: Remembrance
    rulings: Mapping[Question, Ruling]
    model: str  # that vectors are of
    now: datetime
    made: set[str] = field(default_factory=set)

    @property
    def hand(self) -> Hand:
        """Return who acts, why and when."""
        return Hand(actor=read_actor(self.remembrance.actor), reason=REMEMBERED, now=self.now)

    def settle(self, number: int, read: ReadFact) -> RememberedFact:
        """Do what a fact asks for, and return what that was; raise Unasked where something must be asked first."""
        belief = conceive(episode=self.remembrance.episode, fact=read.fact, now=self.now)
        belief.is_told = read.claim is not None
        row = self._row(number, read)
        if read.claim is not None:
            self._hear(row, belief, read, read.claim)
        elif not says_something(text=read.fact.text, language=belief.language):
            row.outcome = FactOutcome.REFUSED
        elif read.vector is None:
            self._found(row, belief, read)
            row.is_unmatched = True
        else:
            self._match(row, belief, read, read.vector)
        return row

    def _hear(self, row: RememberedFact, belief: Belief, read: ReadFact, claim: Claim) -> None:
        """Let a claim count for and against what is believed, by slots, values and words (E3), and found what is told.

        Where it names another value of what is believed and announces nothing, it counts against that first (E4).
        """
        episode = self.remembrance.episode
        source = source_of(episode=episode, claim=claim)
        known = KnownBeliefs(workspace_id=episode.workspace_id, user=episode.user)
        row.outcome, is_held = FactOutcome.HEARD, False
        for about, relation in list(known.related(claim, source)):
            if self.remembrance.is_limited and about.project_id is None:
                continue
            outcome = hear(belief_id=about.pk, relation=relation, claim=claim, episode=episode, hand=self.hand)
            if outcome == FactOutcome.REINFORCED and row.outcome == FactOutcome.HEARD:
                row.outcome, row.belief_id = outcome, about.pk
            elif outcome in RivalOutcome.values and not row.rival_id:
                row.rival_id, row.rival_outcome = about.pk, outcome
                is_held = is_held or outcome == RivalOutcome.WEAKENED
        if row.outcome == FactOutcome.HEARD and claim.is_told and not is_held:
            if read.vector is None:
                self._found(row, belief, read)
                row.is_unmatched = True
            else:
                self._match(row, belief, read, read.vector)

    def rule(self, belief: Belief, match: Match) -> tuple[Question, Ruling]:
        """Return what a model said of the beliefs that a new one may contradict; raise Unasked before it did."""
        question = _question(belief, match)
        if question not in self.rulings:
            raise Unasked(question)
        return question, self.rulings[question]

    def apply(self, row: RememberedFact, belief: Belief, asked: tuple[Question, Ruling] | None) -> None:
        """Write down what was asked about a belief, and let it supersede what it contradicts (R3).

        The row names the most similar one; the lineage has all.
        """
        if asked is None:
            return
        question, ruling = asked
        row.asked_about, row.contradiction_call_id = list(question.ids), ruling.call_id
        outcomes = {
            rival: contradict(
                rival_id=rival,
                belief=belief,
                episode=self.remembrance.episode,
                reason=ruling.reason,
                call_id=ruling.call_id,
                hand=self.hand,
            )
            for rival in ruling.rivals
        }
        if outcomes:
            row.rival_id, row.rival_outcome = next(iter(outcomes.items()))

    def _match(self, row: RememberedFact, belief: Belief, read: ReadFact, vector: Vectors) -> None:
        """R2: bear out what says the same; else make a belief, having asked what it contradicts."""
        near = find_near(within=surroundings_of(belief=belief, is_limited=self.remembrance.is_limited), vector=vector)
        match = choose_match(belief=belief, near=near, settled=self.made)
        if match.course is Course.REINFORCE:
            row.outcome, row.belief_id = FactOutcome.REINFORCED, match.target
            bear_out(belief_id=match.target, episode=self.remembrance.episode, hand=self.hand)
        elif is_suppressed(belief=belief, vector=vector):
            row.outcome = FactOutcome.SUPPRESSED
        else:
            asked = self.rule(belief, match) if match.course is Course.CHECK else None
            belief.lineage_depth = _depth_after(asked)
            self._found(row, belief, read)
            self.apply(row, belief, asked)
            link_neighbours(belief=belief, near=without_rivals(near, asked), now=self.now)

    def _found(self, row: RememberedFact, belief: Belief, read: ReadFact) -> None:
        found(
            belief=belief,
            episode=self.remembrance.episode,
            vector=read.vector,
            model=self.model,
            call_id=read.call_id,
            hand=self.hand,
        )
        self.made.add(belief.pk)
        row.outcome, row.belief = FactOutcome.CREATED, belief

    def _row(self, number: int, read: ReadFact) -> RememberedFact:
        return RememberedFact(
            workspace_id=self.remembrance.workspace_id,
            remembrance=self.remembrance,
            number=number,
            text=read.fact.text,
            fact_type=read.fact.fact_type,
            importance=read.fact.importance,
            subject=read.fact.subject,
            call_id=read.call_id,
        )


def _question(belief: Belief, match: Match) -> Question:
    known = {one.pk: one for one in Belief.objects.filter(pk__in=match.candidates)}
    candidates = [known[key] for key in match.candidates]
    return Question(
        fact=as_stated(belief), ids=match.candidates, beliefs=tuple(as_stated(candidate) for candidate in candidates)
    )


def as_stated(belief: Belief) -> StatedBelief:
    """Return a belief as a model is asked about it."""
    return StatedBelief(
        statement=belief.statement, subject=belief.subject, context=belief.context, language=belief.language
    )


def is_suppressed(*, belief: Belief, vector: Vectors) -> bool:
    """Tell whether a person put away or erased what says the same (B22, L4)."""
    candidate, workspace_id = as_source(belief=belief), belief.workspace_id
    is_erased = was_erased(workspace_id=workspace_id, candidate=candidate)
    return is_erased or find_tombstone(workspace_id=workspace_id, candidate=candidate, vector=vector) is not None


def _depth_after(asked: tuple[Question, Ruling] | None) -> int:
    """Count the structural changes that lead to what supersedes another belief."""
    if asked is None or not asked[1].rivals:
        return 0
    depths: list[int] = list(Belief.objects.filter(pk__in=asked[1].rivals).values_list("lineage_depth", flat=True))
    return max(depths) + 1


def without_rivals(near: Likeness, asked: tuple[Question, Ruling] | None) -> Likeness:
    """Leave out of what is near what a new belief contradicts."""
    rivals = asked[1].rivals if asked else ()
    return [one for one in near if one[0].id not in rivals]
