"""What a viewer is shown of ranked memories: their texts, read through the viewer's own eyes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import DateTimeField, FloatField, Value
from django.db.models.functions import Coalesce

from memory.access import Viewer, visible_beliefs, visible_episodes
from memory.domain.knowledge import Knowledge, knowledge_of_belief, knowledge_of_episode
from memory.history.as_of import beliefs_as_of
from memory.recall.ranking import MemoryType, Ranked
from memory.recall.xray import Explanation
from memory.search.related import MemoryText, read_texts


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledMemory:
    """One result; a belief has a confidence, an episode a time at which it occurred.

    `dated` is the day to name it by: when an episode occurred, when a belief was borne out last. `superseded_by` is the
    belief that stands in the place of all that an episode bore out. `is_derived` are summaries. `is_relevant` if it has
    to do with the query at all. `claim` is what an episode asserts that the query means, as a sentence.
    """

    type: MemoryType
    id: str
    text: str
    knowledge: Knowledge
    score: float
    dated: datetime
    confidence: float | None = None
    occurred_at: datetime | None = None
    superseded_by: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    subject: str = ""  # of a belief
    session: str = ""
    is_derived: bool = False
    is_relevant: bool = False
    claim: str | None = None
    passage: str = ""  # of an episode, the words that a query is about, where those were looked for
    explain: Explanation | None = None


def read_memories(
    *,
    ranked: Sequence[Ranked],
    viewer: Viewer,
    as_of: datetime | None,
    waiting: Mapping[str, MemoryText],
    closed: Collection[str],
    successions: Mapping[str, str],
    is_relevant: Callable[[Ranked], bool],
    claim_of: Callable[[str], str | None],
    explained: Mapping[str, Explanation],
) -> tuple[RecalledMemory, ...]:
    """Read the texts of ranked memories, in their order; what a search found by mistake is not shown.

    `waiting` are the texts of turns, which are read already; `closed` beliefs are shown though they changed since.
    """
    texts = _read_texts(ranked, viewer, as_of, waiting, closed)
    return tuple(
        _result(
            item,
            texts[item.id],
            superseded_by=successions.get(item.id),
            is_relevant=is_relevant(item),
            claim=claim_of(item.id),
            explain=explained.get(item.id),
        )
        for item in ranked
        if item.id in texts
    )


def read_words(
    ranked: Sequence[Ranked],
    *,
    viewer: Viewer,
    as_of: datetime | None,
    waiting: Mapping[str, MemoryText],
    closed: Collection[str],
) -> dict[str, str]:
    """Read what ranked memories say, by their ids, and nothing else of them."""
    return {key: text.text for key, text in _read_texts(ranked, viewer, as_of, waiting, closed).items()}


def _read_texts(
    ranked: Sequence[Ranked],
    viewer: Viewer,
    as_of: datetime | None,
    waiting: Mapping[str, MemoryText],
    closed: Collection[str],
) -> Mapping[str, MemoryText]:
    if as_of is not None:
        return _as_they_stood([item.id for item in ranked], viewer, as_of)
    read = read_texts(
        episodes=[item.id for item in ranked if item.type == MemoryType.EPISODE and item.id not in waiting],
        beliefs=[item.id for item in ranked if item.type == MemoryType.BELIEF],
        closed=list(closed),
        workspace_id=viewer.workspace.pk,
        allowed=viewer.projects,
    )
    return {**read, **waiting} if waiting else read


_NO_TIME = Value(None, output_field=DateTimeField())


def _as_they_stood(ids: Sequence[str], viewer: Viewer, at: datetime) -> dict[str, MemoryText]:
    """Read beliefs as history has them; an episode's text never changes."""
    stored = visible_episodes(viewer=viewer).filter(pk__in=ids, created_at__lte=at)
    unsure = Value(None, output_field=FloatField())
    episodes = stored.values_list(
        "pk", "text", "category", "occurred_at", unsure, "session", "is_derived", _NO_TIME, "valid_until", Value("")
    )
    beliefs = beliefs_as_of(beliefs=visible_beliefs(viewer=viewer).filter(pk__in=ids), at=at)
    dated = Coalesce("last_reinforced_at", "created_at")
    of_none = (Value(""), Value(False))
    validity = ("valid_from", "valid_until", "subject")
    events = beliefs.values_list("pgh_obj_id", "statement", "fact_type", dated, "confidence", *of_none, *validity)
    return {row[0]: MemoryText._make(row) for rows in (episodes, events) for row in rows}


def _result(
    item: Ranked,
    text: MemoryText,
    *,
    superseded_by: str | None,
    is_relevant: bool,
    claim: str | None,
    explain: Explanation | None,
) -> RecalledMemory:
    is_episode = item.type == MemoryType.EPISODE
    return RecalledMemory(
        type=item.type,
        id=item.id,
        text=text.text,
        knowledge=knowledge_of_episode(category=text.kind) if is_episode else knowledge_of_belief(fact_type=text.kind),
        score=item.score,
        dated=text.dated,
        confidence=text.confidence,
        occurred_at=text.dated if is_episode else None,
        superseded_by=superseded_by,
        valid_from=text.valid_from,
        valid_until=text.valid_until,
        subject=text.subject,
        session=text.session,
        is_derived=text.is_derived,
        is_relevant=is_relevant,
        claim=claim,
        explain=explain,
    )
