"""Plan a cycle as of now, and about what it would cost, without a write and without a call (B22).

`dry_run_cycle` plans with the cycle's own code. Calls about candidates are counted as if every cluster were new and
every member asked about; a belief that lies near a candidate alone is not foreseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

import numpy as np
from django.conf import settings
from django.db import connection, transaction

from memory.consolidation.cluster import CyclePlan, plan_jobs, select_pooled_episodes
from memory.consolidation.cycle import check_beliefs_enabled
from memory.consolidation.extract import EMBEDDING_BATCH, select_waiting_episodes
from memory.consolidation.finish import select_beliefs_due
from memory.consolidation.judge import requests_about_beliefs, synthesis_request
from memory.consolidation.sources import (
    EpisodeSource,
    canonical_order,
    hash_members,
    read_episodes,
    read_sources,
    shared_user_name,
)
from memory.domain.lifecycle import ConsolidationState
from memory.llm.call_log import CallScope, find_replies
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import estimate_request, estimate_tokens
from memory.llm.registry import language_model
from memory.llm.requests import ClassificationRequest, Purpose, Request, StatedBelief
from memory.llm.types import cost_of
from memory.models import ClusterJob, Episode, JobKind, Source, Workspace
from memory.reading.messages import build_request, plan_batches, select_unread
from memory.search.vectors import Vectors

_STATEMENT_TOKENS = 40


def dry_run_cycle(*, workspace: Workspace, now: datetime) -> DryRun:
    """Plan a cycle of the workspace as of `now`, in a transaction that the database lets write nothing."""
    check_beliefs_enabled(workspace_id=workspace.pk)
    with _read_only():
        return _DryRunPlanner(workspace=workspace, now=now).run()


@contextmanager
def _read_only() -> Iterator[None]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
        yield
        transaction.set_rollback(True)  # a savepoint that is released would leave its outer transaction read only


class _DryRunPlanner:
    """One rehearsal on its way, adding up what the cycle would cost."""

    def __init__(self, *, workspace: Workspace, now: datetime) -> None:
        self.workspace, self.now = workspace, now
        self.embedder, self.model = embedder_of(workspace), language_model()
        self.calls = {"embed": 0, Purpose.READ.value: 0, Purpose.SYNTHESIZE.value: 0, Purpose.CLASSIFY.value: 0}
        self.tokens, self.cost = 0, Decimal(0)

    def run(self) -> DryRun:
        new = list(select_waiting_episodes(workspace_id=self.workspace.pk).values_list("pk", flat=True))
        readings = self._readings(new)
        sources, vectors, unembedded = self._read(new)
        plan = plan_jobs(
            workspace_id=self.workspace.pk, now=self.now, sources=sources, vectors=vectors, model=self.embedder
        )
        places = {source.id: place for place, source in enumerate(sources)}
        jobs = [
            self._job(members, vectors[[places[member.id] for member in members]], pairs=pairs)
            for members, pairs in _members_of_jobs(plan)
        ]
        return DryRun(
            now=self.now,
            episodes=len(new),
            unembedded=len(unembedded),
            readings=readings,
            jobs=jobs,
            put_back=len(plan.put_back),
            archive_due=select_beliefs_due(workspace_id=self.workspace.pk, now=self.now).count(),
            estimate=Estimate(calls=self.calls, tokens=self.tokens, cost_usd=self.cost),
        )

    # --- What would be read

    def _readings(self, new: Sequence[str]) -> int:
        """Count the readings of new messages as if each were read against what is believed today."""
        unread = select_unread(episodes=Episode.objects.for_workspace(self.workspace.pk).filter(pk__in=new))
        batches = plan_batches(episodes=unread)
        requests = [build_request(messages=batch.messages, now=self.now) for batch in batches]
        self._count_calls([request for request in requests if request is not None])
        return len(batches)

    # --- What would take part

    def _read(self, new: Sequence[str]) -> tuple[list[EpisodeSource], Vectors, list[EpisodeSource]]:
        """Read what would take part, the new ones as if leased, and those that no model has embedded yet."""
        pooled = select_pooled_episodes(workspace_id=self.workspace.pk, now=self.now)
        taking_part = Episode.objects.filter(pk__in=[*new, *pooled.values_list("pk", flat=True)])
        taking_part = taking_part.exclude(source=Source.HUMAN, read_at=None)  # what a reading leaves is not foreseen
        sources, vectors = read_episodes(episodes=taking_part, model=self.embedder.name)
        blank = taking_part.filter(pk__in=new).exclude(embedding__model=self.embedder.name)
        unembedded = [source for source in read_sources(episodes=blank) if source.matter]
        if unembedded and self.embedder.is_local:
            own = self.embedder.embed([source.matter for source in unembedded])
            sources, vectors = _in_canonical_order([*sources, *unembedded], np.concatenate([vectors, own]))
        elif unembedded:
            self._count_embedding([source.matter for source in unembedded])
        leased = set(new)
        sources = [replace(s, state=ConsolidationState.LEASED) if s.id in leased else s for s in sources]
        return sources, vectors, unembedded

    def _count_embedding(self, texts: Sequence[str]) -> None:
        self.calls["embed"] += -(-len(texts) // EMBEDDING_BATCH)
        self._add(self.embedder.name, estimate_tokens(*texts), 0)

    # --- What would be asked

    def _job(
        self, members: Sequence[EpisodeSource], vectors: Vectors, *, pairs: Mapping[str, Sequence[str]]
    ) -> PlannedJob:
        """Count what a job would ask: about beliefs that are there, and of a cluster for and about its candidate."""
        kind = JobKind.SINGLES if pairs else JobKind.CLUSTER
        job = ClusterJob(workspace=self.workspace, cycle_id="", kind=kind, pairs=dict(pairs))
        job.members_hash = hash_members(member.id for member in members)
        requests: list[Request] = [
            ask.request
            for ask in requests_about_beliefs(job=job, members=members, vectors=vectors, model=self.embedder)
        ]
        if kind == JobKind.CLUSTER:
            requests += [synthesis_request(members=members), *_about_candidate(members)]
        calls = self._count_calls(requests)
        if kind == JobKind.CLUSTER and not self.embedder.is_local:
            calls += 1
            self.calls["embed"] += 1
            self._add(self.embedder.name, _STATEMENT_TOKENS, 0)
        beliefs = list(pairs)
        belief = beliefs[0] if len(beliefs) == 1 else None
        return PlannedJob(
            kind=kind.value, belief=belief, beliefs=beliefs, episodes=[m.id for m in members], calls=calls
        )

    def _count_calls(self, requests: Sequence[Request]) -> int:
        """Count what has no stored reply."""
        scope = CallScope(workspace_id=self.workspace.pk)
        stored = find_replies(scope=scope, requests=requests, model=self.model)
        new = [request for request, reply in zip(requests, stored, strict=True) if reply is None]
        for request in new:
            self.calls[request.purpose.value] += 1
            if not self.model.is_offline:
                pairs = (
                    len(request.episodes) * len(request.beliefs) if isinstance(request, ClassificationRequest) else 1
                )
                written = _REPLY_TOKENS[request.purpose] * pairs
                self._add(self.model.model_for(request.purpose), estimate_request(request=request), written)
        return len(new)

    def _add(self, model: str, sent: int, received: int) -> None:
        self.tokens += sent + received
        self.cost += cost_of(model=model, input_tokens=sent, output_tokens=received)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """A job that the cycle would have."""

    kind: str
    belief: str | None  # the one of `beliefs`, None of several
    beliefs: Sequence[str]
    episodes: Sequence[str]
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What calls would come to, about; replies that are stored already cost nothing."""

    calls: dict[str, int]
    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a cycle would do now."""

    now: datetime
    episodes: int
    unembedded: int
    readings: int  # batches of messages that would be read
    jobs: Sequence[PlannedJob]
    put_back: int
    archive_due: int
    estimate: Estimate


# What replies of these shapes come to, for the estimate alone: a candidate with its fields, a verdict with its reason.
_REPLY_TOKENS = {Purpose.READ: 600, Purpose.SYNTHESIZE: 90, Purpose.CLASSIFY: 5}


def _in_canonical_order(sources: Sequence[EpisodeSource], vectors: Vectors) -> tuple[list[EpisodeSource], Vectors]:
    order = sorted(range(len(sources)), key=lambda place: canonical_order(sources[place]))
    return [sources[place] for place in order], vectors[np.asarray(order, dtype=np.intp)]


def _members_of_jobs(plan: CyclePlan) -> list[tuple[Sequence[EpisodeSource], Mapping[str, Sequence[str]]]]:
    """List each job's members, with the beliefs that a batch of single episodes is about."""
    none: Mapping[str, Sequence[str]] = {}
    clusters = [(group.members, none) for group in plan.groups]
    return [*clusters, *((batch.members, batch.pairs) for batch in plan.singles)]


def _about_candidate(members: Sequence[EpisodeSource]) -> list[Request]:
    """Word the calls about a candidate that nobody has written yet; the most central episode stands in for it."""
    size = settings.POLICY.consolidation.classify_episodes
    candidate = StatedBelief(
        statement=members[0].matter,
        subject=members[0].speaker,
        context="general",
        language=members[0].language,
    )
    return [
        ClassificationRequest(
            beliefs=(candidate,),
            episodes=tuple(member.as_text() for member in members[start : start + size]),
            person=shared_user_name(members[start : start + size]),
        )
        for start in range(0, len(members), size)
    ]
