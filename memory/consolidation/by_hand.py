"""What a curator makes of beliefs by hand: a new one, or one or several in the place of others (R7, B12, B13).

A person's word stands for the gates' and for a model's: nothing waits for a cycle, and nothing asks a model. What
hands did is its own record: the rows that they leave name no cycle, and a rebuilding leaves them as they are (B22).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog
from django.db import transaction

from memory.access import Viewer, check_may_change, visible_episodes
from memory.consolidation.cycle import check_believing
from memory.consolidation.handmade import Wording, curators_word, draft_worded
from memory.consolidation.settling import pool_left_over, settle_evidenced
from memory.consolidation.testimony import Testimony, read_testimony, unite_testimony
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import LIVE, BeliefStatus, ConsolidationState, IllegalTransitionError
from memory.ledger.beliefs import (
    BeliefDraft,
    CreationOutcome,
    CreationResult,
    StatementVector,
    beliefs_in_same_scope,
    create_belief,
    find_equivalent,
)
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EvidenceInput, record_evidence
from memory.ledger.transactions import Author, LineageInput, change_status, lock_existing_beliefs, lock_workspace
from memory.models import Basis, Belief, Episode, EvidenceKind, FactType, LineageKind, Workspace
from memory.models.beliefs import Timeframe

log = structlog.get_logger(__name__)

# States from which a curator's word settles an episode; a cycle works on the others, or a person holds them.
_SETTLING = (ConsolidationState.NEW, ConsolidationState.POOLED, ConsolidationState.FAILED)


class SaidAlready(ValueError):
    """A belief says the same, or a person put it away; `id` is its id."""

    def __init__(self, message: str, *, belief_id: str) -> None:
        super().__init__(message)
        self.id = belief_id


class CannotTestify(ValueError):
    """Episodes that are not there, not to be seen, or no evidence of this; the message names them."""


class NotOfOneScope(ValueError):
    """Two beliefs that belong to different projects or users cannot become one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of the beliefs that another is split into: what it says, with its vector (768), and who bears it out."""

    wording: Wording
    vector: StatementVector
    verdicts: Mapping[str, Verdict]  # by episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshaped:
    """What a curator made, and what was changed on the way."""

    made: Sequence[Belief]
    changed: Sequence[Belief]


@transaction.atomic
def found_belief(
    *,
    wording: Wording,
    vector: StatementVector,
    verdicts: Mapping[str, Verdict],
    viewer: Viewer,
    author: Author,
    fact_type: FactType = FactType.FACTUAL,
    importance: int = 5,
) -> Belief:
    """Found a belief on episodes that the curator may see; whose it is follows from them (B21).

    Raise CannotTestify, BeyondProjects, or SaidAlready where a belief says the same or a person archived one that did.
    """
    workspace = viewer.workspace
    lock_workspace(workspace.pk)
    check_believing(workspace_id=workspace.pk)
    episodes = _witnesses(verdicts, viewer)
    draft = replace(_draft(workspace, wording, episodes), fact_type=fact_type, importance=importance)
    check_may_change(
        project_id=draft.project_id, viewer=viewer
    )  # before a belief that the curator may not see is named
    _check_unsaid(draft, vector)
    words = [EvidenceInput(episode_id=key, verdict=verdict) for key, verdict in verdicts.items()]
    belief = _created(create_belief(draft=draft, vector=vector, said=words, author=author, even_suppressed=True))
    settle_by_hand(episodes=list(verdicts))
    log.info("beliefs_reshaped", beliefs=[belief.pk], status=belief.status, actor=str(author.actor))
    return belief


def _created(made: CreationResult) -> Belief:
    """Return what was made of evidence that the caller has seen."""
    if made.belief is None:
        raise CannotTestify("What is named is no evidence any more.")
    return made.belief


def _witnesses(verdicts: Mapping[str, Verdict], viewer: Viewer) -> list[Episode]:
    """Lock what is to be evidence; raise CannotTestify for what cannot be."""
    seen = visible_episodes(viewer=viewer).filter(pk__in=list(verdicts), is_derived=False)
    found = seen.exclude(status__in=WITHDRAWN_STATUSES)
    episodes = list(found.select_for_update(no_key=True).defer("search").order_by("pk"))
    _check_known(verdicts, [episode.pk for episode in episodes])
    return episodes


def _check_known(named: Iterable[str], known: Iterable[str]) -> None:
    if missing := sorted(set(named) - set(known)):
        raise CannotTestify(f"No evidence for this: {', '.join(missing)}.")


def _draft(workspace: Workspace, wording: Wording, episodes: Sequence[Episode]) -> BeliefDraft:
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


def _check_unsaid(draft: BeliefDraft, vector: StatementVector) -> None:
    """Raise SaidAlready for what is believed already, and for what a person archived, which can be restored (B22).

    What was forgotten cannot: a curator may state it again.
    """
    alike = beliefs_in_same_scope(draft=draft)
    archived = alike.filter(status=BeliefStatus.ARCHIVED, archived_by_person_at__isnull=False)
    for among, message in (
        (
            alike.filter(status__in=LIVE),
            "{} says the same, as far as rules can tell: reword yours, or store what bears it out as episodes.",
        ),
        (archived, "{} says the same, and a person archived it: restore that one."),
    ):
        same = find_equivalent(
            workspace_id=draft.workspace_id, candidate=draft.as_source(), vector=vector.numbers, among=among
        )
        if same:
            raise SaidAlready(message.format(same), belief_id=same)


@transaction.atomic
def merge_beliefs(*, ids: tuple[str, str], wording: Wording, vector: StatementVector, author: Author) -> Reshaped:
    """Put one belief in the place of two live ones of one scope, on the united evidence of both (B13)."""
    parents = _hold(ids)
    one, other = (next(belief for belief in parents if belief.pk == key) for key in ids)
    if (one.project_id, one.user) != (other.project_id, other.user):
        raise NotOfOneScope("Beliefs of different projects or users cannot be merged.")
    words = [_inherited(*pair) for pair in unite_testimony(belief_id=one.pk, twin_id=other.pk)]
    made = _bear(wording, vector, words, parents=[one, other], kind=LineageKind.MERGE, author=author)
    _end([one, other], BeliefStatus.MERGED, author)
    return _reshaped([made], [one, other])


@transaction.atomic
def split_belief(*, belief_id: str, parts: Sequence[Part], author: Author) -> Reshaped:
    """Put several beliefs in the place of a live one, each on the evidence that the curator gives it (B12).

    What is evidence of no part waits in the pool for others like it.
    """
    [parent] = _hold([belief_id])
    testimony = {said.episode.id: said for said in read_testimony(beliefs=[belief_id])}
    children = []
    for part in parts:
        _check_known(part.verdicts, testimony)
        words = [_sorted_word(testimony[key], verdict) for key, verdict in part.verdicts.items()]
        children.append(
            _bear(part.wording, part.vector, words, parents=[parent], kind=LineageKind.SPLIT, author=author)
        )
    _end([parent], BeliefStatus.SPLIT, author)
    pool_left_over(belief=parent, now=author.now)
    return _reshaped(children, [parent])


@transaction.atomic
def contradict_belief(*, belief_id: str, episode_id: str, author: Author) -> Belief:
    """Let a curator's word stand against a live belief; what follows from it the gates decide (B4)."""
    [belief] = _hold([belief_id])
    _speak(belief, episode_id, Verdict.CONTRADICTS, author)
    settle_by_hand(episodes=[episode_id])
    return belief


