"""Publish the most trusted beliefs of a workspace into its MEMORY.md files, and memories below them (P1 to P11).

`publish_workspace` brings all its files up to date, after a cycle (`publish_after_cycle`) and whenever beliefs changed
(`publish_due`). `publish_episode` puts one memory there at once; `render_section` is the beliefs' section for an agent
on another machine. Which files there are: memory_files.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import islice
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Ln, Now

from memory.domain.errors import EngramError
from memory.domain.evidence import Verdict
from memory.domain.identity import ActorKind
from memory.domain.lifecycle import WORKSPACE_ERRORS, BeliefStatus
from memory.domain.promotion import Publishable, Selection, Step, choose_beliefs
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.gates import is_closed
from memory.ledger.transactions import lock_beliefs
from memory.models import (
    Belief,
    Cycle,
    Episode,
    Evidence,
    EvidenceKind,
    MemoryFile,
    Project,
    PublicationDue,
    PublicationStep,
    PublishedBelief,
    Source,
    Transition,
    Workspace,
)
from memory.publishing.graduation import (
    keep_in_file,
    update_graduates,
)
from memory.publishing.section import FormerBelief, TrustedBelief, render_beliefs
from memory.publishing.writing import write_sections

log = structlog.get_logger(__name__)
_CHUNK = 50
_LONGEST_PROBLEM = 300
_DUE_LOCK = 6  # the first of the two numbers that name an advisory lock
_LIVES_ON = (BeliefStatus.MERGED, BeliefStatus.SPLIT)  # in others, which say the same or more
_TAKEN_AWAY = (BeliefStatus.FORGOTTEN, BeliefStatus.PRUNED)
_PERSONS = (Source.HUMAN, Source.INTERACTION)


class NoMemoryFile(EngramError):
    """A memory whose project and user have no file."""

    status = HTTPStatus.CONFLICT


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicationCounts:
    """What a pass did over all files of a workspace; `failed` files could not be written."""

    graduated: int = 0
    promoted: int = 0
    demoted: int = 0
    removed: int = 0
    written: int = 0
    failed: int = 0


def publish_workspace(
    *, workspace_id: int, now: datetime, cycle: Cycle | None = None, may_graduate: bool = False
) -> PublicationCounts:
    """Bring the files of a workspace up to date; with a cycle, former beliefs whose time is over leave them (P4).

    Memories graduate in a cycle (P8), or with `may_graduate`.

    A file that cannot be written keeps why, and stays as it was with the beliefs in it; the others are written.
    """
    seen = list(PublicationDue.objects.for_workspace(workspace_id).values_list("pk", flat=True))
    steps: Counter[Step] = Counter()
    graduated = written = failed = 0
    for file in MemoryFile.objects.for_workspace(workspace_id).order_by("pk"):
        try:
            done = publish_file(file.pk, now, cycle, may_graduate=may_graduate or cycle is not None)
        except (EngramError, DatabaseError, *WORKSPACE_ERRORS) as error:
            if not connection.is_usable():
                raise
            failed += 1
            _note_problem(file, str(error)[:_LONGEST_PROBLEM])
            continue
        written += done.has_changed
        graduated += done.graduated
        steps.update(step for _, step in done.steps)
    _settle_due(workspace_id, seen, has_failed=failed > 0)
    return PublicationCounts(
        graduated=graduated,
        promoted=steps[Step.PROMOTE],
        demoted=steps[Step.DEMOTE],
        removed=steps[Step.REMOVE],
        written=written,
        failed=failed,
    )


def _note_problem(file: MemoryFile, problem: str) -> None:
    """Keep why a file could not be written; the same problem again is no news."""
    if MemoryFile.objects.filter(pk=file.pk).exclude(problem=problem).update(problem=problem):
        log.warning("memory_file_not_written", workspace=file.workspace_id, file=file.pk, error=problem)


def _settle_due(workspace_id: int, seen: Sequence[int], *, has_failed: bool) -> None:
    """Take off the rows that were seen before, and no other; where a file failed, it is due again in a while."""
    PublicationDue.objects.filter(pk__in=seen).delete()
    if has_failed:
        later = Now() + timedelta(seconds=settings.POLICY.publishing.retry_seconds)
        PublicationDue.objects.create(workspace_id=workspace_id, due_at=later)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """What became of one file."""

    steps: Sequence[tuple[str, Step]] = ()
    graduated: int = 0
    has_changed: bool = False


@transaction.atomic
def publish_file(
    file_id: int, now: datetime, cycle: Cycle | None, *, may_graduate: bool, kept: Episode | None = None
) -> _Done:
    """Decide, write and note one file; `kept` is an episode that it must keep from now on.

    Beliefs are locked only once it is written, so that nobody waits for them as long as for a file. What changed
    meanwhile, and a file that was written though its rows could not be, is put right by the next pass.
    """
    file = MemoryFile.objects.select_for_update(of=("self",)).select_related("workspace").filter(pk=file_id).first()
    if file is None:
        return _Done()
    if kept:
        keep_in_file(file=file, episode=kept, now=now)
    graduated = update_graduates(file=file, now=now, may_add=may_graduate)
    published = _published_in(file)
    chosen = _choose(_beliefs_of(file), published, file.workspace, now, may_remove=cycle is not None)
    has_changed = write_sections(file=file, beliefs=_render(chosen, published, file.workspace, now))
    _note_steps(file, chosen, now, cycle)
    MemoryFile.objects.filter(pk=file.pk).update(published_at=now, problem="")
    return _Done(steps=chosen.steps, graduated=graduated, has_changed=has_changed)


def _choose(
    beliefs: QuerySet[Belief],
    published: Mapping[str, PublishedBelief],
    workspace: Workspace,
    now: datetime,
    *,
    may_remove: bool,
) -> Selection:
    """Choose among the beliefs of a scope: the best, and what stood in its file before."""
    policy = settings.POLICY.publishing
    standing = beliefs.filter(pk__in=published)
    trusted = {belief.pk: belief for belief in islice(_trusted(beliefs, workspace), policy.beliefs)}
    sure = {belief.pk for belief in _trusted(standing, workspace)}
    known: dict[str, Any] = {belief.pk: belief for belief in standing.annotate(**_numbers(workspace))} | trusted
    gone = _find_gone(standing) - sure
    return choose_beliefs(
        beliefs=[
            Publishable(
                id=key,
                is_active=belief.status == BeliefStatus.ACTIVE,
                is_gone=key in gone,
                confidence=belief.chosen,
                evidence=belief.evidence_count,
                is_trusted=key in trusted or key in sure,
                is_promoted=key in published,
                demoted_at=published[key].demoted_at if key in published else None,
                was_former_in_cycle=key in published and published[key].was_former_in_cycle,
            )
            for key, belief in known.items()
        ],
        now=now,
        policy=policy,
        may_remove=may_remove,
    )


def _beliefs_of(file: MemoryFile) -> QuerySet[Belief]:
    beliefs = Belief.objects.for_workspace(file.workspace_id)
    return select_scope(beliefs=beliefs, project_id=file.project_id, user=file.user)


def select_scope(*, beliefs: QuerySet[Belief], project_id: int | None, user: str) -> QuerySet[Belief]:
    """P2: keep a project's beliefs, or those of none; of a user and of no user."""
    return beliefs.filter(project=project_id, user__in={"", user})


