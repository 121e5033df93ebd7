"""Beliefs that may contradict each other: found, held against each other by a model, and left to a curator (R11).

Nothing here changes a belief, its evidence or its status, whatever a model says.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, IntegerField, QuerySet, Value, When

from memory.consolidation.cycle import budget_policy
from memory.consolidation.locks import lock_workspace
from memory.consolidation.testimony import read_testimony
from memory.llm.budget import CallBudget, MustWait, OutOfBudget
from memory.llm.calls import Answer, Ask, Failure, answer_asks
from memory.llm.ledger import CallScope
from memory.llm.model import language_model
from memory.llm.replies import Contradiction
from memory.llm.requests import ContradictionRequest, EpisodeText
from memory.models import Belief, Rival, RivalState, Workspace
from memory.remembering.meeting import as_stated
from memory.remembering.pairing import Band, Pair, most_alike, still_active

log = structlog.get_logger(__name__)

NO_ANSWER = "no answer that could be read"
NO_SUCH_BELIEF = "the model named a belief that it was not asked about"
_URGENCY = (RivalState.CONTRADICTS, RivalState.NEEDS_A_PERSON, RivalState.OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Pairs that have their first belief in common, asked about in one call."""

    rivals: tuple[Rival, ...]

    def request(self) -> ContradictionRequest:
        """Ask which of the others the common belief contradicts, if any."""
        beliefs = [self.rivals[0].first, *(rival.second for rival in self.rivals)]
        return ContradictionRequest(
            fact=as_stated(belief=beliefs[0]),
            beliefs=tuple(as_stated(belief=belief) for belief in beliefs[1:]),
            episodes=_behind(beliefs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How many pairs were settled, and what stopped the asking; empty if nothing did."""

    settled: int
    stopped: str


def find_rivals(*, workspace: Workspace, now: datetime, most: int | None = None) -> list[Rival]:
    """List the most similar pairs that may contradict each other and are not listed yet; return those."""
    policy = settings.POLICY.rivals
    listed = Rival.objects.for_workspace(workspace.pk).standing()
    found = most_alike(
        workspace=workspace,
        band=Band(low=policy.from_similarity, high=policy.to_similarity),
        most=most or policy.pairs,
        besides=list(listed.values_list("first_id", "second_id")),
    )
    rivals = _list(workspace, found.pairs, now)
    log.info("rivals_found", workspace=workspace.pk, pairs=len(rivals))
    return rivals


@transaction.atomic
def _list(workspace: Workspace, pairs: Sequence[Pair], now: datetime) -> list[Rival]:
    """Store pairs, but for those of which one was erased since, or is believed no more."""
    lock_workspace(workspace.pk)
    rows = [
        Rival(
            workspace=workspace,
            first_id=pair.one.id,
            second_id=pair.other.id,
            similarity=pair.similarity,
            created_at=now,
        )
        for pair in still_active(pairs)
    ]
    return Rival.objects.bulk_create(rows, ignore_conflicts=True)


def standing_rivals(*, workspace: Workspace) -> QuerySet[Rival]:
    """Return the pairs of which both are believed, whatever is known of them."""
    rivals = Rival.objects.for_workspace(workspace.pk).standing().select_related("first", "second")
    return rivals.defer("first__search", "second__search")


def list_rivals(*, workspace: Workspace) -> QuerySet[Rival]:
    """Return the pairs that somebody should look at: contradictions first, the most similar before others."""
    urgency = Case(*(When(state=state, then=Value(n)) for n, state in enumerate(_URGENCY)), output_field=IntegerField())
    standing = standing_rivals(workspace=workspace).filter(state__in=_URGENCY)
    return standing.order_by(urgency, "-similarity", "first_id", "second_id")


def check_rivals(*, workspace: Workspace, now: datetime, seconds: float, most: int | None = None) -> Checked:
    """Have a model asked about the pairs nobody was asked about, or so many, for as long as there is time.

    Where no model answers, or nobody can read what it says, the pair needs a person. What was answered before the
    asking stopped is stored, and the other pairs stay open.
    """
    check = _Check(workspace=workspace, now=now)
    unasked = (
        standing_rivals(workspace=workspace)
        .filter(state=RivalState.OPEN)
        .order_by("-similarity", "first_id", "second_id")
    )
    stopped = ""
    try:
        check.run(_batches(list(unasked[: most or settings.POLICY.rivals.pairs])), seconds)
    except (MustWait, OutOfBudget) as error:
        stopped = str(error)
    return Checked(settled=len(check.settled), stopped=stopped)


def dismiss_rivals(*, rivals: QuerySet[Rival]) -> int:
    """Take pairs off the list for good, as a curator wants; return how many."""
    return rivals.exclude(state=RivalState.DISMISSED).update(state=RivalState.DISMISSED)


def reopen_rivals(*, rivals: QuerySet[Rival]) -> int:
    """Let the next check ask about pairs again, as a curator wants; return how many."""
    return rivals.update(state=RivalState.OPEN, reason="", checked_at=None, call=None)


def _batches(rivals: Sequence[Rival]) -> list[Batch]:
    """Put together the pairs that have their first belief in common, so many at a time."""
    size = settings.POLICY.rivals.batch
    common: dict[str, list[Rival]] = defaultdict(list)
    for rival in rivals:
        common[rival.first_id].append(rival)
    return [Batch(rivals=tuple(of[n : n + size])) for of in common.values() for n in range(0, len(of), size)]


def _behind(beliefs: Sequence[Belief]) -> tuple[EpisodeText, ...]:
    """Return the episodes that beliefs rest on, so that erasing one finds the reply; no prompt has their words."""
    told = read_testimony(beliefs=[belief.pk for belief in beliefs])
    return tuple({said.episode.id: said.episode.as_text() for said in told}.values())


@dataclass(slots=True, kw_only=True)
class _Check:
    """Batches on their way to an answer: a reply names one belief at most, and the others are asked about once more."""

    workspace: Workspace
    now: datetime
    settled: list[int] = field(default_factory=list)

    def run(self, batches: Sequence[Batch], seconds: float) -> None:
        """Ask about all batches, then about what the replies left over, within one budget."""
        budget = CallBudget.of_step(seconds=seconds, policy=budget_policy())
        while batches:
            batches = self._ask(batches, budget)

    def _ask(self, batches: Sequence[Batch], budget: CallBudget) -> list[Batch]:
        """Ask about batches at once; return those that are left of them."""
        by_key = {str(number): batch for number, batch in enumerate(batches)}
        left: list[Batch] = []

        def store(answers: Sequence[Answer]) -> None:
            for answer in answers:
                left.extend(self._hear(by_key[answer.key], answer))

        failures = answer_asks(
            asks=[Ask(key=key, request=batch.request()) for key, batch in by_key.items()],
            scope=CallScope(workspace_id=self.workspace.pk),
            budget=budget,
            model=language_model(),
            store=store,
        )
        for failure in failures:
            self._settle(by_key[failure.key].rivals, RivalState.NEEDS_A_PERSON, reason=_why(failure))
        return left

    def _hear(self, batch: Batch, answer: Answer) -> Iterator[Batch]:
        """Write down what a reply says; yield what it says nothing of."""
        reply = answer.reply
        assert isinstance(reply, Contradiction)  # it was asked about a contradiction
        if reply.contradicts is None:
            self._settle(batch.rivals, RivalState.COMPATIBLE, reason=reply.reason, call_id=answer.call_id)
        elif not 1 <= reply.contradicts <= len(batch.rivals):
            self._settle(batch.rivals, RivalState.NEEDS_A_PERSON, reason=NO_SUCH_BELIEF, call_id=answer.call_id)
        else:
            chosen = batch.rivals[reply.contradicts - 1]
            self._settle([chosen], RivalState.CONTRADICTS, reason=reply.reason, call_id=answer.call_id)
            if others := tuple(rival for rival in batch.rivals if rival is not chosen):
                yield Batch(rivals=others)

    def _settle(self, rivals: Sequence[Rival], state: RivalState, *, reason: str, call_id: int | None = None) -> None:
        """Write down what became of pairs, unless a curator was faster."""
        open_ones = Rival.objects.unasked().filter(pk__in=[rival.pk for rival in rivals])
        self.settled += [rival.pk for rival in rivals]
        open_ones.update(state=state, reason=reason, call=call_id, checked_at=self.now)
        log.info("rivals_checked", workspace=self.workspace.pk, pairs=len(rivals), state=state)


def _why(failure: Failure) -> str:
    """Say why a call failed, in no words of a server: they stand in the ledger, from where erasing takes them."""
    return f"{NO_ANSWER}: {failure.kind.replace('_', ' ')}"