@transaction.atomic
def replace_belief(
    *, belief_id: str, wording: Wording, vector: StatementVector, episode_id: str, author: Author
) -> Reshaped:
    """Put what a curator says in the place of a live belief: the old one is revised, superseded by the new (R7).

    Where another belief says the same already, that one takes the curator's word.
    """
    [parent] = _hold([belief_id])
    word = curators_word(episode_id=episode_id, verdict=Verdict.SUPPORTS, reason=author.reason)
    made = _bear(wording, vector, [word], parents=[parent], kind=LineageKind.SUPERSESSION, author=author)
    _speak(parent, episode_id, Verdict.CONTRADICTS, author)
    _end([parent], BeliefStatus.REVISED, author)
    settle_by_hand(episodes=[episode_id])
    return _reshaped([made], [parent])


def _reshaped(children: Sequence[CreationResult], parents: Sequence[Belief]) -> Reshaped:
    """Tell what was made, and what changed: the old beliefs, and those that took a new one's words."""
    made = [_created(child) for child in children if child.outcome is CreationOutcome.CREATED]
    joined = [_created(child) for child in children if child.outcome is CreationOutcome.JOINED]
    return Reshaped(made=made, changed=[*joined, *parents])


def _hold(ids: Sequence[str]) -> list[Belief]:
    """Lock the workspace and live beliefs of it; raise Gone, BeliefsAreOff, or IllegalTransitionError."""
    workspaces = set(Belief.objects.filter(pk__in=ids).values_list("workspace_id", flat=True))
    for workspace_id in workspaces:
        lock_workspace(workspace_id)
        check_believing(workspace_id=workspace_id)
    beliefs = lock_existing_beliefs(ids)
    for belief in beliefs:
        if belief.status not in LIVE:
            raise IllegalTransitionError(f"{belief.pk} is {belief.status}; only what is believed can be reshaped.")
    return beliefs


def _inherited(said: Testimony, verdict: Verdict, reason: str) -> EvidenceInput:
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


def _sorted_word(said: Testimony, verdict: Verdict) -> EvidenceInput:
    return EvidenceInput(
        episode_id=said.episode.id,
        verdict=verdict,
        kind=EvidenceKind(said.kind),
        base_weight=said.base_weight,
        claim_id=said.claim_id,
    )


def _bear(
    wording: Wording,
    vector: StatementVector,
    words: Sequence[EvidenceInput],
    *,
    parents: Sequence[Belief],
    kind: LineageKind,
    author: Author,
) -> CreationResult:
    """Put a curator's words in the place of beliefs; where another says the same already, it takes the evidence."""
    made = create_belief(
        draft=draft_worded(parents=parents, wording=wording),
        vector=vector,
        said=words,
        author=author,
        descent=LineageInput(parents=parents, kind=kind, reason=author.reason),
        even_suppressed=True,
    )
    _created(made)
    return made


def _speak(belief: Belief, episode_id: str, verdict: Verdict, author: Author) -> None:
    word = curators_word(episode_id=episode_id, verdict=verdict, reason=author.reason)
    record_evidence(said={belief.pk: [word]}, beliefs=[belief], author=author)


def _end(beliefs: Sequence[Belief], status: BeliefStatus, author: Author) -> None:
    for belief in beliefs:
        change_status(belief=belief, new=status, reason=author.reason, actor=author.actor, now=author.now)
    log.info("beliefs_reshaped", beliefs=[b.pk for b in beliefs], status=status, actor=str(author.actor))


def settle_by_hand(*, episodes: Sequence[str]) -> int:
    """Settle what became evidence by a curator's word, unless a cycle works on it or a person holds it (B1)."""
    return settle_evidenced(episodes=Episode.objects.filter(pk__in=episodes, state__in=_SETTLING))
