"""Beliefs about beliefs: what a group of them comes down to, on the united evidence of all (R7)."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import structlog
from django.conf import settings
from django.db import transaction

from memory.consolidation.cycle import budget_policy, check_believing
from memory.consolidation.handmade import (
    CannotStand,
    Hand,
    Word,
    Wording,
    WordingVector,
    as_source,
    conceive_after,
    embed_wordings,
    store_handmade,
    trace_by_hand,
)
from memory.consolidation.locks import lock_beliefs, lock_workspace
from memory.consolidation.sayings import find_same
from memory.consolidation.sources import BeliefSource, read_beliefs
from memory.consolidation.testimony import Testimony, read_testimony
from memory.domain.clustering import centrality, cluster
from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.history.attribution import attribute_changes
from memory.llm.budget import CallBudget
from memory.llm.calls import Answer, Ask, Failure, answer_asks
from memory.llm.ledger import CallScope
from memory.llm.model import language_model
from memory.llm.replies import Synthesis
from memory.llm.requests import MetaRequest, StatedBelief
from memory.llm.workspace_model import embedder_of
from memory.models import Basis, Belief, BeliefAccess, EvidenceKind, FactType, LineageKind, Link, LinkKind, Workspace
from memory.models.beliefs import Timeframe
from memory.models.vectors import Vectors
from memory.remembering.meeting import is_suppressed

log = structlog.get_logger(__name__)

KNOWN = "a belief says the same, or a person put one away that does"
CLASH = "It supports one of the beliefs that this one is about, and contradicts another."


class GroupsUnanswered(RuntimeError):
    """Of some groups no model said anything that could be read; of the others beliefs may have been made."""

    def __init__(self, *, failures: Sequence[Failure], made: list[Belief]) -> None:
        first = failures[0]
        groups = "1 group" if len(failures) == 1 else f"{len(failures)} groups"
        super().__init__(f"No answer about {groups}: {first.kind}: {first.message}")
        self.made = made


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Beliefs of one project, user and language that are alike, the most central first, with their vectors (n, 768)."""

    beliefs: Sequence[BeliefSource]
    vectors: Vectors


def make_meta_beliefs(*, workspace: Workspace, hand: Hand) -> list[Belief]:
    """Make a belief about each of the largest groups of which there is none yet; where a model sees none, none is made.

    Rules make none. Raises what stops calls: MustWait, OutOfBudget; NoVector; and when every group had its turn,
    GroupsUnanswered where a model failed.
    """
    check_believing(workspace_id=workspace.pk)
    policy = settings.POLICY.reflection
    groups = sorted(_groups(workspace), key=lambda group: -len(group.beliefs))[: policy.meta_groups]
    failures: list[Failure] = []
    made = [belief for group in groups if (belief := _make(workspace, group, hand, failures))]
    if failures:
        raise GroupsUnanswered(failures=failures, made=made)
    return made


def _groups(workspace: Workspace) -> Iterator[Group]:
    """Yield the groups that are large enough, and that no belief is about as they are, nor ever was."""
    policy, model = settings.POLICY.reflection, embedder_of(workspace)
    plain = Belief.objects.for_workspace(workspace.pk).active().exclude(fact_type=FactType.META)
    beliefs, vectors = read_beliefs(beliefs=plain, model=model.name)
    known = _known_groups(workspace)
    scopes: dict[object, list[int]] = defaultdict(list)
    for place, belief in enumerate(beliefs):
        scopes[belief.project_id, belief.user, belief.language].append(place)
    for places in scopes.values():
        threshold = float(model.profile.raw(policy.meta_similarity))
        labels = cluster(vectors=vectors[places], threshold=threshold, policy=settings.POLICY.clustering)
        for label in range(int(labels.max()) + 1):
            members = [place for place, own in zip(places, labels, strict=True) if own == label]
            ids = frozenset(beliefs[place].id for place in members)
            if len(members) >= policy.meta_group and not any(ids <= group for group in known):
                central = [members[i] for i in centrality(vectors=vectors[members])]
                yield Group(beliefs=[beliefs[place] for place in central], vectors=vectors[central])


def _known_groups(workspace: Workspace) -> list[frozenset[str]]:
    links = Link.objects.for_workspace(workspace.pk).filter(kind=LinkKind.SOURCE)
    found: dict[str, set[str]] = defaultdict(set)
    for meta, source in links.values_list("belief_id", "other_id"):
        found[meta].add(source)
    return [frozenset(sources) for sources in found.values()]


