"""What a structural job asks a model for, and what of the answer can stand as a belief."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from memory.consolidation.asking import ask_models
from memory.consolidation.leases import JobLease
from memory.consolidation.sources import person_of
from memory.consolidation.structural import refuse
from memory.consolidation.synthesize import NO_STATEMENT
from memory.consolidation.testimony import newest_against, newest_of_both, testimony_of
from memory.consolidation.twins import FOUND_DIFFERENT
from memory.domain.lifecycle import JobState
from memory.language.refusals import refuse_statement
from memory.language.third_person import name_of_user
from memory.language.words import detect_language
from memory.ledger.beliefs import hash_statement
from memory.llm.replies import Division, Reply, Statement, Synthesis, Union
from memory.llm.requests import MergeRequest, Request, RevisionRequest, SplitRequest, StatedBelief
from memory.llm.runner import ModelAnswer, ModelRequest
from memory.models import Belief, StructuralChild, StructuralJob, StructuralKind

NO_DIVISION = "no_division"
PARTS_ALIKE = "parts_alike"
UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A statement that may take the place of a belief's."""

    statement: str
    subject: str
    predicate: str
    context: str
    timeframe: str
    language: str

    @property
    def hash(self) -> str:
        """Hash what verdicts on it will be about."""
        return hash_statement(self.statement, self.subject, self.context)


def propose(*, lease: JobLease[StructuralJob]) -> bool:
    """Ask what is to be believed instead and store it as the job's children; false if there is no answer to go on."""
    job, answers = lease.job, list[ModelAnswer]()
    asks = [ModelRequest(key=job.kind, request=_request(job))]
    if not ask_models(lease=lease, asks=asks, store=answers.extend):
        return False
    reply = answers[0].reply
    job.proposal, job.proposal_call_id = reply.model_dump(mode="json"), answers[0].call_id
    children = _read(job, reply)
    refusal = children if isinstance(children, str) else _refuse(job, children)
    return _store(lease=lease, children=() if isinstance(children, str) else children, refusal=refusal)


def by_evidence(job: StructuralJob) -> tuple[Belief, Belief]:
    """Return the two beliefs of a merge, the better evidenced one first."""
    assert job.twin is not None  # a constraint of the table
    return better_evidenced(job.belief, job.twin)


def better_evidenced(one: Belief, other: Belief) -> tuple[Belief, Belief]:
    """Return the better evidenced of two beliefs, then the other."""
    first, second = sorted((one, other), key=lambda it: (-it.evidence_count, -it.confidence, it.pk))
    return first, second


def _request(job: StructuralJob) -> Request:
    most = settings.POLICY.restructure.shown_episodes
    if job.kind == StructuralKind.MERGE:
        one, other = by_evidence(job)
        return MergeRequest(
            beliefs=(_stated(one), _stated(other)),
            similarity=job.facts["similarity"],
            person=name_of_user(user=one.user),
        )
    testimony = testimony_of(job=job)
    is_revision = job.kind in (StructuralKind.REVISE, StructuralKind.CLOSE)
    shown = (newest_against if is_revision else newest_of_both)(testimony, most=most)
    return (RevisionRequest if is_revision else SplitRequest)(
        belief=_stated(job.belief),
        episodes=tuple(said.episode.as_text() for said in shown),
        verdicts=tuple(said.verdict for said in shown),
        person=person_of(said.episode for said in shown),
    )


def _stated(belief: Belief) -> StatedBelief:
    return StatedBelief(
        statement=belief.statement, subject=belief.subject, context=belief.context, language=belief.language
    )


def _read(job: StructuralJob, reply: Reply) -> list[Proposed] | str:
    """Read the statements out of a reply, or why there are none."""
    match reply:
        case Synthesis():
            return [_proposed(reply, job.belief)] if reply.statement else NO_STATEMENT
        case Division():
            return [_proposed(part, job.belief) for part in reply.parts] or NO_DIVISION
        case Union():
            return [_united(job, reply)] if reply.same else FOUND_DIFFERENT
    raise TypeError(f"{type(reply).__name__} answers no structural request")


def _proposed(reply: Statement | Union, parent: Belief) -> Proposed:
    return Proposed(
        statement=reply.statement,
        subject=reply.subject[:200],
        predicate=reply.predicate,
        context=reply.context,
        timeframe=reply.timeframe,
        language=detect_language(reply.statement) or parent.language,
    )


def _united(job: StructuralJob, reply: Union) -> Proposed:
    """Take the model's statement where it can stand, else the better evidenced belief's (B13)."""
    better = by_evidence(job)[0]
    given = _proposed(reply, better)
    if reply.statement and not refuse_statement(given.statement, language=given.language):
        return given
    return Proposed(
        statement=better.statement,
        subject=better.subject,
        predicate=better.predicate,
        context=better.context,
        timeframe=better.timeframe,
        language=better.language,
    )


def _refuse(job: StructuralJob, children: Sequence[Proposed]) -> str:
    """Return why the statements can be no beliefs, or not in the place of the old one; else nothing."""
    for child in children:
        if refusal := refuse_statement(child.statement, language=child.language):
            return str(refusal)
        if job.kind != StructuralKind.MERGE and _words(child.statement) == _words(job.belief.statement):
            return UNCHANGED
    return PARTS_ALIKE if len({_words(child.statement) for child in children}) < len(children) else ""


def _words(statement: str) -> str:
    return statement.casefold().rstrip(" .!")


@transaction.atomic
def _store(*, lease: JobLease[StructuralJob], children: Sequence[Proposed], refusal: str) -> bool:
    if not lease.mine.select_for_update(no_key=True).exists():
        return False
    job = lease.job
    job.state = JobState.SYNTHESIZED
    job.save(update_fields=["proposal", "proposal_call", "state"])
    StructuralChild.objects.bulk_create(_child(job, number, child) for number, child in enumerate(children))
    if refusal:
        refuse(job=job, refusal=refusal)
    return not refusal


def _child(job: StructuralJob, number: int, child: Proposed) -> StructuralChild:
    return StructuralChild(
        workspace_id=job.workspace_id,
        job=job,
        number=number,
        statement=child.statement,
        statement_hash=child.hash,
        subject=child.subject,
        predicate=child.predicate,
        context=child.context,
        timeframe=child.timeframe,
        language=child.language,
    )
