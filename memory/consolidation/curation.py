"""What a person makes of beliefs in their own words: state one, merge two, split one, contradict or replace one.

The rule is Curators.

A curator's word stands for the gates' and for a model's: nothing waits for a cycle, and nothing asks a model (R7,
B12, B13). `embed_statements` checks and embeds the words first, outside of any transaction. The rows of these acts
name no cycle, and a rebuild repeats them as they were said (B22).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction

from memory.access import Viewer, check_may_change, visible_episodes
from memory.consolidation.cycle import budget_policy, check_beliefs_enabled
from memory.consolidation.episode_states import pool_orphaned_evidence, settle_evidenced
from memory.consolidation.sources import EvidenceItem, merge_evidence_items, read_evidence_items
from memory.domain.errors import EngramError
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus, ConsolidationState, IllegalTransitionError
from memory.domain.statements import Refusal, refuse_statement
from memory.language.words import detect_language
from memory.ledger.beliefs import (
    BeliefDraft,
    CreationOutcome,
    CreationResult,
    EmbeddingUnavailable,
    StatementVector,
    beliefs_in_same_scope,
    create_belief,
    draft_successor,
    find_equivalent,
)
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EvidenceInput, record_evidence
from memory.ledger.transactions import Author, LineageInput, change_status, lock_existing_beliefs, lock_workspace
from memory.llm.call_log import CallScope, DailyCapReached
from memory.llm.embeddings import embed_for_workspace, embedder_of
from memory.llm.reader import reader
from memory.llm.types import CallFailed
from memory.models import Basis, Belief, Episode, EvidenceKind, FactType, LineageKind, Workspace
from memory.models.beliefs import Timeframe

log = structlog.get_logger(__name__)


@transaction.atomic
def state_belief(
    *,
    wording: BeliefText,
    vector: StatementVector,
    verdicts: Mapping[str, Verdict],
    viewer: Viewer,
    author: Author,
    fact_type: FactType = FactType.FACTUAL,
    importance: int = 5,
) -> Belief:
    """Found a belief on episodes that the curator may see; whose it is follows from them (B21).

    Raise InvalidEvidence, OutsideProjects, or DuplicateBelief where a belief says the same or a person archived one
    that did.
    """
    workspace = viewer.workspace
    lock_workspace(workspace.pk)
    check_beliefs_enabled(workspace_id=workspace.pk)
    episodes = _lock_evidence_episodes(verdicts, viewer)
    draft = replace(_draft_stated(workspace, wording, episodes), fact_type=fact_type, importance=importance)
    check_may_change(
        project_id=draft.project_id, viewer=viewer
    )  # before a belief that the curator may not see is named
    _check_not_duplicate(draft, vector)
    words = [EvidenceInput(episode_id=key, verdict=verdict) for key, verdict in verdicts.items()]
    belief = _require_belief(create_belief(draft=draft, vector=vector, said=words, author=author, even_suppressed=True))
    settle_curated(episodes=list(verdicts))
    log.info("beliefs_reshaped", beliefs=[belief.pk], status=belief.status, actor=str(author.actor))
    return belief


def _lock_evidence_episodes(verdicts: Mapping[str, Verdict], viewer: Viewer) -> list[Episode]:
    """Lock what is to be evidence; raise InvalidEvidence for what cannot be."""
    seen = visible_episodes(viewer=viewer).filter(pk__in=list(verdicts), is_derived=False)
    found = seen.exclude(status__in=WITHDRAWN_STATUSES)
    episodes = list(found.select_for_update(no_key=True).defer("search").order_by("pk"))
    _check_known(verdicts, [episode.pk for episode in episodes])
    return episodes


def _draft_stated(workspace: Workspace, wording: BeliefText, episodes: Sequence[Episode]) -> BeliefDraft:
    """Return what a curator states, of one project and of one user if all its episodes are."""
    projects, users = {episode.project_id for episode in episodes}, {episode.user for episode in episodes}
    return BeliefDraft(
        workspace_id=workspace.pk,
        statement=wording.statement,
        subject=wording.subject or "",
        predicate=wording.predicate or "",
        context=wording.context or "general",
        timeframe=wording.timeframe or Timeframe.CURRENT,
        language=wording.language(otherwise=episodes[0].language),
        project_id=projects.pop() if len(projects) == 1 else None,
        user=users.pop() if len(users) == 1 else "",
    )


def _check_not_duplicate(draft: BeliefDraft, vector: StatementVector) -> None:
    """Raise DuplicateBelief for what is believed already, and for what a person archived, which can be restored (B22).

    What was forgotten cannot: a curator may state it again.
    """
    alike = beliefs_in_same_scope(draft=draft)
    archived = alike.filter(status=BeliefStatus.ARCHIVED, archived_by_person_at__isnull=False)
    for among, message in (
        (
            alike.filter(status__in=LIVE),
            "{} says the same, as far as this machine can tell: reword yours, or store what bears it out as episodes.",
        ),
        (archived, "{} says the same, and a person archived it: restore that one."),
    ):
        same = find_equivalent(
            workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=vector.numbers, among=among
        )
        if same:
            raise DuplicateBelief(message.format(same), belief_id=same)


@transaction.atomic
def merge_beliefs(
    *, ids: tuple[str, str], wording: BeliefText, vector: StatementVector, author: Author
) -> CurationResult:
    """Put one belief in the place of two live ones of one scope, on the united evidence of both (B13)."""
    parents = _lock_live_beliefs(ids)
    one, other = (next(belief for belief in parents if belief.pk == key) for key in ids)
    if (one.project_id, one.user) != (other.project_id, other.user):
        raise DifferentScopes("Beliefs of different projects or users cannot be merged.")
    words = [_inherited_evidence(*pair) for pair in merge_evidence_items(belief_id=one.pk, twin_id=other.pk)]
    made = _create_successor(wording, vector, words, parents=[one, other], kind=LineageKind.MERGE, author=author)
    _end_parents([one, other], BeliefStatus.MERGED, author)
    return _curation_result([made], [one, other])


@transaction.atomic
def split_belief(*, belief_id: str, parts: Sequence[SplitPart], author: Author) -> CurationResult:
    """Put several beliefs in the place of a live one, each on the evidence that the curator gives it (B12).

    What is evidence of no part waits in the pool for others like it.
    """
    [parent] = _lock_live_beliefs([belief_id])
    testimony = {said.episode.id: said for said in read_evidence_items(beliefs=[belief_id])}
    children = []
    for part in parts:
        _check_known(part.verdicts, testimony)
        words = [_assigned_evidence(testimony[key], verdict) for key, verdict in part.verdicts.items()]
        children.append(
            _create_successor(part.wording, part.vector, words, parents=[parent], kind=LineageKind.SPLIT, author=author)
        )
    _end_parents([parent], BeliefStatus.SPLIT, author)
    pool_orphaned_evidence(belief=parent, now=author.now)
    return _curation_result(children, [parent])


@transaction.atomic
def contradict_belief(*, belief_id: str, episode_id: str, author: Author) -> Belief:
    """Let a curator's word stand against a live belief; what follows from it the gates decide (B4)."""
    [belief] = _lock_live_beliefs([belief_id])
    _record_curator_word(belief, episode_id, Verdict.CONTRADICTS, author)
    settle_curated(episodes=[episode_id])
    return belief