def _published_in(file: MemoryFile) -> dict[str, PublishedBelief]:
    return {row.belief_id: row for row in file.beliefs.all()}


def _numbers(workspace: Workspace) -> dict[str, Any]:
    return {"chosen": F("additive_confidence" if workspace.is_additive else "confidence")}


def _trusted(beliefs: QuerySet[Belief], workspace: Workspace) -> Iterator[Belief]:
    """P1: yield the beliefs that may stand in a file, the best first; as many are looked at as are wanted."""
    policy = settings.POLICY.publishing
    numbered: Any = beliefs.annotate(**_numbers(workspace))
    enough = numbered.filter(
        status=BeliefStatus.ACTIVE, evidence_count__gte=policy.evidence, chosen__gte=policy.confidence
    )
    ranked = enough.annotate(rank=F("chosen") * Ln(1 + F("evidence_count"))).order_by("-rank", "pk").iterator(_CHUNK)
    while chunk := list(islice(ranked, _CHUNK)):
        sure = _find_well_founded([belief.pk for belief in chunk])
        yield from (belief for belief in chunk if belief.pk in sure)


def _find_well_founded(ids: Collection[str]) -> set[str]:
    """Find the beliefs that enough origins bear out, a person's or a conversation's words among them."""
    rows = Evidence.objects.filter(belief__in=ids, verdict=Verdict.SUPPORTS, base_weight__gt=0)
    grouped = (
        rows.exclude(episode__status__in=WITHDRAWN_STATUSES)
        .values("belief")
        .annotate(
            origins=Count("episode__origin", distinct=True),
            persons=Count("pk", filter=Q(episode__source__in=_PERSONS)),
        )
    )
    few = grouped.filter(origins__gte=settings.POLICY.publishing.origins, persons__gte=1)
    return set(few.values_list("belief", flat=True))


