"""What a search may find, as a value and as the conditions of a statement: the one place that filters candidates."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
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

    def resolve(self, statement: str) -> str:
        """Leave out of a statement what does not narrow this reach: the less it says, the sooner it is planned."""
        return _resolve(statement, tuple(self._flags().items()))

    def _flags(self) -> dict[str, bool]:
        return {
            _EVERYTHING: self.projects is None,
            _UNLIMITED: self.allowed is None,
            _ANY_USER: not self.user,
            _ANY_AGENT: not self.agent,
            _ANY_TIME: self.occurred == (None, None),
            _ANY_CATEGORY: self.categories is None,
            _ANY_FACT_TYPE: self.fact_types is None,
            _NONE_HIDDEN: not self.hidden_states,
        }


@lru_cache(maxsize=1_024)
def _resolve(statement: str, flags: tuple[tuple[str, bool], ...]) -> str:
    for flag, is_so in flags:
        statement = statement.replace(flag, "TRUE" if is_so else "FALSE")
    while (start := statement.find(_TRUE_OR)) >= 0:
        end = _closing(statement, start)
        statement = f"{statement[:start]}TRUE{statement[end + 1 :]}"
    return statement


def _closing(statement: str, start: int) -> int:
    """Return the place of the bracket that closes the one at `start`; no text of a condition has any in quotes."""
    depth = 0
    for place in range(start, len(statement)):
        depth += {"(": 1, ")": -1}.get(statement[place], 0)
        if not depth:
            return place
    raise ValueError(f"A bracket is never closed: {statement[start:]}")


_TRUE_OR = "(TRUE OR "


# What makes the rest of a condition say nothing.
_EVERYTHING = "%(everything)s"
_UNLIMITED = "%(unlimited)s"
_ANY_USER = "%(user)s::text = ''"
_ANY_AGENT = "%(agent)s::text = ''"
_ANY_TIME = "(%(occurred_from)s::timestamptz IS NULL AND %(occurred_until)s::timestamptz IS NULL)"
_ANY_CATEGORY = "%(categories)s::text[] IS NULL"
_ANY_FACT_TYPE = "%(fact_types)s::text[] IS NULL"
_NONE_HIDDEN = "cardinality(%(hidden_states)s::text[]) = 0"

# Conditions on columns that a memory and its vector both have; `{row}` is either.
EPISODE_PROJECTS = (
    f"({_EVERYTHING} OR {{row}}.project_id = ANY(%(projects)s) OR ({_UNLIMITED} AND {{row}}.project_id IS NULL))"
)
BELIEF_PROJECTS = f"({_EVERYTHING} OR {{row}}.project_id = ANY(%(projects)s) OR {{row}}.project_id IS NULL)"
_HERE = "{row}.workspace_id = %(workspace)s::bigint"
_USER = f"({_ANY_USER} OR {{row}}.\"user\" IN ('', %(user)s))"
EPISODE_SCOPE = f"{_HERE} AND {EPISODE_PROJECTS} AND {_USER}"
BELIEF_SCOPE = f"{_HERE} AND {BELIEF_PROJECTS} AND {_USER}"

# Conditions on what only the memory's own row knows.
_VALID = "(%(with_expired)s OR {row}.valid_until IS NULL OR {row}.valid_until > %(now)s)"
OCCURRED = f"""({_ANY_TIME} OR (
    (%(occurred_from)s::timestamptz IS NULL OR {{row}}.occurred_at >= %(occurred_from)s)
    AND (%(occurred_until)s::timestamptz IS NULL OR {{row}}.occurred_at < %(occurred_until)s)))
"""
EPISODE_WANTED = f"""
    {_VALID} AND {OCCURRED}
    AND ({_ANY_AGENT} OR {{row}}.agent IN ('', %(agent)s))
    AND ({_ANY_CATEGORY} OR {{row}}.category = ANY(%(categories)s))
    AND ({_NONE_HIDDEN} OR {{row}}.lifecycle_state <> ALL(%(hidden_states)s))
"""
LIVE_EPISODE = f"{{row}}.status = 'active' AND {EPISODE_WANTED}"
# A belief is of a time if what it rests on occurred then.
BELIEF_WANTED = f"""
    {_VALID} AND ({_ANY_FACT_TYPE} OR {{row}}.fact_type = ANY(%(fact_types)s))
    AND ({_ANY_TIME} OR EXISTS (
        SELECT FROM memory_evidence t JOIN memory_episode o ON o.id = t.episode_id
        WHERE t.belief_id = {{row}}.id AND t.base_weight > 0 AND {OCCURRED.format(row="o")}))
"""
# A viewer limited to projects sees a global belief if all that it rests on is of those.
EPISODE_SEEN = f"({_UNLIMITED} OR {{row}}.project_id = ANY(%(allowed)s))"
_BELIEF_SEEN = f"""({_UNLIMITED} OR {{row}}.project_id IS NOT NULL OR (
        EXISTS (SELECT FROM memory_evidence x WHERE x.belief_id = {{row}}.id)
        AND NOT EXISTS (
            SELECT FROM memory_evidence x JOIN memory_episode o ON o.id = x.episode_id
            WHERE x.belief_id = {{row}}.id AND (o.project_id IS NULL OR o.project_id <> ALL(%(allowed)s)))))"""  # noqa: S608  (as above)
BELIEF_SEEN = f"({{row}}.project_id IS NULL OR {EPISODE_SEEN}) AND {_BELIEF_SEEN}"
LIVE_BELIEF = f"""
    {{row}}.status = 'active' AND {{row}}.confidence > %(min_confidence)s AND {BELIEF_WANTED}
    AND {_BELIEF_SEEN}
"""
# One that changed since, and held at some time of a span; either end of that may be open.
CLOSED_BELIEF = f"""
    {{row}}.status = 'invalidated' AND {{row}}.status_reason = 'changed'
    AND {{row}}.confidence > %(min_confidence)s AND {_BELIEF_SEEN}
    AND ({_ANY_FACT_TYPE} OR {{row}}.fact_type = ANY(%(fact_types)s))
    AND (%(span_start)s::timestamptz IS NULL OR {{row}}.valid_until > %(span_start)s)
    AND (%(span_end)s::timestamptz IS NULL OR coalesce({{row}}.valid_from, {{row}}.created_at) < %(span_end)s)
"""
