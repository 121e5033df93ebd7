"""Turns that wait to be read, and how well their words answer a query: few, so that all of them are looked at."""
# ruff: noqa: S608  (statements of this module's own parts; values travel as parameters)

from datetime import datetime
from typing import NamedTuple

from memory.domain.conversation import Role
from memory.models.conversations import WAITING_STATES
from memory.models.fulltext import UNKNOWN_CONFIGURATION
from memory.models.numbered import run_numbered
from memory.models.reach import EPISODE_SCOPE, OCCURRED, Reach
from memory.models.search_statements import score_of
from memory.models.vector_search import SearchQuery, search_parameters

_CHARACTERS = 4_000  # of a turn that are looked at: fifty of the longest would take longer than a recall may


class WaitingTurn(NamedTuple):
    """A turn that nobody has read yet, the first 4,000 characters of it; `length` counts its different words.

    The scores are as of episodes.
    """

    id: int
    content: str
    role: str
    speaker: str
    session: str
    project_id: int | None
    occurred_at: datetime
    text_score: float
    coverage: float
    telling: float
    length: int


def search_waiting_turns(
    *, reach: Reach, query: SearchQuery, configuration: str, except_session: str, most: int
) -> list[WaitingTurn]:
    """Return the newest turns of a reach that wait to be read, at most so many, with what their words score.

    `configuration` is how the query's language is stemmed, "" where that is not known. A conversation has no agent.
    """
    parameters = search_parameters(reach=reach, query=query, candidates=most, matching=most) | {
        "configuration": configuration or UNKNOWN_CONFIGURATION,
        "characters": _CHARACTERS,
        "roles": [str(role) for role in (Role.USER, Role.ASSISTANT, Role.TOOL)],
        "except_session": except_session,
    }
    rows = run_numbered(statement=reach.resolve(_WAITING), parameters=parameters, keeps_plan=True).fetchall()
    return [WaitingTurn._make(row) for row in rows]


_STATES = ", ".join(f"'{state}'" for state in WAITING_STATES)  # written out, as the index over those that wait has them
# Conversations first, by the indexes over those in which something waits, and of each what does: never all turns.
_WAITING = f"""
WITH open AS MATERIALIZED (
    SELECT c.id, c.session, c.project_id FROM memory_conversation c
    WHERE {EPISODE_SCOPE.format(row="c")} AND c.buffered > 0 AND c.session <> %(except_session)s
    UNION SELECT c.id, c.session, c.project_id FROM memory_conversation c
    WHERE {EPISODE_SCOPE.format(row="c")} AND c.leased > 0 AND c.session <> %(except_session)s
)
SELECT p.id, p.content, p.role, p.speaker, p.session, p.project_id, p.occurred_at, s.score, s.coverage, s.telling,
    length(p.search)
FROM (
    SELECT t.*,
        to_tsvector(%(configuration)s::regconfig, concat_ws(' ', t.speaker, t.content)) AS search
    FROM (
        SELECT c.session, c.project_id, t.id, t.role, t.speaker, t.occurred_at,
            left(t.content, %(characters)s::int) AS content
        FROM open c CROSS JOIN LATERAL (
            SELECT * FROM memory_turn t
            WHERE t.conversation_id = c.id AND t.state IN ({_STATES}) AND t.role = ANY(%(roles)s::varchar[])
              AND {OCCURRED.format(row="t")}
            OFFSET 0
        ) t ORDER BY t.id + 0 DESC LIMIT %(candidates)s
    ) t
) p {score_of("p")}
"""
