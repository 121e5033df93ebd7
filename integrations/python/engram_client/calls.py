"""The calls of the API, each described once: what is sent, where to, what comes back, and whether it may be repeated.

Nothing here speaks to a server; `Engram` and `AsyncEngram` do, by these descriptions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Literal

from engram_client import types
from engram_client.request import Call, batch, get, is_too_long, post, quote_id, without_none

Moment = datetime | str
Evidence = Sequence[types.Testimony]


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
    """Store one thing that happened or was said; with an idempotency key it may be sent again.

    A text of more than 32 KiB becomes several episodes.
    """
    line = without_none(locals())
    if is_too_long(text):
        return batch("/episodes", "episodes", [line], text="text", known_by="idempotency_key")
    return post("/episodes", line, is_repeatable=idempotency_key is not None)


def store_episodes(episodes: Iterable[types.EpisodeLine]) -> Call[types.EpisodesAnswer]:
    """Store up to 1,000 episodes. Where some are refused, the others are stored, and PartlyRefused is raised."""
    return batch("/episodes", "episodes", episodes, text="text", known_by="idempotency_key")


def accept_turns(turns: Iterable[types.TurnLine]) -> Call[types.TurnsAnswer]:
    """Send up to 1,000 turns in order. Where some are refused, the others are kept, and PartlyRefused is raised."""
    return batch("/turns", "turns", turns, text="content", known_by="turn_id")


def remember(
    text: str,
    *,
    project: str | None = None,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    speaker: str | None = None,
    source: Literal["human", "ai", "interaction", "ingest"] | None = None,
    occurred_at: Moment | None = None,
    idempotency_key: str | None = None,
) -> Call[types.RememberAnswer]:
    """Remember a text: its facts meet what is believed at once, where a model can be asked."""
    return post("/remember", locals(), is_repeatable=idempotency_key is not None, is_slow=True)


# --- What comes to mind


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
    return post("/recall", locals(), is_repeatable=True)


def recollect(
    query: str,
    *,
    project: str | None = None,
    user: str | None = None,
    session: str | None = None,
    max_tokens: int | None = None,
) -> Call[types.Recollection]:
    """Return a few memories as a text to put before a conversation."""
    return post("/recollections", locals(), is_repeatable=True)


def context(
    query: str,
    *,
    project: str | None = None,
    user: str | None = None,
    session: str | None = None,
    max_tokens: int | None = None,
) -> Call[types.Recollection]:
    """Return the beliefs and episodes that bear on a task as a text to put before it."""
    return post("/context", locals(), is_repeatable=True)


def read_memory_md(*, user: str | None = None) -> Call[bytes]:
    """Read the section of an agent's MEMORY.md: the most trusted beliefs of no project, as Markdown."""
    return get("/memory.md", user=user)


def read_project_memory_md(slug: str, *, user: str | None = None) -> Call[bytes]:
    """Read a project's section likewise."""
    return get(f"/projects/{quote_id(slug)}/memory.md", user=user)


def read_status() -> Call[types.Status]:
    """Read how the memory stands."""
    return get("/status")


# --- What is known


def read_memory(memory_id: str) -> Call[types.MemoryCard]:
    """Read an episode or a belief with all that is known of it."""
    return get(f"/memories/{quote_id(memory_id)}")


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
    return get("/episodes", **locals())


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
    return get("/beliefs", **locals())


def read_belief(belief_id: str, *, as_of: Moment | None = None) -> Call[types.BeliefCard]:
    """Read a belief with its evidence, decisions and lineage."""
    return get(f"/beliefs/{quote_id(belief_id)}", as_of=as_of)


def read_belief_history(
    belief_id: str, *, limit: int | None = None, cursor: str | None = None
) -> Call[types.ChangePage]:
    """Read a page of a belief's changes."""
    return get(f"/beliefs/{quote_id(belief_id)}/history", limit=limit, cursor=cursor)


def read_lineage(belief_id: str) -> Call[types.Family]:
    """Read all that a belief came from and all that came of it."""
    return get(f"/beliefs/{quote_id(belief_id)}/lineage")


def read_claims(memory_id: str) -> Call[types.MemoryClaims]:
    """Read what an episode asserts and what became of it, or the claims that a belief rests on."""
    return get(f"/memories/{quote_id(memory_id)}/claims")


# --- By hand


def give_feedback(memory_id: str, *, value: types.ValueEnum) -> Call[types.Feedback]:
    """Say that a memory was useful, or wrong; each time counts."""
    return post(f"/memories/{quote_id(memory_id)}/feedback", {"value": value})


def resolve_commitment(memory_id: str) -> Call[types.Resolved]:
    """Say that a commitment is done with."""
    return post(f"/memories/{quote_id(memory_id)}/resolve", is_repeatable=True)