def _make(workspace: Workspace, group: Group, hand: Hand, failures: list[Failure]) -> Belief | None:
    """Make the belief that a group comes down to, if any; what kept a model from answering goes to `failures`."""
    answer = _ask(workspace, group, failures)
    if answer is None or not isinstance(answer.reply, Synthesis) or not answer.reply.statement:
        return None
    said = answer.reply
    if said.statement.casefold() in {belief.statement.casefold() for belief in group.beliefs}:
        return None  # it says no more than one of them
    wording = Wording(
        statement=said.statement,
        subject=said.subject,
        predicate=said.predicate,
        context=said.context,
        timeframe=Timeframe(said.timeframe),
    )
    try:
        [vector] = embed_wordings(workspace_id=workspace.pk, statements=[said.statement])
    except CannotStand as refused:
        log.info("meta_belief_refused", workspace=workspace.pk, reason=str(refused))
        return None
    return _store(group, wording, vector, answer.call_id, hand)


def _ask(workspace: Workspace, group: Group, failures: list[Failure]) -> Answer | None:
    shown = group.beliefs[: settings.POLICY.reflection.meta_shown]
    told = read_testimony(beliefs=[belief.id for belief in group.beliefs])
    request = MetaRequest(
        beliefs=tuple(
            StatedBelief(
                statement=belief.statement, subject=belief.subject, context=belief.context, language=belief.language
            )
            for belief in shown
        ),
        episodes=tuple({said.episode.id: said.episode.as_text() for said in told}.values()),
    )
    answers: list[Answer] = []
    failures += answer_asks(
        asks=[Ask(key="", request=request)],
        scope=CallScope(workspace_id=workspace.pk),
        budget=CallBudget.of_step(seconds=settings.POLICY.remember.answer_seconds, policy=budget_policy()),
        model=language_model(),
        store=answers.extend,
    )
    return answers[0] if answers else None


@transaction.atomic
def _store(group: Group, wording: Wording, vector: WordingVector, call_id: int, hand: Hand) -> Belief | None:
    """Store a belief about others, unless one of them is believed no more by now, or what it says is known (B22)."""
    ids = [belief.id for belief in group.beliefs]
    sources = {belief.pk: belief for belief in _hold(ids)}
    if any(source.status != BeliefStatus.ACTIVE for source in sources.values()) or len(sources) < len(ids):
        return None
    first = sources[ids[0]]
    meta = conceive_after(parents=[first], wording=wording, now=hand.now)
    meta.fact_type, meta.is_pinned, meta.lineage_depth = FactType.META, False, 0
    meta.importance = max(source.importance for source in sources.values())
    if _is_known(meta, vector):
        log.info("meta_belief_refused", workspace=meta.workspace_id, reason=KNOWN)
        return None
    attribute_changes(actor=hand.actor, reason=hand.reason)
    store_handmade(belief=meta, vector=vector, words=list(_unite(ids, call_id)), now=hand.now)
    BeliefAccess.objects.filter(belief=meta).update(stability=settings.POLICY.reflection.meta_stability)
    trace_by_hand(child=meta, parents=list(sources.values()), kind=LineageKind.SYNTHESIS, hand=hand)
    _link(meta, group, vector)
    log.info("meta_belief_made", belief=meta.pk, sources=len(sources))
    return meta


def _is_known(meta: Belief, vector: WordingVector) -> bool:
    """Tell whether a belief says the same already, or a person put away or erased what does."""
    if is_suppressed(belief=meta, vector=vector.numbers):
        return True
    live = Belief.objects.for_workspace(meta.workspace_id).filter(status__in=LIVE, language=meta.language)
    seen = live.visible_in(meta.project_id).filter(user__in=("", meta.user))
    candidate = as_source(belief=meta)
    same = find_same(workspace_id=meta.workspace_id, candidate=candidate, vector=vector.numbers, among=seen)
    return same is not None


def _hold(ids: Collection[str]) -> list[Belief]:
    for workspace_id in set(Belief.objects.filter(pk__in=ids).values_list("workspace_id", flat=True)):
        lock_workspace(workspace_id)
    return lock_beliefs(ids)


def _unite(ids: Sequence[str], call_id: int) -> Iterator[Word]:
    """Unite what was said of several beliefs by episode: the heaviest word, PARTIAL where two clash."""
    by_episode: dict[str, list[Testimony]] = defaultdict(list)
    for said in read_testimony(beliefs=ids, with_echoes=True):
        by_episode[said.episode.id].append(said)
    for episode_id, words in by_episode.items():
        heaviest = max(words, key=lambda said: said.base_weight)
        verdicts = {said.verdict for said in words if said.base_weight > 0} or {heaviest.verdict}
        is_clash = len(verdicts) > 1
        yield Word(
            episode_id=episode_id,
            verdict=Verdict.PARTIAL if is_clash else next(iter(verdicts)),
            kind=EvidenceKind(heaviest.kind),
            base_weight=heaviest.base_weight,
            basis=Basis.UNITED if is_clash else Basis(heaviest.basis),
            reason=CLASH if is_clash else heaviest.reason,
            call_id=call_id,
        )


def _link(meta: Belief, group: Group, vector: WordingVector) -> None:
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
