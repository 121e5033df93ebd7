"""Beliefs about beliefs: what a group of them comes down to, on the united evidence of all (R7).

`make_meta_beliefs` finds the groups, asks a model about the largest, embeds its answers and stores them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.curation import (
    BeliefText,
    InvalidStatement,
    check_statement,
    draft_from_text,
    embed_statements,
)
from memory.consolidation.cycle import budget_policy, check_beliefs_enabled
from memory.consolidation.sources import EvidenceItem, read_evidence_items
from memory.domain.clustering import centrality, cluster
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus
from memory.domain.time_limits import holds_a_call, step_seconds
from memory.ledger.beliefs import (
    BeliefDraft,
    BeliefSource,
    EmbeddingUnavailable,
    StatementVector,
    create_belief,
    find_equivalent,
    find_suppressed,
    read_beliefs_with_vectors,
)
from memory.ledger.confidence import chosen_confidence
from memory.ledger.evidence import EvidenceInput
from memory.ledger.transactions import Author, LineageInput, lock_beliefs, lock_workspace, scan_lock
from memory.llm.call_log import CallBudget, CallScope, OutOfBudget, RetryLater, find_replies
from memory.llm.embeddings import embedder_of
from memory.llm.registry import language_model
from memory.llm.replies import Synthesis
from memory.llm.requests import MetaRequest
from memory.llm.runner import FailedRequest, ModelAnswer, ModelRequest, run_requests
from memory.models import Basis, Belief, BeliefAccess, EvidenceKind, FactType, LineageKind, Link, LinkKind, Workspace
from memory.models.beliefs import Timeframe
from memory.search.vectors import Vectors
from memory.text.names import name_user

log = structlog.get_logger(__name__)
META_REASON = "what several beliefs come down to"  # why one is made
_EXAMINED_PER_TURN = 10  # times as many groups as have their turn
ALREADY_KNOWN = "a belief says the same, or a person put one away that does"
NEEDS_A_MODEL = "Rules make no beliefs about others: that takes a language model."
CLASH = "It supports one of the beliefs that this one is about, and contradicts another."


def make_meta_beliefs(*, workspace: Workspace, author: Author) -> MetaRound:
    """Make a belief about each of the largest groups of which there is none yet; where a model sees none, none is made.

    Rules make none. Groups without an answer have their turn again the next time. Raises BeliefsDisabled, or
    WorkspaceBusy where somebody looks at all beliefs already.
    """
    check_beliefs_enabled(workspace_id=workspace.pk)
    with scan_lock(workspace.pk):
        groups = _choose_groups(workspace, sorted(_find_groups(workspace), key=lambda group: -len(group.beliefs)))
    if groups and language_model().is_offline:
        return MetaRound(groups=len(groups), made=[], unanswered=NEEDS_A_MODEL)
    budget = CallBudget.of_step(seconds=_seconds(), policy=budget_policy())
    answers, unanswered = _ask(workspace, groups, budget)
    wordings = {place: _wording_of(workspace, groups[place], answer) for place, answer in answers.items()}
    says = {place: wording for place, wording in wordings.items() if wording}
    made: list[Belief] = []
    try:
        for place, vector in _embed(workspace, says, budget).items():
            belief = _store(groups[place], says[place], vector, answers[place].call_id, author)
            made += [belief] if belief else []
    except EmbeddingUnavailable as error:
        unanswered = unanswered or str(error)
    return MetaRound(groups=len(groups), made=made, unanswered=unanswered)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRound:
    """How many groups there were to ask about, the beliefs that were made, and why not every group had its turn.

    `unanswered` is empty if each had.
    """

    groups: int
    made: Sequence[Belief]
    unanswered: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefGroup:
    """Beliefs of one project, user and language that are alike, the most central first, with their vectors (n, 768)."""

    beliefs: Sequence[BeliefSource]
    vectors: Vectors


def _seconds() -> float:
    """Return the time of one round: that of an answer, and where no call fits into it that of any step."""
    answer = settings.POLICY.remember.answer_seconds
    return answer if holds_a_call(seconds=answer, budget=budget_policy()) else step_seconds(budget=budget_policy())


def _find_groups(workspace: Workspace) -> Iterator[BeliefGroup]:
    """Yield the groups that are large enough, and that no belief is about as they are, nor ever was."""
    policy, model = settings.POLICY.reflection, embedder_of(workspace)
    plain = Belief.objects.for_workspace(workspace.pk).active().exclude(fact_type=FactType.META)
    beliefs, vectors = read_beliefs_with_vectors(beliefs=plain, model=model.name)
    known = _known_groups(workspace)
    scopes: dict[object, list[int]] = defaultdict(list)
    for place, belief in enumerate(beliefs):
        scopes[belief.project_id, belief.user, belief.language].append(place)
    for places in scopes.values():
        threshold = float(model.profile.raw(policy.meta_similarity))
        labels = cluster(vectors=vectors[places], threshold=threshold, policy=settings.POLICY.clustering)
        order = np.argsort(labels, kind="stable")
        for own in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            members = [places[place] for place in own]
            ids = frozenset(beliefs[place].id for place in members)
            if len(members) >= policy.meta_group and not any(ids <= group for group in known):
                central = [members[i] for i in centrality(vectors=vectors[members])]
                yield BeliefGroup(beliefs=[beliefs[place] for place in central], vectors=vectors[central])


def _choose_groups(workspace: Workspace, groups: Sequence[BeliefGroup]) -> list[BeliefGroup]:
    """Return the first groups that no model was asked about as they are, and of the others those it said something of.

    What it said may have waited for a vector. A group of which it saw nothing stands in no other's way.
    """
    most = settings.POLICY.reflection.meta_groups
    looked_at = groups[: _EXAMINED_PER_TURN * most]
    stored = find_replies(
        scope=CallScope(workspace_id=workspace.pk),
        requests=[_request(group) for group in looked_at],
        model=language_model(),
    )
    fresh = [group for group, reply in zip(looked_at, stored, strict=True) if reply is None]
    told = [
        group
        for group, known in zip(looked_at, stored, strict=True)
        if known is not None and isinstance(known.reply, Synthesis) and known.reply.statement
    ]
    return [*fresh[:most], *told[:most]]


def _known_groups(workspace: Workspace) -> list[frozenset[str]]:
    links = Link.objects.for_workspace(workspace.pk).filter(kind=LinkKind.SOURCE)
    found: dict[str, set[str]] = defaultdict(set)
    for meta, source in links.values_list("belief_id", "other_id"):
        found[meta].add(source)
    return [frozenset(sources) for sources in found.values()]


def _wording_of(workspace: Workspace, group: BeliefGroup, answer: ModelAnswer) -> BeliefText | None:
    """Return what a model says that a group comes down to, if it says more than one of them does, and it can stand."""
    said = answer.reply
    if not isinstance(said, Synthesis) or not said.statement:
        return None
    if said.statement.casefold() in {belief.statement.casefold() for belief in group.beliefs}:
        return None
    try:
        check_statement(statement=said.statement)
    except InvalidStatement as refused:
        log.info("meta_belief_refused", workspace=workspace.pk, reason=str(refused))
        return None
    return BeliefText(
        statement=said.statement,
        subject=said.subject,
        predicate=said.predicate,
        context=said.context,
        timeframe=Timeframe(said.timeframe),
    )


def _embed(workspace: Workspace, says: Mapping[int, BeliefText], budget: CallBudget) -> dict[int, StatementVector]:
    """Embed all statements in one call, in the time that is left, the largest group first; raise EmbeddingUnavailable.

    Where too little is left nothing is lost: the replies stand in the ledger, and the next round begins with them.
    """
    if not says:
        return {}
    places = sorted(says)
    vectors = embed_statements(
        workspace_id=workspace.pk,
        statements=[says[place].statement for place in places],
        seconds=min(max(budget.seconds_left(), budget.margin), budget.call_timeout),
    )
    return dict(zip(places, vectors, strict=True))


def _ask(workspace: Workspace, groups: Sequence[BeliefGroup], budget: CallBudget) -> tuple[dict[int, ModelAnswer], str]:
    """Ask about all groups at once; return the answers by place, and why there are not as many as groups."""
    answers: list[ModelAnswer] = []
    stopped, failures = "", []
    try:
        failures = run_requests(
            asks=[ModelRequest(key=str(place), request=_request(group)) for place, group in enumerate(groups)],
            scope=CallScope(workspace_id=workspace.pk),
            budget=budget,
            model=language_model(),
            store=answers.extend,
        )
    except (RetryLater, OutOfBudget) as error:
        stopped = str(error)
    by_place = {int(answer.key): answer for answer in answers}
    return by_place, _why(missing=len(groups) - len(by_place), stopped=stopped, failures=failures)


def _why(*, missing: int, stopped: str, failures: Sequence[FailedRequest]) -> str:
    """Say why groups are without an answer, in no words of a server."""
    if not missing:
        return ""
    reason = stopped or failures[0].kind.replace("_", " ")
    return f"No answer about {'1 group' if missing == 1 else f'{missing} groups'}: {reason}"


def _request(group: BeliefGroup) -> MetaRequest:
    told = read_evidence_items(beliefs=[belief.id for belief in group.beliefs])
    shown = group.beliefs[: settings.POLICY.reflection.meta_shown]
    sure = Belief.objects.select_related("workspace").in_bulk([belief.id for belief in shown])
    return MetaRequest(
        beliefs=tuple(belief.as_stated() for belief in shown),
        confidences=tuple(chosen_confidence(sure[belief.id]) for belief in shown),
        episodes=tuple({said.episode.id: said.episode.as_text() for said in told}.values()),
        person=name_user(user=group.beliefs[0].user),
    )


@transaction.atomic
def _store(
    group: BeliefGroup, wording: BeliefText, vector: StatementVector, call_id: int, author: Author
) -> Belief | None:
    """Store a belief about others, unless one of them is believed no more by now, or what it says is known (B22)."""
    ids = [belief.id for belief in group.beliefs]
    sources = {belief.pk: belief for belief in _lock_sources(ids)}
    if any(source.status != BeliefStatus.ACTIVE for source in sources.values()) or len(sources) < len(ids):
        return None
    parents = [sources[key] for key in ids]
    draft = replace(
        draft_from_text(parents=parents, wording=wording), fact_type=FactType.META, is_pinned=False, lineage_depth=0
    )
    if _is_known(draft, vector):
        log.info("meta_belief_refused", workspace=draft.workspace_id, reason=ALREADY_KNOWN)
        return None
    made = create_belief(
        draft=draft,
        vector=vector,
        said=_merge_evidence(ids, call_id),
        author=author,
        descent=LineageInput(parents=parents, kind=LineageKind.SYNTHESIS, reason=author.reason),
    )
    if made.belief is None:
        return None
    BeliefAccess.objects.filter(belief=made.belief).update(stability=settings.POLICY.reflection.meta_stability)
    _link_sources(made.belief, group, vector)
    log.info("meta_belief_made", belief=made.belief.pk, sources=len(sources))
    return made.belief


def _is_known(draft: BeliefDraft, vector: StatementVector) -> bool:
    """Tell whether a belief says the same already, or a person put away or erased what does."""
    candidate = draft.as_source()
    if find_suppressed(workspace_id=draft.workspace_id, candidate=candidate, vector=vector.numbers):
        return True
    live = Belief.objects.for_workspace(draft.workspace_id).filter(status__in=LIVE, language=draft.language)
    seen = live.visible_in(draft.project_id).filter(user__in=("", draft.user))
    same = find_equivalent(workspace_id=draft.workspace_id, candidate=candidate, vector=vector.numbers, among=seen)
    return same is not None


def _lock_sources(ids: Collection[str]) -> list[Belief]:
    for workspace_id in set(Belief.objects.filter(pk__in=ids).values_list("workspace_id", flat=True)):
        lock_workspace(workspace_id)
    return lock_beliefs(ids)


def _merge_evidence(ids: Sequence[str], call_id: int) -> Iterator[EvidenceInput]:
    """Unite what was said of several beliefs by episode: the heaviest word, PARTIAL where two clash."""
    by_episode: dict[str, list[EvidenceItem]] = defaultdict(list)
    for said in read_evidence_items(beliefs=ids, with_echoes=True):
        by_episode[said.episode.id].append(said)
    for episode_id, words in by_episode.items():
        heaviest = max(words, key=lambda said: said.base_weight)
        verdicts = {said.verdict for said in words if said.base_weight > 0} or {heaviest.verdict}
        is_clash = len(verdicts) > 1
        yield EvidenceInput(
            episode_id=episode_id,
            verdict=Verdict.PARTIAL if is_clash else next(iter(verdicts)),
            kind=EvidenceKind(heaviest.kind),
            base_weight=heaviest.base_weight,
            basis=Basis.UNITED if is_clash else Basis(heaviest.basis),
            reason=CLASH if is_clash else heaviest.reason,
            call_id=call_id,
            claim_id=heaviest.claim_id,
        )


def _link_sources(meta: Belief, group: BeliefGroup, vector: StatementVector) -> None:
    profile = embedder_of(meta.workspace_id).profile
    likeness = profile.reference(group.vectors.astype("float64") @ vector.numbers.astype("float64"))
    Link.objects.bulk_create(
        Link(
            workspace_id=meta.workspace_id,
            belief=meta,
            other_id=source.id,
            kind=LinkKind.SOURCE,
            similarity=float(value),
            created_at=meta.created_at,
        )
        for source, value in zip(group.beliefs, likeness, strict=True)
    )
