"""What evidence says of memories that were found: which episodes speak only for what is not believed any more, which
belief stands in its place (B16), and which beliefs rest on which episodes.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memory.models.numbered import run_numbered
from memory.models.reach import BELIEF_SCOPE, BELIEF_SEEN, Reach


class Bearing(NamedTuple):
    """The belief in the place of what an episode says, by that episode; the episodes that a belief rests on."""

    successions: dict[str, str]
    resting: dict[str, set[str]]


def read_bearing(
    *, episodes: Sequence[str], rivals: Sequence[str], beliefs: Sequence[str], reach: Reach, at: datetime | None
) -> Bearing:
    """Return which of the episodes were superseded, and by which live belief within reach: the newest (B21).

    Also which of the beliefs rest on which of the `rivals`; one that rests on none is left out. `at` asks which were
    superseded then, None which are; of the past, what was undone since counts as never done.
    """
    asked = {"episodes": list(episodes), "rivals": list(rivals), "beliefs": list(beliefs), "at": at}
    statement = reach.resolve(_NOW if at is None else _THEN)
    rows = run_numbered(statement=statement, parameters=asked | reach.parameters(), keeps_plan=at is None).fetchall()
    bearing = Bearing(successions={}, resting={})
    for episode, belief, is_succession in rows:
        if is_succession:
            bearing.successions[episode] = belief
        else:
            bearing.resting.setdefault(belief, set()).add(episode)
    return bearing


# What takes the place of a belief: its revision, what a person or a later word put there; further on also what these
# were merged into or split. A belief about beliefs takes nobody's place. An episode that bears out the refused part of
# a split belief says nothing that was given up.
_STATEMENT = """
WITH RECURSIVE line (episode_id, belief_id, status) AS (
    SELECT e.episode_id, c.id, {child_status}
    FROM memory_evidence e
    JOIN memory_belief b ON b.id = e.belief_id
    JOIN memory_lineage l ON l.parent_id = b.id AND l.kind IN ('revision', 'supersession') {line_known}
    JOIN memory_belief c ON c.id = l.child_id
    WHERE e.episode_id = ANY(%(episodes)s::text[]) AND e.workspace_id = %(workspace)s::bigint
      AND e.verdict = 'SUPPORTS' AND {parent_status} IN ('revised', 'invalidated') {word_known}
    UNION
    SELECT line.episode_id, c.id, {child_status}
    FROM line
    JOIN memory_lineage l ON l.parent_id = line.belief_id AND l.kind <> 'synthesis' {line_known}
    JOIN memory_belief c ON c.id = l.child_id
    WHERE line.status NOT IN ('active', 'challenged')
)
(
SELECT DISTINCT ON (line.episode_id) line.episode_id, line.belief_id, true
FROM line JOIN memory_belief c ON c.id = line.belief_id
WHERE line.status IN ('active', 'challenged') AND {seen}
  AND NOT EXISTS (
    SELECT FROM memory_evidence e JOIN memory_belief b ON b.id = e.belief_id
    WHERE e.episode_id = line.episode_id AND e.verdict IN ('SUPPORTS', 'PARTIAL')
      AND {parent_status} IN ('active', 'challenged') {word_known})
ORDER BY line.episode_id, c.created_at DESC, c.id
)
UNION ALL
SELECT episode_id, belief_id, false FROM memory_evidence
WHERE episode_id = ANY(%(rivals)s::text[]) AND belief_id = ANY(%(beliefs)s::text[])
"""
_STATUS_THEN = """(
    SELECT h.status FROM memory_beliefevent h WHERE h.pgh_obj_id = {row}.id AND h.updated_at <= %(at)s::timestamptz
    ORDER BY h.pgh_id DESC LIMIT 1)"""
_KNOWN_THEN = "AND {row}.created_at <= %(at)s::timestamptz"
_SEEN = f"{BELIEF_SCOPE} AND {BELIEF_SEEN}".format(row="c")

_NOW = _STATEMENT.format(parent_status="b.status", child_status="c.status", line_known="", word_known="", seen=_SEEN)
_THEN = _STATEMENT.format(
    parent_status=_STATUS_THEN.format(row="b"),
    child_status=_STATUS_THEN.format(row="c"),
    line_known=_KNOWN_THEN.format(row="l"),
    word_known=_KNOWN_THEN.format(row="e"),
    seen=_SEEN,
)
