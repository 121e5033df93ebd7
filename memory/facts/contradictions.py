"""Beliefs that may contradict each other: found, judged by a model, and left to a curator (R11).

`find_contradiction_candidates` lists pairs that are alike; `check_contradiction_candidates` has a model asked about
them. Nothing here changes a belief, its evidence or its status, whatever a model says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, IntegerField, QuerySet, Value, When

from memory.consolidation.cycle import budget_policy
from memory.consolidation.sources import read_evidence_items
from memory.facts.reflection import BeliefIds, BeliefPair, SimilarityBand, find_alike_pairs, keep_active, passes_guard
from memory.ledger.transactions import lock_workspace, scan_lock
from memory.llm.call_log import CallBudget, CallScope, OutOfBudget, RetryLater
from memory.llm.registry import language_model
from memory.llm.replies import Contradiction
from memory.llm.requests import ContradictionRequest, EpisodeText, StatedBelief
from memory.llm.runner import FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.llm.types import FailureKind, LanguageModel
from memory.models import Belief, ContradictionCandidate, ContradictionState, Workspace
from memory.models.beliefs import ContradictionQuerySet
from memory.text.names import name_user

log = structlog.get_logger(__name__)
NO_ANSWER = "no answer"
UNREADABLE = "no answer that could be read"
NO_SUCH_BELIEF = "the model named a belief that it was not asked about"


def find_contradiction_candidates(
    *, workspace: Workspace, now: datetime, most: int | None = None
) -> list[ContradictionCandidate]:
    """List the pairs that are alike enough to ask a model about; return the new ones, the most similar, so many.

    What is too alike to contradict may say the same, unless the guard tells the two apart. Raises WorkspaceBusy where
    somebody is looking already.
    """
    most = most or settings.POLICY.contradiction.pairs
    listed = ContradictionCandidate.objects.for_workspace(workspace.pk).standing()
    with scan_lock(workspace.pk):
        alike = _similar_pairs(workspace, list(listed.values_list("first_id", "second_id")), most)
    found = _store_candidates(workspace, alike, now)
    log.info("rivals_found", workspace=workspace.pk, pairs=len(found))
    return found


def _similar_pairs(workspace: Workspace, known: Collection[BeliefIds], most: int) -> list[BeliefPair]:
    """Return the pairs that a model may be asked about for their likeness alone."""
    policy = settings.POLICY.contradiction
    upper, lower = (
        SimilarityBand(low=policy.to_similarity),
        SimilarityBand(low=policy.from_similarity, high=policy.to_similarity),
    )
    nearest = find_alike_pairs(workspace=workspace, band=upper, most=settings.POLICY.reflection.pairs, besides=known)
    told_apart = [pair for pair in nearest.pairs if not passes_guard(pair=pair)][:most]
    return [*told_apart, *find_alike_pairs(workspace=workspace, band=lower, most=most, besides=known).pairs][:most]


@transaction.atomic
def _store_candidates(workspace: Workspace, found: Sequence[BeliefPair], now: datetime) -> list[ContradictionCandidate]:
    """Store pairs, but for those of which one was erased since, or is believed no more."""
    lock_workspace(workspace.pk)
    rows = [
        ContradictionCandidate(
            workspace=workspace,
            first_id=pair.one.id,
            second_id=pair.other.id,
            similarity=pair.similarity,
            created_at=now,
        )
        for pair in keep_active(found)
    ]
    return ContradictionCandidate.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["first", "second"], update_fields=["similarity"]
    )


def check_contradiction_candidates(
    *, workspace: Workspace, now: datetime, seconds: float, most: int | None = None, again: bool = False
) -> CheckOutcome:
    """Have a model asked about the pairs nobody was asked about, or so many, for as long as there is time.

    Where no model answers, or nobody can read what it says, the pair needs a person; `again` has it asked about once
    more. What was answered before the asking stopped is stored, and the other pairs stay open. The offline reader is
    silent where it is unsure: what it does not see stays open, too, and others have their turn first the next time.
    """
    if again:
        reopen_contradiction_candidates(
            rivals=believed_candidates(workspace=workspace).filter(state=ContradictionState.NEEDS_A_PERSON)
        )
    check = _CandidateCheck(workspace=workspace, now=now, model=language_model())
    turn = (F("checked_at").asc(nulls_first=True), "-similarity", "first_id", "second_id")
    unasked = believed_candidates(workspace=workspace).unasked().order_by(*turn)
    try:
        check.run(_group_by_belief(list(unasked[: most or settings.POLICY.contradiction.pairs])), seconds)
    except (RetryLater, OutOfBudget) as error:
        check.stopped = str(error)
    return CheckOutcome(outcomes=check.outcomes, stopped=check.stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateBatch:
    """Pairs that have a belief in common, asked about in one call."""

    common: Belief
    rivals: tuple[ContradictionCandidate, ...]

    def request(self) -> ContradictionRequest:
        """Ask which of the others the common belief contradicts."""
        others = (rival.second if rival.first_id == self.common.pk else rival.first for rival in self.rivals)
        beliefs = [self.common, *others]
        return ContradictionRequest(
            fact=_as_stated(beliefs[0]),
            beliefs=tuple(_as_stated(belief) for belief in beliefs[1:]),
            episodes=_supporting_episodes(beliefs),
            person=name_user(user=beliefs[0].user),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """How many pairs came to which state, and why not all were answered; empty if all were."""

    outcomes: Mapping[ContradictionState, int]
    stopped: str


def _group_by_belief(rivals: Sequence[ContradictionCandidate]) -> list[CandidateBatch]:
    """Put together the pairs that have a belief in common, beginning with the belief that has the most of them."""
    left = dict(enumerate(rivals))
    batches = []
    while left:
        counted = Counter(key for rival in left.values() for key in (rival.first_id, rival.second_id))
        common, _ = min(counted.items(), key=lambda each: (-each[1], each[0]))
        mine = [place for place, rival in left.items() if common in (rival.first_id, rival.second_id)]
        mine = mine[: settings.POLICY.contradiction.batch]
        pairs = tuple(left.pop(place) for place in mine)
        belief = pairs[0].first if pairs[0].first_id == common else pairs[0].second
        batches.append(CandidateBatch(common=belief, rivals=pairs))
    return batches


def _as_stated(belief: Belief) -> StatedBelief:
    """Return a belief as a model is asked about it, without its id: the same words have the same answer."""
    return StatedBelief(
        statement=belief.statement, subject=belief.subject, context=belief.context, language=belief.language
    )


def _supporting_episodes(beliefs: Sequence[Belief]) -> tuple[EpisodeText, ...]:
    """Return the episodes that beliefs rest on, so that erasing one finds the reply; no prompt has their words."""
    told = read_evidence_items(beliefs=[belief.pk for belief in beliefs])
    return tuple({said.episode.id: said.episode.as_text() for said in told}.values())


@dataclass(slots=True, kw_only=True)
class _CandidateCheck:
    """Batches on their way to an answer."""

    workspace: Workspace
    now: datetime
    model: LanguageModel
    outcomes: Counter[ContradictionState] = field(default_factory=Counter)
    stopped: str = ""

    def run(self, batches: Sequence[CandidateBatch], seconds: float) -> None:
        """Ask about all batches at once, within one budget."""
        by_key = {str(number): batch for number, batch in enumerate(batches)}

        def store(answers: Sequence[ModelAnswer]) -> None:
            for answer in answers:
                self._hear(by_key[answer.key], answer)

        failures = run_requests(
            asks=[ModelRequest(key=key, request=batch.request()) for key, batch in by_key.items()],
            scope=CallScope(workspace_id=self.workspace.pk),
            budget=CallBudget.of_step(seconds=seconds, policy=budget_policy()),
            model=self.model,
            store=store,
        )
        for failure in failures:
            self.stopped = _why(failure)
            self._settle(by_key[failure.key].rivals, ContradictionState.NEEDS_A_PERSON, reason=self.stopped)

    def _hear(self, batch: CandidateBatch, answer: ModelAnswer) -> None:
        """Write down what a reply says of all of its pairs; what the offline reader does not see stays open."""
        reply = answer.reply
        assert isinstance(reply, Contradiction)  # it was asked about a contradiction
        places = reply.places(among=len(batch.rivals))
        if places is None:
            self._settle(batch.rivals, ContradictionState.NEEDS_A_PERSON, reason=NO_SUCH_BELIEF, call_id=answer.call_id)
            return
        chosen = [batch.rivals[place] for place in places]
        others = [rival for rival in batch.rivals if rival not in chosen]
        self._settle(chosen, ContradictionState.CONTRADICTS, reason=reply.reason, call_id=answer.call_id)
        if self.model.is_offline:
            ContradictionCandidate.objects.unasked().filter(pk__in=[rival.pk for rival in others]).update(
                checked_at=self.now
            )
        else:
            reason = "" if chosen else reply.reason
            self._settle(others, ContradictionState.COMPATIBLE, reason=reason, call_id=answer.call_id)

    def _settle(
        self,
        rivals: Sequence[ContradictionCandidate],
        state: ContradictionState,
        *,
        reason: str,
        call_id: int | None = None,
    ) -> None:
        """Write down what became of pairs, unless a curator was faster."""
        if not rivals:
            return
        open_ones = ContradictionCandidate.objects.unasked().filter(pk__in=[rival.pk for rival in rivals])
        self.outcomes[state] += open_ones.update(state=state, reason=reason, call=call_id, checked_at=self.now)
        log.info("rivals_checked", workspace=self.workspace.pk, pairs=len(rivals), state=state)


def _why(failure: FailedRequest) -> str:
    """Say why a call failed, in no words of a server: they stand in the ledger, from where erasing takes them."""
    is_unreadable = failure.kind in (FailureKind.MALFORMED, FailureKind.BAD_REQUEST, FailureKind.OWN_ERROR)
    return f"{UNREADABLE if is_unreadable else NO_ANSWER}: {failure.kind.replace('_', ' ')}"


_URGENCY = (ContradictionState.CONTRADICTS, ContradictionState.NEEDS_A_PERSON, ContradictionState.OPEN)


def believed_candidates(*, workspace: Workspace) -> ContradictionQuerySet:
    """Return the pairs of which both are believed, whatever is known of them."""
    rivals = ContradictionCandidate.objects.for_workspace(workspace.pk).standing().select_related("first", "second")
    return rivals.defer("first__search", "second__search")


def list_contradiction_candidates(
    *, workspace: Workspace, state: ContradictionState | None = None
) -> QuerySet[ContradictionCandidate]:
    """Return the pairs in a state, or those that somebody should look at: contradictions first.

    Of each state the most similar come before others. What is alike and no more is for a model to look at first.
    """
    urgency = Case(*(When(state=state, then=Value(n)) for n, state in enumerate(_URGENCY)), output_field=IntegerField())
    standing = believed_candidates(workspace=workspace)
    standing = standing.filter(state=state) if state else standing.suspected().filter(state__in=_URGENCY)
    return standing.order_by(urgency, "-similarity", "first_id", "second_id")


def dismiss_contradiction_candidates(*, rivals: QuerySet[ContradictionCandidate]) -> int:
    """Take pairs off the list until somebody opens them again, as a curator wants; return how many."""
    return rivals.exclude(state=ContradictionState.DISMISSED).update(state=ContradictionState.DISMISSED)


def reopen_contradiction_candidates(*, rivals: QuerySet[ContradictionCandidate]) -> int:
    """Let the next check ask about pairs again, as a curator wants; return how many."""
    return rivals.update(state=ContradictionState.OPEN, reason="", checked_at=None, call=None)
