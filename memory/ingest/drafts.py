"""Turn checked lines into rows that are not stored yet."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

from memory.access import ensure_projects, find_projects
from memory.domain.content_hash import content_hash
from memory.domain.language import detect_language
from memory.domain.lifecycle import ConsolidationState, EpisodeStatus
from memory.domain.matter import matter_of, opening_name
from memory.domain.origin import origin_of
from memory.ingest.arrival import Arrival, Rejected
from memory.ingest.lines import EpisodeLine, ExtractedLine
from memory.models import Source
from memory.models.fields import new_episode_id

ECHO = "echo"
DERIVED = "derived"

_BEYOND = "This key is limited to some projects, and this is none of them."
OUTSIDE = Rejected(status=403, detail=_BEYOND, errors={"project": [_BEYOND]})


@dataclass(kw_only=True)
class Draft:
    """What an episode's columns will hold, but for those that the database fills in.

    An instance of the model takes forty times as long to make.
    """

    id: str = field(default_factory=new_episode_id)
    workspace_id: int
    project_id: int | None
    user: str
    agent: str
    session: str
    document: str
    speaker: str
    source: str
    language: str
    text: str
    summary: str = ""
    entities: list[str]
    tags: list[str]
    category: str
    importance: float
    valence: float = 0.0
    confidence: float | None = None
    causes: list[str] = field(default_factory=list)
    origin: str
    content_hash: str
    idempotency_key: str | None
    line_hash: str
    is_derived: bool = False
    status: str = EpisodeStatus.ACTIVE
    state: str = ConsolidationState.NEW
    state_reason: str = ""
    failures: int = 0
    number: int = 0
    created_at: datetime
    occurred_at: datetime
    valid_until: datetime | None


def draft_episodes(*, lines: Sequence[EpisodeLine], arrival: Arrival) -> list[Draft | Rejected]:
    """Draft an episode for each line, in its place; a line outside the key's projects is rejected."""
    projects = _projects_of(lines, arrival)
    return [_draft(line=line, arrival=arrival, projects=projects) for line in lines]


def complete_draft(draft: Draft) -> None:
    """Fill in what depends on the speaker: the language, and whether all of it is echo (B4)."""
    matter = matter_of(draft.text, draft.speaker)
    if not draft.language:
        draft.language = detect_language(matter)
    name = "" if draft.speaker else opening_name_of(draft.text)
    if not (matter_of(draft.text, name) if name else matter):
        draft.state, draft.state_reason = ConsolidationState.SETTLED, ECHO


def opening_name_of(text: str) -> str | None:
    """Return the name that a text opens with, if it may be a speaker's."""
    return opening_name(text, longest=settings.POLICY.ingest.speaker_characters)


def _projects_of(lines: Sequence[EpisodeLine], arrival: Arrival) -> dict[str, int]:
    """Return the ids of the named projects: known ones for a limited key, else all, created where unknown."""
    slugs = {slug for line in lines if (slug := line.project or arrival.default_project)}
    if arrival.allowed_projects is None:
        return ensure_projects(workspace=arrival.workspace, slugs=slugs, now=arrival.now)
    return find_projects(workspace=arrival.workspace, slugs=slugs)


def _draft(*, line: EpisodeLine, arrival: Arrival, projects: dict[str, int]) -> Draft | Rejected:
    project_id = projects.get(line.project or arrival.default_project or "")
    if arrival.allowed_projects is not None and project_id not in arrival.allowed_projects:
        return OUTSIDE
    occurred_at = line.occurred_at or arrival.now
    document = line.document or ("" if line.session or line.occurred_at else arrival.file_name)
    return Draft(
        **_extracted(line),
        workspace_id=arrival.workspace.pk,
        project_id=project_id,
        user=line.user or "",
        agent=line.agent or "",
        session=line.session or "",
        document=document,
        speaker=line.speaker or "",
        source=line.source or Source.INTERACTION,
        language=line.language or "",
        text=line.text,
        entities=line.entities or [],
        tags=line.tags or [],
        category=line.category or "",
        importance=settings.POLICY.ingest.importance if line.importance is None else line.importance,
        origin=_origin(line, document=document, occurred_at=occurred_at),
        content_hash=content_hash(line.text),
        idempotency_key=line.idempotency_key,
        line_hash=line.fingerprint(),
        created_at=occurred_at if arrival.is_replay else arrival.now,
        occurred_at=occurred_at,
        valid_until=line.valid_until,
    )


def _extracted(line: EpisodeLine) -> dict[str, Any]:
    """Return what an extraction knows besides; what it derives takes no part in consolidation (B4)."""
    if not isinstance(line, ExtractedLine):
        return {}
    found = {name: getattr(line, name) for name in ("confidence", "valence", "causes", "is_derived")}
    settled = {"state": ConsolidationState.SETTLED, "state_reason": DERIVED}
    return found | (settled if line.is_derived else {})


def _origin(line: EpisodeLine, *, document: str, occurred_at: datetime) -> str:
    return origin_of(
        session=line.session or "",
        document=document,
        user=line.user or "",
        source=line.source or Source.INTERACTION,
        occurred_at=occurred_at,
    )
