"""Match the facts of a text with what is believed, under the workspace's lock; name what a model must rule on first.

`FactMatcher.settle` does what the facts ask for; `match_late_vector` does it for a belief that was made while no vector
could be had (R2).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.conf import settings

from memory.claims import RULES_READER
from memory.consolidation.belief_creation import HELD_BEFORE
from memory.consolidation.related_beliefs import BeliefIndex
from memory.consolidation.sources import source_of_claim
from memory.domain.evidence import Verdict
from memory.domain.identity import read_actor
from memory.domain.lifecycle import LIVE, BeliefStatus
from memory.domain.similarity import FactMatch, MatchAction
from memory.facts.belief_updates import (
    SimilarBeliefs,
    apply_claims,
    candidate_scope,
    choose_match,
    contradict_belief,
    create_from_fact,
    draft_from_fact,
    find_similar_beliefs,
    link_neighbours,
    reinforce_belief,
)
from memory.facts.job import JobLease, NoModelAnswer, begin_own_vector, embed_texts
from memory.language.clauses import Mode
from memory.language.facts import FactToRemember, says_something
from memory.language.relations import ClaimRelation
from memory.language.sentences import strip_echo
from memory.ledger.beliefs import (
    BeliefDraft,
    CreationOutcome,
    StatementVector,
    check_embedding_model,
    find_suppressed,
    source_of_belief,
)
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.transactions import Author, LineageInput, change_status, lock_existing_beliefs, record_lineage
from memory.llm.requests import StatedBelief
from memory.models import Belief, Claim, FactOutcome, LineageKind, RememberedFact, RememberJob, RivalOutcome
from memory.models.conversations import REASON_EQUIVALENT, REASON_REMEMBERED
from memory.search.vectors import ComparisonScope, Vectors, store_belief_vectors

PUT_AWAY = "a person put away what says the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContradictionQuestion:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FactMatcher:
    """One remembrance among the beliefs that are there; what it made itself it contradicts no more."""

    remembrance: RememberJob
    rulings: Mapping[ContradictionQuestion, Ruling]
    model: str  # that vectors are of
    now: datetime
    made: set[str] = field(default_factory=set)

    @property
    def author(self) -> Author:
        """Return who acts, why and when."""
        return Author(actor=read_actor(self.remembrance.actor), reason=REASON_REMEMBERED, now=self.now)

    def settle(self, facts: Sequence[ReadFact]) -> list[RememberedFact]:
        """Do what facts ask for, and return what that was; raise NeedsRuling where something must be asked first."""
        heard = self._hear([read.claim for read in facts if read.claim])
        rows = [self._settle(number, read, heard) for number, read in enumerate(facts, 1)]
        rivals = {row.rival_id for row in rows}
        for row in rows:
            if row.outcome == FactOutcome.REINFORCED and row.belief_id in rivals:
                row.outcome, row.belief = FactOutcome.HEARD, None  # another fact of the text contradicts it (E1)
        return rows

    def _hear(self, claims: Sequence[Claim]) -> Mapping[int, dict[str, str]]:
        """Let claims count for and against what is believed, by slots, values and words (E3).

        Return by claim what became of the beliefs that it is about, by their ids.
        """
        if not claims:
            return {}
        episode, about = self.remembrance.episode, defaultdict[str, list[tuple[Claim, ClaimRelation]]](list)
        known = self._known()
        for claim in claims:
            for belief, relation in known.related(claim, source_of_claim(episode=episode, claim=claim)):
                if not (self.remembrance.is_limited and belief.project_id is None):
                    about[belief.pk].append((claim, relation))
        heard: dict[int, dict[str, str]] = {claim.pk: {} for claim in claims}
        for key, relations in about.items():
            outcome = apply_claims(belief_id=key, relations=relations, episode=episode, author=self.author)
            for claim, relation in relations:
                is_overruled = relation.verdict is Verdict.SUPPORTS and outcome == RivalOutcome.SUPERSEDED
                heard[claim.pk][key] = RivalOutcome.WEAKENED if is_overruled else outcome
        return heard

    def _known(self) -> BeliefIndex:
        episode = self.remembrance.episode
        return BeliefIndex(workspace_id=episode.workspace_id, user=episode.user, said_from=episode.occurred_at)

    def _settle(self, number: int, read: ReadFact, heard: Mapping[int, dict[str, str]]) -> RememberedFact:
        draft = draft_from_fact(episode=self.remembrance.episode, fact=read.fact, is_told=read.claim is not None)
        row = self._row(number, read)
        if read.claim is not None:
            self._settle_claim(row, draft, read, heard[read.claim.pk])
        elif not says_something(text=read.fact.text, language=draft.language):
            row.outcome = FactOutcome.REFUSED
        elif read.vector is None:
            self._found(row, draft, read)
            row.is_unmatched = True
        else:
            self._match(row, draft, read, read.vector)
        return row

    def _settle_claim(self, row: RememberedFact, draft: BeliefDraft, read: ReadFact, heard: dict[str, str]) -> None:
        """Found what is told and what no belief bears yet.

        Where it names another value of what is believed and announces nothing, it counts against that first (E4).
        """
        assert read.claim is not None
        if read.claim.reader != RULES_READER and FactOutcome.REINFORCED not in heard.values():
            self._ask(row, draft, read, heard)
        row.outcome = FactOutcome.HEARD
        for key, outcome in heard.items():
            if outcome == FactOutcome.REINFORCED and row.outcome == FactOutcome.HEARD:
                row.outcome, row.belief_id = outcome, key
            elif outcome in RivalOutcome.values and not row.rival_id:
                row.rival_id, row.rival_outcome = key, outcome
        is_ahead = read.claim.mode == Mode.CHANGE and read.claim.begins_by(self.now) > self.now
        is_held = is_ahead or not {RivalOutcome.WEAKENED.value, HELD_BEFORE}.isdisjoint(heard.values())
        if row.outcome == FactOutcome.HEARD and read.claim.is_told and not is_held:
            self._found(row, draft, read, instead_of=[key for key in heard if heard[key] == RivalOutcome.SUPERSEDED])
            row.is_unmatched = read.vector is None

    def _ask(self, row: RememberedFact, draft: BeliefDraft, read: ReadFact, heard: dict[str, str]) -> None:
        """Let a claim count against what it contradicts and rules say nothing of, as a model says (R3)."""
        assert read.claim is not None
        doubtful = self._doubtful(draft, read, besides={*heard, *self.made})
        if not doubtful:
            return
        question, ruling = self.rule(draft, FactMatch(course=MatchAction.CHECK, candidates=doubtful))
        row.asked_about, row.contradiction_call_id = list(question.ids), ruling.call_id
        ends = read.claim.mode == Mode.CHANGE
        relation = ClaimRelation(verdict=Verdict.CONTRADICTS, reason=ruling.reason, ends=ends)
        for rival in ruling.rivals:
            heard[rival] = apply_claims(
                belief_id=rival,
                relations=[(read.claim, relation)],
                episode=self.remembrance.episode,
                author=self.author,
                call_id=ruling.call_id,
            )

    def _doubtful(self, draft: BeliefDraft, read: ReadFact, *, besides: Collection[str]) -> tuple[str, ...]:
        """Return the live beliefs that a claim may contradict: the most alike, then those of its slots, names or words.

        What announces a change is asked about beliefs that are less alike.
        """
        assert read.claim is not None
        policy = settings.POLICY.remember
        least = policy.link_from if read.claim.mode == Mode.CHANGE else policy.contradiction_similarity
        within = self.surroundings_of(draft)
        near = [] if read.vector is None else find_similar_beliefs(within=within, vector=read.vector)
        close = [one.id for one, likeness in near if likeness >= least and one.status in LIVE]
        alike = self._known().alike(read.claim, source_of_claim(episode=self.remembrance.episode, claim=read.claim))
        seen = Belief.objects.filter(
            pk__in=alike, status__in=LIVE, **({"project__isnull": False} if self.remembrance.is_limited else {})
        )
        named = sorted(seen.values_list("pk", flat=True))
        return tuple(key for key in dict.fromkeys([*close, *named]) if key not in besides)[: policy.candidates]

    def surroundings_of(self, belief: BeliefDraft | Belief) -> ComparisonScope:
        """Say where the like of what was remembered is looked for."""
        remembrance = self.remembrance
        return candidate_scope(belief=belief, episode=remembrance.episode, is_limited=remembrance.is_limited)

    def rule(self, belief: BeliefDraft | Belief, match: FactMatch) -> tuple[ContradictionQuestion, Ruling]:
        """Return what a model said of the beliefs that a new one may contradict; raise NeedsRuling before it did."""
        question = _contradiction_question(belief, match)
        if question not in self.rulings:
            raise NeedsRuling(question)
        return question, self.rulings[question]

    def apply(self, row: RememberedFact, belief: Belief, asked: tuple[ContradictionQuestion, Ruling] | None) -> None:
        """Write down what was asked about a belief, and let it supersede what it contradicts (R3).

        The row names the most similar one; the lineage has all.
        """
        if asked is None:
            return
        question, ruling = asked
        row.asked_about, row.contradiction_call_id = list(question.ids), ruling.call_id
        outcomes = {
            rival: contradict_belief(
                rival_id=rival,
                belief=belief,
                episode=self.remembrance.episode,
                reason=ruling.reason,
                call_id=ruling.call_id,
                author=self.author,
            )
            for rival in ruling.rivals
        }
        if outcomes:
            row.rival_id, row.rival_outcome = next(iter(outcomes.items()))

    def _match(self, row: RememberedFact, draft: BeliefDraft, read: ReadFact, vector: Vectors) -> None:
        """R2: bear out what says the same; else make a belief. What is alike and may be contradicted is asked about."""
        near = find_similar_beliefs(within=self.surroundings_of(draft), vector=vector)
        match = choose_match(candidate=draft.as_source(), near=near, settled=self.made)
        asked = self.rule(draft, match) if match.candidates else None
        if match.course is MatchAction.REINFORCE:
            row.outcome, row.belief_id = FactOutcome.REINFORCED, match.target
            reinforce_belief(belief_id=match.target, episode=self.remembrance.episode, author=self.author)
        else:
            self._found(row, replace(draft, lineage_depth=_depth_after(asked)), read)
        if row.belief_id:
            belief = Belief.objects.get(pk=row.belief_id)
            self.apply(row, belief, asked)
            if row.outcome == FactOutcome.CREATED:
                link_neighbours(belief=belief, near=without_contradicted(near, asked), now=self.now)

    def _found(self, row: RememberedFact, draft: BeliefDraft, read: ReadFact, instead_of: Sequence[str] = ()) -> None:
        made = create_from_fact(
            draft=draft,
            episode=self.remembrance.episode,
            claim=read.claim,
            vector=None if read.vector is None else StatementVector(model=self.model, numbers=read.vector),
            call_id=read.call_id,
            author=self.author,
            instead_of=instead_of,
        )
        row.outcome = _OUTCOMES[made.outcome]
        if made.belief:
            self.made.add(made.belief.pk)
            row.belief = made.belief

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


class NeedsRuling(Exception):
    """Nothing was changed: a question stands open."""

    def __init__(self, question: ContradictionQuestion) -> None:
        super().__init__("a contradiction must be asked about first")
        self.question = question


_OUTCOMES = {
    CreationOutcome.CREATED: FactOutcome.CREATED,
    CreationOutcome.JOINED: FactOutcome.REINFORCED,
    CreationOutcome.SUPPRESSED: FactOutcome.SUPPRESSED,
    CreationOutcome.UNFOUNDED: FactOutcome.REFUSED,
}


def _contradiction_question(belief: BeliefDraft | Belief, match: FactMatch) -> ContradictionQuestion:
    known = {one.pk: one for one in Belief.objects.filter(pk__in=match.candidates)}
    candidates = [known[key] for key in match.candidates]
    return ContradictionQuestion(
        fact=as_stated_belief(belief),
        ids=match.candidates,
        beliefs=tuple(as_stated_belief(candidate) for candidate in candidates),
    )


def as_stated_belief(belief: BeliefDraft | Belief) -> StatedBelief:
    """Return a belief as a model is asked about it."""
    return StatedBelief(
        statement=belief.statement, subject=belief.subject, context=belief.context, language=belief.language
    )


def _depth_after(asked: tuple[ContradictionQuestion, Ruling] | None) -> int:
    """Count the structural changes that lead to what supersedes another belief."""
    if asked is None or not asked[1].rivals:
        return 0
    depths: list[int] = list(Belief.objects.filter(pk__in=asked[1].rivals).values_list("lineage_depth", flat=True))
    return max(depths) + 1


def without_contradicted(near: SimilarBeliefs, asked: tuple[ContradictionQuestion, Ruling] | None) -> SimilarBeliefs:
    """Leave out of what is near what a new belief contradicts."""
    rivals = asked[1].rivals if asked else ()
    return [one for one in near if one[0].id not in rivals]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFact:
    """A fact, its vector (768) if one could be had, and the call it came of; none for the text as it stands."""

    fact: FactToRemember
    vector: Vectors | None
    call_id: int | None
    claim: Claim | None = None  # that it was read as


def match_late_vector(*, meeting: FactMatcher, fact: RememberedFact, vector: Vectors) -> None:
    """Compare a belief that is there already with those beside it; raise NeedsRuling where one must be asked about.

    What says the same as another belief becomes part of that one. A text that was forgotten has no word to give.
    """
    assert fact.belief_id  # only a belief waits for a vector
    [belief] = lock_existing_beliefs([fact.belief_id])
    check_embedding_model(workspace_id=belief.workspace_id, model=meeting.model)
    store_belief_vectors(workspace_id=belief.workspace_id, model=meeting.model, vectors={belief.pk: vector})
    fact.is_unmatched = False
    if belief.status in LIVE and meeting.remembrance.episode.status not in WITHDRAWN_STATUSES:
        _match_late(meeting, fact, belief, vector)
    fact.save()


def _match_late(meeting: FactMatcher, fact: RememberedFact, belief: Belief, vector: Vectors) -> None:
    within = meeting.surroundings_of(belief)
    near = find_similar_beliefs(within=within, vector=vector, besides=belief.pk)
    near = [one for one in near if one[0].status != BeliefStatus.INVALIDATED]  # what was closed takes in no belief
    candidate = source_of_belief(belief=belief)
    match = choose_match(candidate=candidate, near=near)
    if match.course is MatchAction.REINFORCE:
        _merge_into(meeting, fact, belief, match.target)
    elif find_suppressed(workspace_id=belief.workspace_id, candidate=candidate, vector=vector):
        fact.outcome = FactOutcome.SUPPRESSED
        _close_belief(meeting, belief, BeliefStatus.INVALIDATED, PUT_AWAY)
    else:
        asked = meeting.rule(belief, match) if match.candidates else None
        meeting.apply(fact, belief, asked)
        link_neighbours(belief=belief, near=without_contradicted(near, asked), now=meeting.now)


def _merge_into(meeting: FactMatcher, fact: RememberedFact, belief: Belief, target: str) -> None:
    """Give a belief's word to the one that was there first, and let it go on in that one."""
    reinforce_belief(belief_id=target, episode=meeting.remembrance.episode, author=meeting.author)
    [twin] = lock_existing_beliefs([target])
    descent = LineageInput(parents=[belief], kind=LineageKind.MERGE, reason=REASON_EQUIVALENT)
    record_lineage(child=twin, descent=descent, author=meeting.author)
    _close_belief(meeting, belief, BeliefStatus.MERGED, REASON_EQUIVALENT)
    fact.outcome, fact.belief = FactOutcome.REINFORCED, twin


def _close_belief(meeting: FactMatcher, belief: Belief, status: BeliefStatus, reason: str) -> None:
    change_status(belief=belief, new=status, reason=reason, actor=meeting.author.actor, now=meeting.now)


def list_unmatched_facts(*, hold: JobLease) -> list[RememberedFact]:
    """List the facts of a remembrance whose beliefs wait for a vector."""
    return list(hold.remembrance.facts.filter(is_unmatched=True).select_related("belief"))


def embed_unmatched_facts(*, hold: JobLease, facts: Sequence[RememberedFact]) -> Mapping[str, Vectors]:
    """Embed what waits, and the episode where it waits, too; by their words. Raises NoModelAnswer."""
    episode = hold.remembrance.episode
    if episode.status not in WITHDRAWN_STATUSES and (matter := strip_echo(episode.text, episode.speaker)):
        begin_own_vector(episode=episode, matter=matter).collect()
    found = embed_texts(texts=[fact.text for fact in facts], episode=episode)
    if len(found) < len({fact.text for fact in facts}):
        raise NoModelAnswer("no vectors")
    return found