@transaction.atomic
def replace_belief(
    *, belief_id: str, wording: BeliefText, vector: StatementVector, episode_id: str, author: Author
) -> CurationResult:
    """Put what a curator says in the place of a live belief: the old one is revised, superseded by the new (R7).

    Where another belief says the same already, that one takes the curator's word.
    """
    [parent] = _lock_live_beliefs([belief_id])
    word = curator_evidence(episode_id=episode_id, verdict=Verdict.SUPPORTS, reason=author.reason)
    made = _create_successor(wording, vector, [word], parents=[parent], kind=LineageKind.SUPERSESSION, author=author)
    _record_curator_word(parent, episode_id, Verdict.CONTRADICTS, author)
    _end_parents([parent], BeliefStatus.REVISED, author)
    settle_curated(episodes=[episode_id])
    return _curation_result([made], [parent])


def settle_curated(*, episodes: Sequence[str]) -> int:
    """Settle what became evidence by a curator's word, unless a cycle works on it or a person holds it (B1)."""
    return settle_evidenced(episodes=Episode.objects.filter(pk__in=episodes, state__in=_SETTLED_FROM))


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefText:
    """What a belief says, in a curator's words; what is left out is the older belief's, where there is one."""

    statement: str
    subject: str | None = None
    predicate: str | None = None
    context: str | None = None
    timeframe: Timeframe | None = None

    def language(self, *, otherwise: str = "") -> str:
        """Return the language of the statement, as far as it can be told."""
        return detect_language(self.statement) or otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPart:
    """One of the beliefs that another is split into: what it says, with its vector (768), and who bears it out."""

    wording: BeliefText
    vector: StatementVector
    verdicts: Mapping[str, Verdict]  # by episode


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationResult:
    """What a curator made, and what was changed on the way."""

    made: Sequence[Belief]
    changed: Sequence[Belief]


