"""What a search may find, as a value and as the conditions of a statement: the one place that filters candidates."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The rows that a search may find: `projects` None for all, `allowed` None for a viewer without limit.

    `occurred` is from when on and before when things happened; `categories` and `fact_types` are those of episodes and
    of beliefs; each None for no limit.
    """

    workspace_id: int
    projects: tuple[int, ...] | None
    allowed: tuple[int, ...] | None
    user: str
    now: datetime
    agent: str = ""
    occurred: tuple[datetime | None, datetime | None] = (None, None)
    categories: tuple[str, ...] | None = None
    fact_types: tuple[str, ...] | None = None
    with_expired: bool = False
    hidden_states: tuple[str, ...] = ()

    def parameters(self) -> dict[str, Any]:
        """Return what the conditions below name."""
        return {
            "workspace": self.workspace_id,
            "everything": self.projects is None,
            "projects": list(self.projects or ()),
            "unlimited": self.allowed is None,
            "allowed": list(self.allowed or ()),
            "user": self.user,
            "now": self.now,
            "agent": self.agent,
            "occurred_from": self.occurred[0],
            "occurred_until": self.occurred[1],
            "categories": None if self.categories is None else list(self.categories),
            "fact_types": None if self.fact_types is None else list(self.fact_types),
            "with_expired": self.with_expired,
            "hidden_states": list(self.hidden_states),
        }


# Conditions on columns that a memory and its vector both have; `{row}` is either.
EPISODE_PROJECTS = (
    "(%(everything)s OR {row}.project_id = ANY(%(projects)s) OR (%(unlimited)s AND {row}.project_id IS NULL))"
)
BELIEF_PROJECTS = "(%(everything)s OR {row}.project_id = ANY(%(projects)s) OR {row}.project_id IS NULL)"
_HERE = "{row}.workspace_id = %(workspace)s::bigint"
_USER = "(%(user)s::text = '' OR {row}.\"user\" IN ('', %(user)s))"
EPISODE_SCOPE = f"{_HERE} AND {EPISODE_PROJECTS} AND {_USER}"
BELIEF_SCOPE = f"{_HERE} AND {BELIEF_PROJECTS} AND {_USER}"

# Conditions on what only the memory's own row knows.
_VALID = "(%(with_expired)s OR {row}.valid_until IS NULL OR {row}.valid_until > %(now)s)"
_OCCURRED = """
    (%(occurred_from)s::timestamptz IS NULL OR {row}.occurred_at >= %(occurred_from)s)
    AND (%(occurred_until)s::timestamptz IS NULL OR {row}.occurred_at < %(occurred_until)s)
"""
EPISODE_WANTED = f"""
    {_VALID} AND {_OCCURRED}
    AND (%(agent)s::text = '' OR {{row}}.agent IN ('', %(agent)s))
    AND (%(categories)s::text[] IS NULL OR {{row}}.category = ANY(%(categories)s))
    AND {{row}}.lifecycle_state <> ALL(%(hidden_states)s)
"""
LIVE_EPISODE = f"{{row}}.status = 'active' AND {EPISODE_WANTED}"
# A belief is of a time if what it rests on occurred then.
BELIEF_WANTED = f"""
    {_VALID} AND (%(fact_types)s::text[] IS NULL OR {{row}}.fact_type = ANY(%(fact_types)s))
    AND (%(occurred_from)s::timestamptz IS NULL AND %(occurred_until)s::timestamptz IS NULL OR EXISTS (
        SELECT FROM memory_evidence t JOIN memory_episode o ON o.id = t.episode_id
        WHERE t.belief_id = {{row}}.id AND t.base_weight > 0 AND {_OCCURRED.format(row="o")}))
"""
# A viewer limited to projects sees a global belief if all that it rests on is of those.
EPISODE_SEEN = "(%(unlimited)s OR {row}.project_id = ANY(%(allowed)s))"
_BELIEF_SEEN = """(%(unlimited)s OR {row}.project_id IS NOT NULL OR (
        EXISTS (SELECT FROM memory_evidence x WHERE x.belief_id = {row}.id)
        AND NOT EXISTS (
            SELECT FROM memory_evidence x JOIN memory_episode o ON o.id = x.episode_id
            WHERE x.belief_id = {row}.id AND (o.project_id IS NULL OR o.project_id <> ALL(%(allowed)s)))))"""
BELIEF_SEEN = f"({{row}}.project_id IS NULL OR {EPISODE_SEEN}) AND {_BELIEF_SEEN}"
LIVE_BELIEF = f"""
    {{row}}.status = 'active' AND {{row}}.confidence > %(min_confidence)s AND {BELIEF_WANTED}
    AND {_BELIEF_SEEN}
"""
