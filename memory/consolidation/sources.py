"""Read episodes and evidence as the plain values that the steps of a cycle work on, beside their vectors.

`read_episodes` reads what nobody told, `read_members` the members of a job, `read_evidence_items` what episodes said
of beliefs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

import numpy as np
from django.db.models import QuerySet

from memory.domain.evidence import EvidenceRow, Verdict, merge_evidence
from memory.language.sentences import strip_echo
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.llm.requests import EpisodeText
from memory.models import DIMENSIONS, Claim, ClusterJob, Episode, Evidence, StructuralJob, StructuralKind
from memory.search.vectors import Vectors, read_episode_vectors
from memory.text.names import SpokenText, name_user
from memory.text.quotes import is_first_person

MERGE_CLASH = "What supports one of the two merged beliefs contradicts the other."


def read_episodes(*, episodes: QuerySet[Episode], model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Read the episodes that have a vector of this model, in canonical order: rows and vectors (n, 768)."""
    rows = episodes.values(*_EPISODE_COLUMNS).iterator(chunk_size=2000)
    return _with_vectors([_episode_source(row) for row in rows], model)


def read_members(*, job: ClusterJob, model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Read a job's members that still are this workspace's, active and not set aside, most central first."""
    members = list(job.members.order_by("position").values_list("episode_id", flat=True))
    active = Episode.objects.active().filter(pk__in=members, dead_at=None)
    sources, vectors = _with_vectors([_episode_source(row) for row in active.values(*_EPISODE_COLUMNS)], model)
    place = {source.id: number for number, source in enumerate(sources)}
    kept = [place[key] for key in members if key in place]
    return [sources[i] for i in kept], vectors[np.asarray(kept, dtype=np.intp)]


def read_sources(*, episodes: QuerySet[Episode]) -> list[EpisodeSource]:
    """Read episodes, with or without vectors."""
    return [_episode_source(row) for row in episodes.values(*_EPISODE_COLUMNS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSource:
    """What consolidation hears of an episode: its words without our own, who said it, and where."""

    id: str
    matter: str
    speaker: str
    language: str
    user: str
    project_id: int | None
    source: str
    category: str
    state: str
    failures: int
    created_at: datetime
    occurred_at: datetime
    content_hash: str
    origin: str
    claim_id: int | None = None  # of what is evidence: the claim that counts

    @property
    def claim(self) -> SpokenText:
        """Return the matter as the guard compares it."""
        return SpokenText(text=self.matter, speaker=self.speaker, language=self.language)

    @property
    def company(self) -> tuple[str, str, str]:
        """Name those who may share a cluster with it: one user's, and what one person says of themselves (B8.2)."""
        says_i = self.speaker and is_first_person(self.matter)
        return self.user, self.language, self.speaker if says_i else ""

    def as_text(self) -> EpisodeText:
        """Return the episode as a model sees it."""
        return EpisodeText(
            id=self.id,
            text=self.matter,
            speaker=self.speaker,
            language=self.language,
            occurred_on=self.occurred_at.date().isoformat(),
        )


_EPISODE_COLUMNS = (
    "id", "text", "speaker", "language", "user", "project_id", "source", "category", "state", "failures",
    "created_at", "occurred_at", "content_hash", "origin",
)  # fmt: skip


def _with_vectors(sources: Sequence[EpisodeSource], model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Keep the sources that have a vector, in canonical order."""
    ids, vectors = read_episode_vectors(model=model, ids=[source.id for source in sources])
    own = dict(zip(ids, vectors, strict=True))
    kept = [source for source in sorted(sources, key=canonical_order) if source.id in own]
    stacked = np.stack([own[source.id] for source in kept]) if kept else np.zeros((0, DIMENSIONS), np.float32)
    return kept, stacked


def _episode_source(row: dict[str, Any]) -> EpisodeSource:
    text = row.pop("text")
    return EpisodeSource(matter=strip_echo(str(text), str(row["speaker"])), **row)


def canonical_order(episode: EpisodeSource) -> tuple[datetime, str, str, str]:
    """Return what episodes are ordered by, so that the order of loading does not matter."""
    return episode.occurred_at, episode.content_hash, episode.origin, episode.matter


def hash_members(ids: Iterable[str]) -> str:
    """Hash a set of episodes, whatever their order."""
    return hashlib.sha256(" ".join(sorted(ids)).encode()).hexdigest()


def nearest_above(*, cosines: Vectors, threshold: float) -> list[int]:
    """Return the positions of the cosines above a threshold, greatest first; sorts those alone, which are few."""
    above = np.flatnonzero(cosines > threshold)
    ordered: list[int] = above[np.argsort(-cosines[above], kind="stable")].tolist()
    return ordered


def shared_user_name(members: Iterable[EpisodeSource]) -> str:
    """Return what the one user of some episodes is called, or "" where that is not known."""
    users = {member.user for member in members}
    return name_user(user=users.pop()) if len(users) == 1 else ""


def narrow_to_claims(*, sources: Mapping[str, EpisodeSource], claims: Mapping[str, int]) -> dict[str, EpisodeSource]:
    """Let sources of whole episodes, by id, say one claim each, where `claims` names one that is still there."""
    found = Claim.objects.filter(pk__in=claims.values(), is_whole=False)
    told = {row.episode_id: row for row in found.only("pk", "episode_id", "sentence")}
    return {
        key: replace(source, matter=told[key].sentence, speaker="", claim_id=told[key].pk) if key in told else source
        for key, source in sources.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceItem:
    """One episode's word on one belief."""

    belief_id: str
    episode: EpisodeSource
    verdict: Verdict
    kind: str
    base_weight: float
    basis: str
    reason: str
    call_id: int | None
    claim_id: int | None
    at: datetime  # when what it says is so

    @property
    def row(self) -> EvidenceRow:
        """Return it as evidence is weighed."""
        return EvidenceRow(
            episode_id=self.episode.id,
            verdict=self.verdict,
            base_weight=self.base_weight,
            origin=self.episode.origin,
            occurred_at=self.at,
        )


def read_evidence_items(*, beliefs: Collection[str], with_echoes: bool = False) -> list[EvidenceItem]:
    """Read what still counts as evidence of beliefs, in canonical order."""
    rows = Evidence.objects.filter(belief__in=beliefs)
    if not with_echoes:
        rows = rows.filter(base_weight__gt=0)
    kept = Episode.objects.filter(pk__in={row.episode_id for row in rows}, is_derived=False).exclude(
        status__in=WITHDRAWN_STATUSES
    )
    whole = {source.id: source for source in read_sources(episodes=kept)}
    claims = {row.episode_id: row.claim_id for row in rows if row.claim_id}
    sources = narrow_to_claims(sources=whole, claims=claims)
    found = [
        EvidenceItem(
            belief_id=row.belief_id,
            episode=sources[row.episode_id],
            verdict=Verdict(row.verdict),
            kind=row.kind,
            base_weight=row.base_weight,
            basis=row.basis,
            reason=row.reason,
            call_id=row.call_id,
            claim_id=row.claim_id,
            at=row.valid_at or sources[row.episode_id].occurred_at,
        )
        for row in rows
        if row.episode_id in sources
    ]
    return sorted(found, key=_item_order)


def read_job_evidence_items(*, job: StructuralJob) -> list[EvidenceItem]:
    """Read what a structural job goes by: of a closed belief what was said since it was closed (C2), else all."""
    testimony = read_evidence_items(beliefs=[job.belief_id])
    until = job.belief.valid_until
    if job.kind != StructuralKind.CLOSE or until is None:
        return testimony
    return [said for said in testimony if said.at >= until]


def merge_evidence_items(*, belief_id: str, twin_id: str) -> list[tuple[EvidenceItem, Verdict, str]]:
    """Unite by episode what was said of two beliefs (B13): whose word counts, what it comes to, and why if they clash.

    Of two words that weigh the same the first belief's counts.
    """
    testimony = read_evidence_items(beliefs=[belief_id, twin_id], with_echoes=True)
    sides = [[said.row for said in testimony if said.belief_id == key] for key in (belief_id, twin_id)]
    by_weight = sorted(testimony, key=lambda said: (said.base_weight, said.belief_id == belief_id))
    heaviest = {said.episode.id: said for said in by_weight}
    united = [(heaviest[row.episode_id], row.verdict) for row in merge_evidence(left=sides[0], right=sides[1])]
    return [(said, verdict, "" if verdict is said.verdict else MERGE_CLASH) for said, verdict in united]


def select_newest_contradictions(testimony: Sequence[EvidenceItem], *, most: int) -> list[EvidenceItem]:
    """Choose what to show of a disproved belief: the newest contradictions, then what else there is; oldest first."""
    newest_first = sorted(testimony, key=_item_order, reverse=True)
    against_first = sorted(newest_first, key=lambda said: said.verdict is not Verdict.CONTRADICTS)
    return sorted(against_first[:most], key=_item_order)


def select_newest_of_both(testimony: Sequence[EvidenceItem], *, most: int) -> list[EvidenceItem]:
    """Choose what to show of a belief true in part: the newest of each side, as many of both; oldest first."""
    newest_first = sorted(testimony, key=_item_order, reverse=True)
    in_favour = [said for said in newest_first if said.verdict is Verdict.SUPPORTS]
    against = [said for said in newest_first if said.verdict is not Verdict.SUPPORTS]
    taking_turns = [said for pair in zip_longest(in_favour, against) for said in pair if said]
    return sorted(taking_turns[:most], key=_item_order)


def _item_order(said: EvidenceItem) -> tuple[object, ...]:
    return canonical_order(said.episode), said.belief_id