def _find_gone(beliefs: QuerySet[Belief]) -> set[str]:
    """Find the beliefs that leave at once: taken away by somebody, or living on in others (P4).

    What ended by what was said is taken away by nobody, whoever's key brought the words.
    """
    latest = Transition.objects.filter(belief=OuterRef("pk")).order_by("-pk").values("actor")[:1]
    ended = beliefs.exclude(status__in=(BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED)).annotate(by=Subquery(latest))
    by_hand = Q()
    for kind in (ActorKind.PERSON, ActorKind.KEY, ActorKind.COMMAND):
        by_hand |= Q(by__startswith=f"{kind} ")
    by_hand &= ~Q(pk__in=Belief.objects.closed().values("pk"))
    gone = Q(status__in=(*_LIVES_ON, *_TAKEN_AWAY)) | by_hand
    no = Evidence.objects.filter(belief=OuterRef("pk"), kind=EvidenceKind.CURATOR, verdict=Verdict.CONTRADICTS)
    corrected = beliefs.filter(Exists(no))
    return {*ended.filter(gone).values_list("pk", flat=True), *corrected.values_list("pk", flat=True)}


def _note_steps(file: MemoryFile, chosen: Selection, now: datetime, cycle: Cycle | None) -> None:
    """Keep where each belief stands, in the file's rows and with the belief, and why the row changed."""
    named = {*chosen.trusted, *(key for key, _ in chosen.steps)}
    there = {belief.pk for belief in lock_beliefs(named)}  # without those that were erased meanwhile
    beliefs = Belief.objects.annotate(**_numbers(file.workspace)).in_bulk(there)
    steps = [(key, step) for key, step in chosen.steps if key in there]
    for key, step in steps:
        rows = PublishedBelief.objects.filter(file=file, belief=key)
        if step is Step.PROMOTE:
            columns = {"confidence": beliefs[key].chosen, "demoted_at": None, "was_former_in_cycle": False}
            PublishedBelief.objects.update_or_create(
                file=file,
                belief_id=key,
                workspace_id=file.workspace_id,
                defaults=columns,
                create_defaults={**columns, "promoted_at": now},
            )
        elif step is Step.DEMOTE:
            rows.update(demoted_at=now)
        else:
            rows.delete()
    if cycle:
        file.beliefs.exclude(demoted_at=None).update(was_former_in_cycle=True)
    for key in there.intersection(chosen.trusted):
        told = beliefs[key].chosen
        PublishedBelief.objects.filter(file=file, belief=key).exclude(confidence=told).update(confidence=told)
    PublicationStep.objects.bulk_create(
        PublicationStep(
            workspace_id=file.workspace_id, belief_id=key, path=file.path, step=step,
            confidence=beliefs[key].chosen, cycle=cycle, at=now,
        )
        for key, step in steps
    )  # fmt: skip
    copy_to_beliefs({key for key, _ in steps})


