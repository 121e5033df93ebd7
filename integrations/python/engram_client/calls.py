"""The calls of the API, each described once: what is sent, where to, what comes back, and whether it may be repeated.

Nothing here speaks to a server; `Engram` and `AsyncEngram` do, by these descriptions.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from engram_client import types

T = TypeVar("T")

Moment = datetime | str
Evidence = Sequence[types.Testimony]
JSON = "application/json"
LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request. `T` is what its answer is; `is_repeatable`: sent twice it does what it does once.

    `lines` names the list in which a batch's lines are answered, each for itself.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content: bytes | None = None
    is_repeatable: bool = False
    lines: str = ""


def _get(path: str, **query: Any) -> Call[Any]:
    return Call(method="GET", path=path, query=_given(query), is_repeatable=True)


def _post(path: str, body: Mapping[str, Any] | None = None, *, is_repeatable: bool = False) -> Call[Any]:
    return Call(method="POST", path=path, body=_given(body or {}), is_repeatable=is_repeatable)


def _batch(path: str, name: str, given: Iterable[Mapping[str, Any]], *, known_by: str) -> Call[Any]:
    """Send lines in one request; it may be repeated if each of them names what it is known by."""
    lines = _lines_of(name, given)
    is_repeatable = all(line.get(known_by) for line in lines)
    return Call(method="POST", path=path, body={name: _as_json(lines)}, is_repeatable=is_repeatable, lines=name)


def _lines_of(name: str, given: object) -> list[Mapping[str, Any]]:
    """Return lines as a list; raise TypeError for what is none, before anything is sent."""
    wanted = f"a list of dictionaries is needed, one for each of the {name}"
    if isinstance(given, Mapping):
        raise TypeError(f"{wanted}; this is a single one: put it into a list")
    if isinstance(given, (str, bytes, Set)) or not isinstance(given, Iterable):
        raise TypeError(f"{wanted}, in their order; this is a {type(given).__name__}")
    lines = list(given)
    for place, line in enumerate(lines):
        if not isinstance(line, Mapping):
            raise TypeError(f"{wanted}; number {place} is a {type(line).__name__}")
    return lines


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what was given, times as RFC 3339 has them."""
    return {name: _as_json(value) for name, value in values.items() if value is not None}


def _name(text: str) -> str:
    """Return an id as a part of an address: nothing in it leads elsewhere."""
    return quote(text, safe="")


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _as_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(item) for item in value]
    return value


# --- What goes in


def store_episode(
    text: str,
    *,
    project: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    document: str | None = None,
    speaker: str | None = None,
    source: Literal["human", "ai", "interaction", "ingest"] | None = None,
    occurred_at: Moment | None = None,
    valid_until: Moment | None = None,
    entities: Sequence[str] | None = None,
    category: str | None = None,
    importance: float | None = None,
    tags: Sequence[str] | None = None,
    language: str | None = None,
    idempotency_key: str | None = None,
) -> Call[types.EpisodesAnswer]:
    """Store one thing that happened or was said; with an idempotency key it may be sent again."""
    return _post("/episodes", locals(), is_repeatable=idempotency_key is not None)


def store_episodes(episodes: Iterable[types.EpisodeLine]) -> Call[types.EpisodesAnswer]:
    """Store up to 1,000 episodes. Where some are refused, the others are stored, and PartlyRefused is raised."""
    return _batch("/episodes", "episodes", episodes, known_by="idempotency_key")


def accept_turns(turns: Iterable[types.TurnLine]) -> Call[types.TurnsAnswer]:
    """Send up to 1,000 turns in order. Where some are refused, the others are kept, and PartlyRefused is raised."""
    return _batch("/turns", "turns", turns, known_by="turn_id")


def remember(
    text: str,
    *,
    project: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
    source: Literal["human", "ai", "interaction", "ingest"] | None = None,
    idempotency_key: str | None = None,
) -> Call[types.RememberAnswer]:
    """Remember a text: its facts meet what is believed at once, where a model can be asked."""
    return _post("/remember", locals(), is_repeatable=idempotency_key is not None)


# --- What comes back


def recall(
    query: str,
    *,
    project: str | None = None,
    user: str | None = None,
    session: str | None = None,
    agent: str | None = None,
    limit: int | None = None,
    mode: types.ModeEnum | None = None,
    profile: types.ProfileEnum | None = None,
    types: Sequence[Literal["episode", "belief"]] | None = None,
    occurred_after: Moment | None = None,
    occurred_before: Moment | None = None,
    as_of: Moment | None = None,
    include_expired: bool | None = None,
    graph: bool | None = None,
    explain: bool | None = None,
) -> "Call[types.Recalled]":
    """Find what comes to mind, best first."""
    return _post("/recall", locals(), is_repeatable=True)


def recollect(
    query: str,
    *,
    project: str | None = None,
    user: str | None = None,
    session: str | None = None,
    max_tokens: int | None = None,
) -> Call[types.Recollection]:
    """Return a few memories as a text to put before a conversation."""
    return _post("/recollections", locals(), is_repeatable=True)


def context(
    query: str,
    *,
    project: str | None = None,
    user: str | None = None,
    session: str | None = None,
    max_tokens: int | None = None,
) -> Call[types.Recollection]:
    """Return the beliefs and episodes that bear on a task as a text to put before it."""
    return _post("/context", locals(), is_repeatable=True)


def read_memory(memory_id: str) -> Call[types.MemoryCard]:
    """Read an episode or a belief with all that is known of it."""
    return _get(f"/memories/{_name(memory_id)}")


def read_status() -> Call[types.Status]:
    """Read how the memory stands."""
    return _get("/status")


