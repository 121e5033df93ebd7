"""What a cycle reads: episodes and beliefs as plain values beside their vectors."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import QuerySet

from memory.domain.matching import Claim
from memory.domain.matter import matter_of
from memory.domain.person import is_first_person
from memory.domain.refusals import says_nothing
from memory.domain.user_names import name_of_user
from memory.llm.requests import EpisodeText, StatedBelief
from memory.models import Belief, ClusterJob, Episode
from memory.models.vectors import Vectors, read_belief_vectors, read_episode_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSource:
    """An episode as consolidation sees it: its matter, who said it, and where it came from."""

    id: str
    matter: str
    speaker: str
    language: str
    user: str
    project_id: int | None
    category: str
    state: str
    failures: int
    created_at: datetime
    occurred_at: datetime
    content_hash: str
    origin: str

    @property
    def claim(self) -> Claim:
        """Return the matter as the guard compares it."""
        return Claim(text=self.matter, speaker=self.speaker, language=self.language)

    @property
    def company(self) -> tuple[str, str, str]:
        """Name those who may share a cluster with it: one user's, and what one person says of themselves (B8.2)."""
        says_i = self.speaker and is_first_person(self.matter, self.language)
        return self.user, self.language, self.speaker if says_i else ""

    @property
    def is_saying(self) -> bool:
        """Tell whether it says anything: more than questions, greetings and thanks."""
        return not says_nothing(self.matter, language=self.language)

    def as_text(self) -> EpisodeText:
        """Return the episode as a model sees it."""
        return EpisodeText(
            id=self.id,
            text=self.matter,
            speaker=self.speaker,
            language=self.language,
            occurred_on=self.occurred_at.date().isoformat(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefSource:
    """A belief as consolidation sees it."""

    id: str
    statement: str
    statement_hash: str
    subject: str
    context: str
    language: str
    project_id: int | None
    user: str
    status: str

    @property
    def claim(self) -> Claim:
        """Return the statement as the guard compares it; whom it speaks of is its subject."""
        return Claim(text=self.statement, speaker=self.subject, language=self.language)

    def as_stated(self) -> StatedBelief:
        """Return the belief as a model sees it."""
        return StatedBelief(
            statement=self.statement, subject=self.subject, context=self.context, language=self.language, id=self.id
        )


_EPISODE_COLUMNS = (
    "id", "text", "speaker", "language", "user", "project_id", "category", "state", "failures",
    "created_at", "occurred_at", "content_hash", "origin",
)  # fmt: skip
_BELIEF_COLUMNS = (
    "id", "statement", "statement_hash", "subject", "context", "language", "project_id", "user", "status",
)  # fmt: skip


def read_episodes(*, episodes: QuerySet[Episode], model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Read the episodes that have a vector of this model, in canonical order: rows and vectors (n, 768)."""
    return _with_vectors(episodes.values(*_EPISODE_COLUMNS).iterator(chunk_size=2000), model)


def _with_vectors(rows: Iterable[dict[str, Any]], model: str) -> tuple[list[EpisodeSource], Vectors]:
    found = {row["id"]: row for row in rows}
    ids, vectors = read_episode_vectors(model=model, ids=list(found))
    sources = [_episode(found[key]) for key in ids]
    order = sorted(range(len(ids)), key=lambda place: canonical_key(sources[place]))
    return [sources[place] for place in order], vectors[np.asarray(order, dtype=np.intp)]


def read_sources(*, episodes: QuerySet[Episode]) -> list[EpisodeSource]:
    """Read episodes, with or without vectors."""
    return [_episode(row) for row in episodes.values(*_EPISODE_COLUMNS)]


def _episode(row: dict[str, Any]) -> EpisodeSource:
    text = row.pop("text")
    return EpisodeSource(matter=matter_of(str(text), str(row["speaker"])), **row)


def canonical_key(episode: EpisodeSource) -> tuple[datetime, str, str, str]:
    """Return what episodes are ordered by, so that the order of loading does not matter."""
    return episode.occurred_at, episode.content_hash, episode.origin, episode.matter


def read_beliefs(*, beliefs: QuerySet[Belief], model: str) -> tuple[list[BeliefSource], Vectors]:
    """Read the beliefs that have a vector of this model, by id: rows and vectors (n, 768)."""
    found = {row["id"]: BeliefSource(**row) for row in beliefs.values(*_BELIEF_COLUMNS)}
    ids, vectors = read_belief_vectors(model=model, ids=list(found))
    return [found[key] for key in ids], vectors


def hash_members(ids: Iterable[str]) -> str:
    """Hash a set of episodes, whatever their order."""
    return hashlib.sha256(" ".join(sorted(ids)).encode()).hexdigest()


def hash_statement(statement: str, subject: str) -> str:
    """Hash what a verdict was about: the statement and whom it speaks of."""
    return hashlib.sha256(f"{subject}\n{statement}".encode()).hexdigest()


def similarities(left: Vectors, right: Vectors) -> Vectors:
    """Return the raw cosines of unit vectors (n, d) and (m, d) as (n, m)."""
    product: Vectors = left @ right.T if len(left) and len(right) else np.zeros((len(left), len(right)), np.float32)
    return product


def nearest_above(*, cosines: Vectors, threshold: float) -> list[int]:
    """Return the positions of the cosines above a threshold, greatest first; sorts those alone, which are few."""
    above = np.flatnonzero(cosines > threshold)
    ordered: list[int] = above[np.argsort(-cosines[above], kind="stable")].tolist()
    return ordered


def person_of(members: Iterable[EpisodeSource]) -> str:
    """Return what the one user of some episodes is called, or "" where that is not known."""
    users = {member.user for member in members}
    return name_of_user(user=users.pop()) if len(users) == 1 else ""


def positions(sources: Sequence[EpisodeSource]) -> dict[str, int]:
    """Return where each episode stands."""
    return {source.id: place for place, source in enumerate(sources)}


def read_members(*, job: ClusterJob, model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Read a job's members that still are this workspace's and active, most central first, with their vectors."""
    order = list(job.members.order_by("position").values_list("episode_id", flat=True))
    active = Episode.objects.active().filter(pk__in=order)
    sources, vectors = _with_vectors(active.values(*_EPISODE_COLUMNS), model)  # few: no cursor on the server
    place = positions(sources)
    kept = [place[key] for key in order if key in place]
    return [sources[i] for i in kept], vectors[np.asarray(kept, dtype=np.intp)]
