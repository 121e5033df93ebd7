"""What a cycle reads: episodes and beliefs as plain values beside their vectors."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.db.models import QuerySet

from memory.domain.lifecycle import BeliefStatus
from memory.language.analysis import SpokenText as Text
from memory.language.first_person import is_first_person
from memory.language.refusals import says_nothing
from memory.language.sentences import strip_echo
from memory.language.third_person import name_of_user
from memory.ledger.beliefs import BeliefSource, claim_key, hash_statement
from memory.llm.requests import EpisodeText
from memory.models import DIMENSIONS, Claim, ClusterJob, Episode
from memory.search.vectors import Vectors, read_claim_vectors, read_episode_vectors

NO_CLAIM = 0
_CLAIM = "claim "  # before the number of a claim that stands where a belief's id would


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSource:
    """What consolidation hears of an episode: one of its claims, or its whole matter; who said it, and where.

    Several claims of one episode are several sources with one id.
    """

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
    claim_id: int = NO_CLAIM  # of the whole matter of an episode that nobody read yet
    number: int = 0  # among the claims of its episode

    @property
    def key(self) -> tuple[str, int]:
        """Name the episode and the claim."""
        return self.id, self.claim_id

    @property
    def claim(self) -> Text:
        """Return the matter as the guard compares it."""
        return Text(text=self.matter, speaker=self.speaker, language=self.language)

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


_EPISODE_COLUMNS = (
    "id", "text", "speaker", "language", "user", "project_id", "category", "state", "failures",
    "created_at", "occurred_at", "content_hash", "origin",
)  # fmt: skip


def read_episodes(*, episodes: QuerySet[Episode], model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Read what episodes claim and has a vector of this model, in canonical order: rows and vectors (n, 768).

    Of an episode that nobody read yet that is its whole matter.
    """
    rows = {row["id"]: row for row in episodes.values(*_EPISODE_COLUMNS, "read_at").iterator(chunk_size=2000)}
    return _with_vectors(_sources_of(rows), model)


def _sources_of(rows: Mapping[str, dict[str, Any]]) -> list[EpisodeSource]:
    """Return the sources of some episodes: their claims that may be evidence, else all that they say."""
    read = [key for key, row in rows.items() if row.pop("read_at") is not None]
    claims = Claim.objects.evidence().filter(episode__in=read).values_list(*_CLAIM_COLUMNS)
    told = [_claim_source(rows[claim[0]], claim) for claim in claims.iterator(chunk_size=2000)]
    unread = rows.keys() - set(read)
    return [*told, *(_episode(rows[key]) for key in unread)]


_CLAIM_COLUMNS = ("episode_id", "pk", "number", "sentence", "language", "is_whole")


def _claim_source(row: Mapping[str, Any], claim: tuple[Any, ...]) -> EpisodeSource:
    """Return one claim of an episode; what is told in the third person has no speaker any more."""
    _, key, number, sentence, language, is_whole = claim
    whole = _episode(dict(row))
    if is_whole:
        return replace(whole, claim_id=key, number=number)
    language = language or whole.language
    return replace(whole, matter=sentence, speaker="", language=language, claim_id=key, number=number)