# States from which a curator's word settles an episode; a cycle works on the others, or a person holds them.
_SETTLED_FROM = (ConsolidationState.NEW, ConsolidationState.POOLED, ConsolidationState.FAILED)


class DuplicateBelief(EngramError, ValueError):
    """A belief says the same, or a person put it away; `id` is its id."""

    def __init__(self, message: str, *, belief_id: str) -> None:
        super().__init__(message)
        self.id = belief_id

    def members(self) -> dict[str, Any]:
        return {"id": self.id}


class InvalidEvidence(EngramError, ValueError):
    """Episodes that are not there, not to be seen, or no evidence of this; the message names them."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    field = "evidence"


class DifferentScopes(EngramError, ValueError):
    """Two beliefs that belong to different projects or users cannot become one."""


def _require_belief(made: CreationResult) -> Belief:
    """Return what was made of evidence that the caller has seen."""
    if made.belief is None:
        raise InvalidEvidence("What is named is no evidence any more.")
    return made.belief


def _check_known(named: Iterable[str], known: Iterable[str]) -> None:
    if missing := sorted(set(named) - set(known)):
        raise InvalidEvidence(f"No evidence for this: {', '.join(missing)}.")


def _curation_result(children: Sequence[CreationResult], parents: Sequence[Belief]) -> CurationResult:
    """Tell what was made, and what changed: the old beliefs, and those that took a new one's words."""
    made = [_require_belief(child) for child in children if child.outcome is CreationOutcome.CREATED]
    joined = [_require_belief(child) for child in children if child.outcome is CreationOutcome.JOINED]
    return CurationResult(made=made, changed=[*joined, *parents])


def _lock_live_beliefs(ids: Sequence[str]) -> list[Belief]:
    """Lock the workspace and live beliefs of it; raise NotFound, BeliefsDisabled, or IllegalTransitionError."""
    workspaces = set(Belief.objects.filter(pk__in=ids).values_list("workspace_id", flat=True))
    for workspace_id in workspaces:
        lock_workspace(workspace_id)
        check_beliefs_enabled(workspace_id=workspace_id)
    beliefs = lock_existing_beliefs(ids)
    for belief in beliefs:
        if belief.status not in LIVE:
            raise IllegalTransitionError(f"{belief.pk} is {belief.status}; only what is believed can be reshaped.")
    return beliefs


def _inherited_evidence(said: EvidenceItem, verdict: Verdict, reason: str) -> EvidenceInput:
    """Hand on what was said, and how it was found; of a clash only what the two come to."""
    is_clash = bool(reason)
    return EvidenceInput(
        episode_id=said.episode.id,
        verdict=verdict,
        kind=EvidenceKind(said.kind),
        base_weight=said.base_weight,
        basis=Basis.UNITED if is_clash else Basis(said.basis),
        reason=reason or said.reason,
        call_id=None if is_clash else said.call_id,
        claim_id=said.claim_id,
    )


def _assigned_evidence(said: EvidenceItem, verdict: Verdict) -> EvidenceInput:
    return EvidenceInput(
        episode_id=said.episode.id,
        verdict=verdict,
        kind=EvidenceKind(said.kind),
        base_weight=said.base_weight,
        claim_id=said.claim_id,
    )