def forget_memory(memory_id: str, *, reason: str | None = None, erase: bool | None = None) -> Call[types.Forgotten]:
    """Forget a memory; with `erase`, for good."""
    told = {"reason": reason, "erase": None if erase is None else str(erase).lower()}
    return Call(method="DELETE", path=f"/memories/{quote_id(memory_id)}", query=without_none(told))


def erase_memories(*, user: str | None = None, workspace: str | None = None) -> Call[types.Erasure]:
    """Erase all that is one user's, or, by its name, every memory of the workspace."""
    return post("/erase", locals())


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
    return post("/beliefs", locals())


def curate_belief(
    belief_id: str, act: Literal["pin", "unpin", "archive", "challenge", "restore"], *, reason: str
) -> Call[types.Belief]:
    """Pin, unpin, archive, challenge or restore a belief."""
    return post(f"/beliefs/{quote_id(belief_id)}/{act}", {"reason": reason})


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
    return post(f"/beliefs/{quote_id(belief_id)}/correct", told)


def merge_beliefs(*, beliefs: tuple[str, str], reason: str, statement: str | None = None) -> Call[types.Reshaped]:
    """Make one belief of two that say the same."""
    return post("/beliefs/merge", locals())


def split_belief(belief_id: str, *, parts: Sequence[types.Part], reason: str) -> Call[types.Reshaped]:
    """Make two to five beliefs of one."""
    return post(f"/beliefs/{quote_id(belief_id)}/split", {"parts": list(parts), "reason": reason})


# --- All beliefs


def reflect(*, limit: int | None = None) -> Call[types.Reflection]:
    """Look at all beliefs: which may say the same, and which have faded."""
    return replace(get("/reflection", limit=limit), is_slow=True)


def prune_beliefs(*, dry_run: bool | None = None) -> Call[types.Pruned]:
    """Take out of recall what has faded; dry, name it."""
    return post("/reflection/prune", locals(), is_repeatable=bool(dry_run), is_slow=True)


def propose_merges() -> Call[types.Proposed]:
    """Have the next cycle ask whether beliefs that are near enough are one."""
    return post("/reflection/merges", is_repeatable=True, is_slow=True)


def make_meta_beliefs() -> Call[types.MetaRound]:
    """Have a model say what groups of like beliefs come down to."""
    return post("/reflection/meta-beliefs", is_slow=True)


def backfill_subjects() -> Call[types.Subjects]:
    """Give beliefs without a subject the one that their statement names."""
    return post("/reflection/subjects", is_slow=True)


def list_contradictions(
    *, state: types.ContradictionStateEnum | None = None, limit: int | None = None
) -> Call[types.ContradictionList]:
    """List pairs of beliefs that may contradict each other: those to look at, or those in a state."""
    return get("/contradictions", state=state, limit=limit)


def find_contradictions(
    *, check: bool | None = None, again: bool | None = None, limit: int | None = None
) -> Call[types.ContradictionLook]:
    """Look for such pairs; with `check` a model is asked about them, with `again` also where none could tell."""
    return post("/contradictions", locals(), is_slow=True)


def settle_contradiction(pair_id: int, settling: Literal["dismiss", "reopen"]) -> Call[types.Contradiction]:
    """Take a pair off the list, or let the next check ask about it again."""
    return post(f"/contradictions/{int(pair_id)}/{settling}", is_repeatable=True)


# --- Cycles


def start_consolidation(*, dry_run: bool | None = None) -> "Call[types.CycleStarted | types.Rehearsal]":
    """Start a cycle; dry, say what one would do."""
    return post("/consolidations", locals(), is_repeatable=bool(dry_run))


def list_consolidations(*, limit: int | None = None, cursor: str | None = None) -> Call[types.CyclePage]:
    """Read a page of cycles, newest first."""
    return get("/consolidations", **locals())


def read_consolidation(cycle_id: str) -> Call[types.Cycle]:
    """Read a cycle with steps, counts and cost."""
    return get(f"/consolidations/{quote_id(cycle_id)}")


def cancel_consolidation(cycle_id: str) -> Call[types.CycleStarted]:
    """Cancel a cycle: what is complete is applied."""
    return post(f"/consolidations/{quote_id(cycle_id)}/cancel")


def undo_consolidation(cycle_id: str, *, reason: str | None = None) -> Call[types.Undone]:
    """Take back all that a cycle did, and hold its episodes."""
    return post(f"/consolidations/{quote_id(cycle_id)}/undo", {"reason": reason})


def release_consolidation(cycle_id: str) -> Call[types.Released]:
    """Let the episodes that are held since a cycle was undone take part again."""
    return post(f"/consolidations/{quote_id(cycle_id)}/release", is_repeatable=True)


# --- Moving


def export_workspace(*, user: str | None = None) -> Call[bytes]:
    """Export the workspace's memory, or one user's, as JSON Lines."""
    return get("/export", user=user)


def import_workspace(content: bytes) -> Call[types.Imported]:
    """Import what was exported into a workspace without memories."""
    return Call(method="POST", path="/import", content=content)