def list_episodes(
    *,
    project: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    category: str | None = None,
    status: types.EpisodeStatus | None = None,
    state: types.EpisodeState | None = None,
    q: str | None = None,
    as_of: Moment | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.EpisodePage]:
    """Read a page of episodes, newest first."""
    return _get("/episodes", **locals())


def list_beliefs(
    *,
    project: str | None = None,
    user: str | None = None,
    category: types.FactTypeEnum | None = None,
    status: types.BeliefStatus | None = None,
    min_confidence: float | None = None,
    q: str | None = None,
    as_of: Moment | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.BeliefPage]:
    """Read a page of beliefs, newest first."""
    return _get("/beliefs", **locals())


def read_belief(belief_id: str, *, as_of: Moment | None = None) -> Call[types.BeliefCard]:
    """Read a belief with its evidence, decisions and lineage."""
    return _get(f"/beliefs/{_name(belief_id)}", as_of=as_of)


def read_belief_history(
    belief_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ChangePage]:
    """Read a page of a belief's changes."""
    return _get(f"/beliefs/{_name(belief_id)}/history", limit=limit, cursor=cursor)


def read_lineage(belief_id: str) -> Call[types.Family]:
    """Read all that a belief came from and all that came of it."""
    return _get(f"/beliefs/{_name(belief_id)}/lineage")


# --- By hand


def give_feedback(memory_id: str, *, value: types.ValueEnum) -> Call[types.Feedback]:
    """Say that a memory was useful, or wrong; each time counts."""
    return _post(f"/memories/{_name(memory_id)}/feedback", {"value": value})


def resolve_commitment(memory_id: str) -> Call[types.Resolved]:
    """Say that a commitment is done with."""
    return _post(f"/memories/{_name(memory_id)}/resolve", is_repeatable=True)


def forget_memory(memory_id: str, *, reason: str | None = None, erase: bool | None = None) -> Call[types.Forgotten]:
    """Forget a memory; with `erase`, for good."""
    told = {"reason": reason, "erase": None if erase is None else str(erase).lower()}
    return Call(method="DELETE", path=f"/memories/{_name(memory_id)}", query=_given(told))


def erase_memories(*, user: str | None = None, workspace: str | None = None) -> Call[types.Erasure]:
    """Erase all that is one user's, or, by its name, every memory of the workspace."""
    return _post("/erase", locals())


def found_belief(
    *,
    statement: str,
    evidence: Evidence,
    subject: str | None = None,
    predicate: str | None = None,
    context: str | None = None,
    timeframe: types.TimeframeEnum | None = None,
    fact_type: types.FactTypeEnum | None = None,
    importance: int | None = None,
    reason: str | None = None,
) -> Call[types.Belief]:
    """State a belief with its evidence."""
    return _post("/beliefs", locals())


def curate_belief(
    belief_id: str, act: Literal["pin", "unpin", "archive", "challenge", "restore"], *, reason: str
) -> Call[types.Belief]:
    """Pin, unpin, archive, challenge or restore a belief."""
    return _post(f"/beliefs/{_name(belief_id)}/{act}", {"reason": reason})


def correct_belief(
    belief_id: str,
    *,
    reason: str,
    statement: str | None = None,
    subject: str | None = None,
    context: str | None = None,
    timeframe: types.TimeframeEnum | None = None,
) -> Call[types.Reshaped]:
    """Say that a belief is wrong, and with a statement what is right instead."""
    told = {"reason": reason, "statement": statement, "subject": subject, "context": context, "timeframe": timeframe}
    return _post(f"/beliefs/{_name(belief_id)}/correct", told)


def merge_beliefs(*, beliefs: tuple[str, str], reason: str, statement: str | None = None) -> Call[types.Reshaped]:
    """Make one belief of two that say the same."""
    return _post("/beliefs/merge", locals())


def split_belief(belief_id: str, *, parts: Sequence[types.Part], reason: str) -> Call[types.Reshaped]:
    """Make two to five beliefs of one."""
    return _post(f"/beliefs/{_name(belief_id)}/split", {"parts": list(parts), "reason": reason})


# --- Cycles


def start_consolidation(*, dry_run: bool | None = None) -> "Call[types.CycleStarted | types.Rehearsal]":
    """Start a cycle; dry, say what one would do."""
    return _post("/consolidations", locals(), is_repeatable=bool(dry_run))


def list_consolidations(*, limit: int | None = None, cursor: str | None = None) -> Call[types.CyclePage]:
    """Read a page of cycles, newest first."""
    return _get("/consolidations", **locals())


def read_consolidation(cycle_id: str) -> Call[types.Cycle]:
    """Read a cycle with steps, counts and cost."""
    return _get(f"/consolidations/{_name(cycle_id)}")


def cancel_consolidation(cycle_id: str) -> Call[types.CycleStarted]:
    """Cancel a cycle: what is complete is applied."""
    return _post(f"/consolidations/{_name(cycle_id)}/cancel")


def undo_consolidation(cycle_id: str, *, reason: str | None = None) -> Call[types.Undone]:
    """Take back all that a cycle did, and hold its episodes."""
    return _post(f"/consolidations/{_name(cycle_id)}/undo", {"reason": reason})


def release_consolidation(cycle_id: str) -> Call[types.Released]:
    """Let the episodes that are held since a cycle was undone take part again."""
    return _post(f"/consolidations/{_name(cycle_id)}/release", is_repeatable=True)


# --- Moving


def export_workspace(*, user: str | None = None) -> Call[bytes]:
    """Export the workspace's memory, or one user's, as JSON Lines."""
    return _get("/export", user=user)


def import_workspace(content: bytes) -> Call[types.Imported]:
    """Import what was exported into a workspace without memories."""
    return Call(method="POST", path="/import", content=content)