def _with_vectors(sources: Sequence[EpisodeSource], model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Keep the sources that have a vector: a claim's own, else that of its episode, whose whole matter it is."""
    ids, vectors = read_episode_vectors(model=model, ids=list({source.id for source in sources}))
    claim_ids, claim_vectors = read_claim_vectors(model=model, ids=[source.claim_id for source in sources])
    own = dict(zip(claim_ids, claim_vectors, strict=True))
    whole = dict(zip(ids, vectors, strict=True))
    wholes = set(
        Claim.objects.filter(
            pk__in=[source.claim_id for source in sources if source.claim_id], is_whole=True
        ).values_list("pk", flat=True)
    ) | {NO_CLAIM}
    kept = [
        (source, vector)
        for source in sorted(sources, key=canonical_key)
        if (vector := own.get(source.claim_id, whole.get(source.id) if source.claim_id in wholes else None)) is not None
    ]
    stacked = np.stack([vector for _, vector in kept]) if kept else np.zeros((0, DIMENSIONS), np.float32)
    return [source for source, _ in kept], stacked


def read_sources(*, episodes: QuerySet[Episode]) -> list[EpisodeSource]:
    """Read episodes, with or without vectors."""
    return [_episode(row) for row in episodes.values(*_EPISODE_COLUMNS)]


def _episode(row: dict[str, Any]) -> EpisodeSource:
    text = row.pop("text")
    return EpisodeSource(matter=strip_echo(str(text), str(row["speaker"])), **row)


def canonical_key(episode: EpisodeSource) -> tuple[datetime, str, str, int, str]:
    """Return what episodes are ordered by, so that the order of loading does not matter."""
    return episode.occurred_at, episode.content_hash, episode.origin, episode.number, episode.matter


def as_candidate(*, claim: Claim, source: EpisodeSource | Episode) -> BeliefSource:
    """Return what a claim may found as if it were a belief already."""
    return BeliefSource(
        id=claim_key(claim.pk),
        statement=claim.sentence,
        statement_hash=hash_statement(claim.sentence, claim.subject, claim.context),
        subject=claim.subject,
        context=claim.context,
        language=claim.language,
        project_id=source.project_id,
        user=source.user,
        status=BeliefStatus.ACTIVE,
    )


def read_candidates(*, claims: Collection[int], model: str) -> tuple[list[BeliefSource], Vectors]:
    """Read what claims of active episodes may found, and their vectors (n, 768)."""
    found = Claim.objects.active().filter(pk__in=claims).select_related("episode").defer("episode__search").in_bulk()
    ids, vectors = read_claim_vectors(model=model, ids=list(found))
    return [as_candidate(claim=found[key], source=found[key].episode) for key in ids], vectors


def hash_members(ids: Iterable[str]) -> str:
    """Hash a set of episodes, whatever their order."""
    return hashlib.sha256(" ".join(sorted(ids)).encode()).hexdigest()


def nearest_above(*, cosines: Vectors, threshold: float) -> list[int]:
    """Return the positions of the cosines above a threshold, greatest first; sorts those alone, which are few."""
    above = np.flatnonzero(cosines > threshold)
    ordered: list[int] = above[np.argsort(-cosines[above], kind="stable")].tolist()
    return ordered


def person_of(members: Iterable[EpisodeSource]) -> str:
    """Return what the one user of some episodes is called, or "" where that is not known."""
    users = {member.user for member in members}
    return name_of_user(user=users.pop()) if len(users) == 1 else ""


def read_members(*, job: ClusterJob, model: str) -> tuple[list[EpisodeSource], Vectors]:
    """Read a job's members that still are this workspace's, active and not set aside, most central first."""
    members = dict(job.members.order_by("position").values_list("episode_id", "claim_id"))
    active = Episode.objects.active().filter(pk__in=list(members), dead_at=None)
    rows = {row["id"]: row for row in active.values(*_EPISODE_COLUMNS)}
    claims = Claim.objects.filter(pk__in=[key for key in members.values() if key])
    told = {claim[0]: claim for claim in claims.values_list(*_CLAIM_COLUMNS)}
    sources, vectors = _with_vectors(
        [_claim_source(row, told[key]) if key in told else _episode(row) for key, row in rows.items()], model
    )
    place = {source.id: number for number, source in enumerate(sources)}
    kept = [place[key] for key in members if key in place]
    return [sources[i] for i in kept], vectors[np.asarray(kept, dtype=np.intp)]


def source_of(*, episode: Episode, claim: Claim) -> EpisodeSource:
    """Return one claim of an episode as a source."""
    row = {name: getattr(episode, name) for name in _EPISODE_COLUMNS}
    return _claim_source(row, (episode.pk, claim.pk, claim.number, claim.sentence, claim.language, claim.is_whole))


def with_claims(*, sources: Mapping[str, EpisodeSource], claims: Mapping[str, int]) -> dict[str, EpisodeSource]:
    """Let sources of whole episodes, by id, say one claim each, where `claims` names one that is still there."""
    found = Claim.objects.filter(pk__in=claims.values(), is_whole=False)
    told = {row.episode_id: row for row in found.only("pk", "episode_id", "number", "sentence", "language")}
    return {
        key: replace(source, matter=told[key].sentence, speaker="", claim_id=told[key].pk) if key in told else source
        for key, source in sources.items()
    }


def each_once(sources: Iterable[EpisodeSource]) -> list[EpisodeSource]:
    """Keep of each episode the first claim: an episode is one voice, however often it says a thing."""
    first: dict[str, EpisodeSource] = {}
    for source in sources:
        first.setdefault(source.id, source)
    return list(first.values())