def _create_successor(
    wording: BeliefText,
    vector: StatementVector,
    words: Sequence[EvidenceInput],
    *,
    parents: Sequence[Belief],
    kind: LineageKind,
    author: Author,
) -> CreationResult:
    """Put a curator's words in the place of beliefs; where another says the same already, it takes the evidence."""
    made = create_belief(
        draft=draft_from_text(parents=parents, wording=wording),
        vector=vector,
        said=words,
        author=author,
        descent=LineageInput(parents=parents, kind=kind, reason=author.reason),
        even_suppressed=True,
    )
    _require_belief(made)
    return made


def _record_curator_word(belief: Belief, episode_id: str, verdict: Verdict, author: Author) -> None:
    word = curator_evidence(episode_id=episode_id, verdict=verdict, reason=author.reason)
    record_evidence(said={belief.pk: [word]}, beliefs=[belief], author=author)


def _end_parents(beliefs: Sequence[Belief], status: BeliefStatus, author: Author) -> None:
    for belief in beliefs:
        change_status(belief=belief, new=status, reason=author.reason, actor=author.actor, now=author.now)
    log.info("beliefs_reshaped", beliefs=[b.pk for b in beliefs], status=status, actor=str(author.actor))


def embed_statements(
    *, workspace_id: int, statements: Sequence[str], seconds: float | None = None
) -> list[StatementVector]:
    """Check that statements can be beliefs and embed them; raise InvalidStatement or EmbeddingUnavailable.

    Called outside of any transaction: a server may answer, within so many seconds, or those of any call. Loads this
    machine's reader as well, which then compares them under a lock.
    """
    for statement in statements:
        check_statement(statement=statement)
    reader().load()
    scope, timeout = CallScope(workspace_id=workspace_id), seconds or budget_policy().call_seconds
    model = embedder_of(workspace_id)
    try:
        vectors = embed_for_workspace(scope=scope, model=model, texts=statements, timeout=timeout)
    except CallFailed as failure:  # what a server says of it stands in the ledger, from where erasing takes it
        raise EmbeddingUnavailable(
            f"The embedding model does not answer: {failure.kind.replace('_', ' ')}"
        ) from failure
    except DailyCapReached as spent:
        raise EmbeddingUnavailable(f"The embedding model is not asked: {spent}") from spent
    return [StatementVector(model=model.name, numbers=vector) for vector in vectors]


def check_statement(*, statement: str) -> None:
    """Raise InvalidStatement for what is no statement at all, or too long for a belief (B8.3)."""
    longest = settings.POLICY.consolidation.statement_words
    if refusal := refuse_statement(statement=statement, longest=longest):
        raise InvalidStatement(_REFUSAL_MESSAGES[refusal].format(words=longest))


_REFUSAL_MESSAGES = {
    Refusal.EMPTY: "It says nothing.",
    Refusal.QUESTION: "It is a question; a belief is a statement.",
    Refusal.TOO_LONG: "It has more than {words} words; one short sentence is expected.",
}


def curator_evidence(*, episode_id: str, verdict: Verdict, reason: str) -> EvidenceInput:
    """Return a curator's own word, which weighs more than what anybody else said (B4)."""
    return EvidenceInput(episode_id=episode_id, verdict=verdict, kind=EvidenceKind.CURATOR, reason=reason)


def draft_from_text(*, parents: Sequence[Belief], wording: BeliefText) -> BeliefDraft:
    """Return what comes in the place of beliefs, in a curator's words; the first lends what is left out."""
    first = parents[0]
    return draft_successor(
        parents=parents,
        statement=wording.statement,
        subject=first.subject if wording.subject is None else wording.subject,
        predicate=wording.predicate or "",  # the old one said what the old statement does
        context=wording.context or first.context,
        timeframe=wording.timeframe or first.timeframe,
        language=wording.language(otherwise=first.language),
    )


class InvalidStatement(EngramError, ValueError):
    """A statement that can be no belief; the message says why."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    field = "statement"