def copy_to_beliefs(ids: Collection[str]) -> None:
    """Let beliefs say themselves whether they stand in any file: former only where they do in all (B14, R7d)."""
    rows = PublishedBelief.objects.filter(belief=OuterRef("pk")).order_by().values("belief")
    first = Subquery(rows.annotate(value=Min("promoted_at")).values("value"))
    last = Subquery(rows.annotate(value=Max("demoted_at")).values("value"))
    highest = Subquery(rows.annotate(value=Max("confidence")).values("value"))
    standing = PublishedBelief.objects.filter(belief__in=ids, demoted_at=None).values("belief")
    beliefs = Belief.objects.filter(pk__in=ids)
    beliefs.update(promoted_at=first, published_confidence=highest, demoted_at=None)
    beliefs.exclude(pk__in=standing).update(demoted_at=last)


def _render(chosen: Selection, rows: Mapping[str, PublishedBelief], workspace: Workspace, now: datetime) -> str:
    """Return the section: of what was chosen, what is still there."""
    beliefs = Belief.objects.annotate(**_numbers(workspace)).in_bulk({*chosen.trusted, *chosen.former})
    former = [
        (beliefs[key], rows[key].confidence, rows[key].demoted_at or now) for key in chosen.former if key in beliefs
    ]
    return render_beliefs(
        trusted=[
            TrustedBelief(statement=one.statement, confidence=one.chosen, evidence=one.evidence_count)
            for one in (beliefs[key] for key in chosen.trusted if key in beliefs)
        ],
        former=[
            FormerBelief(
                statement=one.statement,
                was=was,
                now=one.chosen,
                demoted_on=demoted_at.date(),
                ended_on=one.valid_until.date() if one.valid_until and is_closed(one) else None,
            )
            for one, was, demoted_at in former
        ],
    )


def render_section(
    *, beliefs: QuerySet[Belief], workspace: Workspace, project: Project | None, user: str, now: datetime
) -> str:
    """Return the section of a scope as its file has it, or would have it; nothing is noted.

    `beliefs` are those that the reader may see.
    """
    file = MemoryFile.objects.for_workspace(workspace).filter(project=project, user=user).first()
    rows = _published_in(file) if file else {}
    scope = select_scope(beliefs=beliefs, project_id=project.pk if project else None, user=user)
    return _render(_choose(scope, rows, workspace, now, may_remove=False), rows, workspace, now)


def publish_episode(*, episode: Episode, now: datetime) -> str:
    """Have the file of an episode's project and user keep it from now on (P12); return the file's path.

    Raise NoMemoryFile where there is none, and what `change_file` raises: then nothing is kept.
    """
    scope = MemoryFile.objects.for_workspace(episode.workspace_id).filter(project=episode.project_id, user=episode.user)
    file = scope.first()
    if file is None:
        raise NoMemoryFile("No MEMORY.md is written for this project and user.")
    publish_file(file.pk, now, None, may_graduate=False, kept=episode)
    if not file.graduates.filter(episode=episode).exists():
        raise NoMemoryFile("What these words say is not held any more.")
    return str(file.path)


def publish_after_cycle(*, cycle_id: str) -> None:
    """Publish as the last step of a cycle that has ended, once, and add to its counts what that did (P11)."""
    cycle = Cycle.objects.get(pk=cycle_id)
    if cycle.finished_at is None or "promoted" in (cycle.counts or {}):
        return
    if not MemoryFile.objects.for_workspace(cycle.workspace_id).exists():
        return
    done = publish_workspace(workspace_id=cycle.workspace_id, now=cycle.now, cycle=cycle)
    counts = {"graduated": done.graduated, "promoted": done.promoted, "demoted": done.demoted, "removed": done.removed}
    Cycle.objects.filter(pk=cycle_id).update(counts={**(cycle.counts or {}), **counts})


def publish_due(*, now: datetime) -> list[int]:
    """Publish the workspaces that are due, and return them; none where somebody else is doing so.

    A file that is waited for keeps one worker busy, and not one more every two seconds.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, 0)", [_DUE_LOCK])
        if not cursor.fetchone()[0]:
            return []
        try:
            rows = PublicationDue.objects.filter(due_at__lte=Now()).order_by("workspace")
            due = list(rows.values_list("workspace", flat=True).distinct())
            for workspace_id in due:
                publish_workspace(workspace_id=workspace_id, now=now)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s, 0)", [_DUE_LOCK])
    return due
