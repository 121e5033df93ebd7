"""What recalled memories say: read in one statement, however many there are."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memory.models.numbered import run_numbered
from memory.models.reach import BELIEF_SEEN, EPISODE_SEEN


class Text(NamedTuple):
    """An active memory's words; `kind` is an episode's category, a belief's fact type.

    `dated` is when an episode occurred, when a belief was borne out last; an episode has neither confidence nor
    subject. A belief is of no session; `is_derived` are summaries, which tell again what was told. It may say since and
    until when it holds.
    """

    id: str
    text: str
    kind: str
    dated: datetime
    confidence: float | None
    session: str
    is_derived: bool
    valid_from: datetime | None
    valid_until: datetime | None
    subject: str = ""


def read_texts(
    *,
    episodes: Sequence[str],
    beliefs: Sequence[str],
    closed: Sequence[str] = (),
    workspace_id: int,
    allowed: Sequence[int] | None,
) -> dict[str, Text]:
    """Return by id the active ones of these memories, as far as a workspace holds them and a viewer sees them (B21).

    Of the beliefs, those `closed` may have changed since. `allowed` are the projects that the viewer is limited to,
    None for no limit. A kind of which there is none is not looked at.
    """
    parts = [part for part, ids in ((_EPISODES, episodes), (_BELIEFS, beliefs)) if ids]
    if not parts:
        return {}
    asked = {
        "episodes": list(episodes),
        "beliefs": list(beliefs),
        "closed": list(closed),
        "workspace": workspace_id,
        "unlimited": allowed is None,
        "allowed": list(allowed or ()),
    }
    rows = run_numbered(statement=" UNION ALL ".join(parts), parameters=asked, keeps_plan=True).fetchall()
    return {row[0]: Text._make(row) for row in rows}


_EPISODES = f"""
    SELECT p.id, p.text, p.category, p.occurred_at, NULL::float8, p.session, p.is_derived,
           NULL::timestamptz, p.valid_until, ''
    FROM memory_episode p
    WHERE p.id = ANY(%(episodes)s::text[]) AND p.workspace_id = %(workspace)s::bigint AND p.status = 'active'
      AND {EPISODE_SEEN.format(row="p")}
"""  # noqa: S608  (conditions of this package; values travel as parameters)
_BELIEFS = f"""
    SELECT p.id, p.statement, p.fact_type, coalesce(p.last_reinforced_at, p.created_at), p.confidence, '', false,
           p.valid_from, p.valid_until, p.subject
    FROM memory_belief p
    WHERE p.id = ANY(%(beliefs)s::text[]) AND p.workspace_id = %(workspace)s::bigint
      AND (p.status = 'active' OR (p.status = 'invalidated' AND p.id = ANY(%(closed)s::text[])))
      AND {BELIEF_SEEN.format(row="p")}
"""  # noqa: S608  (as above)
