"""Add evidence to beliefs, and take it out again.

`record_evidence` is the only way in, whatever brings the evidence: a cycle, a remembered text or a curator (C3).
`withdraw_evidence` recomputes the beliefs whose episodes left; the rows stay for what was believed before (R10).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from memory.domain.evidence import Verdict
from memory.domain.identity import Actor
from memory.domain.lifecycle import LIVE, BeliefStatus, Reason
from memory.history import attribute_changes
from memory.ledger.confidence import WITHDRAWN_STATUSES, recompute_beliefs
from memory.ledger.gates import read_announced_ends, run_immediate_gates
from memory.ledger.transactions import Author, change_status, lock_beliefs
from memory.models import Basis, Belief, Evidence, EvidenceKind, Transition

# What an AI says in a session that was shown the belief, or what that one came of, only repeats it (Echo). What
# contradicts is so from when its claim says that things changed; what supports, from when it was said (C1).
_INSERT_EVIDENCE = """
WITH RECURSIVE given AS MATERIALIZED (
    SELECT * FROM unnest(
        %(beliefs)s::text[], %(episodes)s::text[], %(verdicts)s::text[], %(kinds)s::text[], %(weights)s::float8[],
        %(bases)s::text[], %(reasons)s::text[], %(calls)s::bigint[], %(claims)s::bigint[], %(valid_ats)s::timestamptz[]
    ) WITH ORDINALITY AS g (
        belief_id, episode_id, verdict, kind, weight, basis, reason, call_id, claim_id, valid_at, place)
), shown AS (
    SELECT s.session, s.belief_id, s.surfaced_at FROM memory_shownmemory s
    WHERE s.workspace_id = %(workspace)s AND s.belief_id IS NOT NULL AND s.session IN (
        SELECT e.session FROM given g JOIN memory_episode e ON e.id = g.episode_id
        WHERE e.source = 'ai' AND e.session <> '')
    UNION
    SELECT shown.session, l.child_id, shown.surfaced_at
    FROM shown JOIN memory_lineage l ON l.parent_id = shown.belief_id
)
INSERT INTO memory_evidence (workspace_id, belief_id, episode_id, verdict, kind, base_weight, is_founding, basis,
                             reason, claim_id, cycle_id, call_id, valid_at, created_at)
SELECT %(workspace)s, g.belief_id, g.episode_id, g.verdict, CASE WHEN echo.is_one THEN 'echo' ELSE g.kind END,
       CASE WHEN echo.is_one THEN 0 ELSE g.weight END, %(is_founding)s, g.basis, g.reason, g.claim_id, %(cycle)s,
       g.call_id, named.valid_at, %(now)s
FROM given g JOIN memory_episode e ON e.id = g.episode_id LEFT JOIN memory_claim c ON c.id = g.claim_id
CROSS JOIN LATERAL (
    SELECT CASE WHEN g.verdict <> 'SUPPORTS' OR since > e.occurred_at THEN since END AS valid_at
    FROM (SELECT coalesce(g.valid_at, c.holds_from::timestamp AT TIME ZONE 'UTC') AS since) claimed
) named
CROSS JOIN LATERAL (
    SELECT g.kind <> 'curator' AND e.source = 'ai' AND EXISTS (
        SELECT FROM shown s
        WHERE s.session = e.session AND s.belief_id = g.belief_id AND s.surfaced_at <= e.created_at) AS is_one
) echo
WHERE NOT e.is_derived AND e.status NOT IN ('forgotten', 'invalidated')
ORDER BY g.belief_id, g.place
ON CONFLICT (workspace_id, belief_id, episode_id) DO NOTHING
RETURNING belief_id, verdict, base_weight
"""
EVIDENCE_FORGOTTEN = "evidence was forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceInput:
    """One episode's word on a belief, on its way into the ledger."""

    episode_id: str
    verdict: Verdict
    kind: EvidenceKind = EvidenceKind.ORDINARY
    base_weight: float | None = None  # None: that of its kind; given where evidence is copied from another belief
    basis: Basis = Basis.PERSON
    reason: str = ""
    call_id: int | None = None
    claim_id: int | None = None
    valid_at: datetime | None = None  # since when it is so, where that is told and no claim tells it


def record_evidence(
    *,
    said: Mapping[str, Sequence[EvidenceInput]],
    beliefs: Sequence[Belief],
    author: Author,
    is_founding: bool = False,
) -> dict[str, list[Verdict]]:
    """Add to the evidence of beliefs what was said of each, by its id, and compute them anew.

    An episode speaks on a belief once: what it said already stands, unless another of its claims says in the same cycle
    or act that things have changed, or the contrary (F1). What an AI repeats of what its session was shown is kept as
    an echo, of weight 0. Derived, forgotten and invalidated episodes are no evidence. Return by belief the verdicts of
    the rows that are new, echoes left out; of a belief that gained echoes alone the list is empty. The caller holds the
    workspace's lock and the beliefs'.
    """
    given = [(key, item) for key, items in said.items() for item in items]
    taken_back = _take_earlier_words_back(given, author)
    _archive_again([belief for belief in beliefs if belief.pk in taken_back], author)
    gained = (
        _insert_rows(given, author=author, workspace_id=beliefs[0].workspace_id, is_founding=is_founding)
        if given
        else {}
    )
    touched = [belief for belief in beliefs if belief.pk in gained]
    author.sign()
    recompute_beliefs(beliefs=touched, now=author.now)
    run_immediate_gates(beliefs=touched, gained=gained, author=author)
    return gained


def _take_earlier_words_back(rows: Sequence[tuple[str, EvidenceInput]], author: Author) -> set[str]:
    """Take back what an episode said on a belief in this cycle or act where its last word on it is another (F1).

    Return the beliefs of which it did.
    """
    claimed = {(key, item.episode_id): item for key, item in rows if item.claim_id or not author.cycle}
    said = Evidence.objects.filter(
        cycle=author.cycle,
        **({} if author.cycle else {"created_at": author.now}),
        kind=EvidenceKind.ORDINARY,
        belief__in={key for key, _ in claimed},
        episode__in={episode for _, episode in claimed},
        is_founding=False,
    )
    taken_back: set[str] = set()
    for row in said if claimed else ():
        item = claimed.get((row.belief_id, row.episode_id))
        if item is None:
            continue
        if item.kind == EvidenceKind.ANNOUNCED or (
            _is_another_claim(row, item, author) and row.verdict != item.verdict
        ):
            row.delete()
            taken_back.add(row.belief_id)
    return taken_back


def _archive_again(beliefs: Sequence[Belief], author: Author) -> None:
    """Put back what nothing but a word that was taken back had brought from the archive."""
    for belief in beliefs:
        last, *before = Transition.objects.filter(belief=belief).order_by("-pk")[:2] or (None,)
        if (
            last
            and before
            and last.at == author.now
            and (last.old, last.new) == (BeliefStatus.ARCHIVED, BeliefStatus.ACTIVE)
        ):
            change_status(
                belief=belief, new=BeliefStatus.ARCHIVED, reason=before[0].reason, actor=author.actor, now=author.now
            )


def _is_another_claim(row: Evidence, item: EvidenceInput, author: Author) -> bool:
    """Tell whether a row is of another claim than what comes in; what a remembered text says need be none."""
    return not author.cycle or row.claim_id not in (None, item.claim_id)


def replay_evidence(*, row: Evidence, belief: Belief, author: Author) -> None:
    """Add a row once more as it stood, within a replay that the caller rolls back."""
    restore_evidence(rows=[{name: getattr(row, name) for name in EVIDENCE_COLUMNS}])
    gained = {belief.pk: [Verdict(row.verdict)] if row.base_weight > 0 else []}
    recompute_beliefs(beliefs=[belief], now=row.created_at)
    run_immediate_gates(beliefs=[belief], gained=gained, author=author)


def restore_evidence(*, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store rows as they are recorded; the caller sees to the beliefs' numbers."""
    Evidence.objects.bulk_create(Evidence(**row) for row in rows)


EVIDENCE_COLUMNS = (
    "workspace_id", "belief_id", "episode_id", "verdict", "kind", "base_weight", "is_founding", "basis", "reason",
    "claim_id", "cycle_id", "call_id", "valid_at", "created_at",
)  # fmt: skip


def _insert_rows(
    rows: Sequence[tuple[str, EvidenceInput]], *, author: Author, workspace_id: int, is_founding: bool
) -> dict[str, list[Verdict]]:
    gained: dict[str, list[Verdict]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_EVIDENCE, _row_arrays(rows) | {
            "workspace": workspace_id,
            "is_founding": is_founding,
            "cycle": author.cycle.pk if author.cycle else None,
            "now": author.now,
        })  # fmt: skip
        for belief_id, verdict, weight in cursor.fetchall():
            gained[belief_id] += [Verdict(verdict)] if weight > 0 else []
    return dict(gained)


def _row_arrays(rows: Sequence[tuple[str, EvidenceInput]]) -> dict[str, Any]:
    """Return the columns of rows as arrays."""
    items = [item for _, item in rows]
    return {
        "beliefs": [key for key, _ in rows],
        "episodes": [item.episode_id for item in items],
        "verdicts": [str(item.verdict) for item in items],
        "kinds": [str(item.kind) for item in items],
        "weights": [_base_weight(item) for item in items],
        "bases": [str(item.basis) for item in items],
        "reasons": [item.reason for item in items],
        "calls": [item.call_id for item in items],
        "claims": [item.claim_id for item in items],
        "valid_ats": [item.valid_at for item in items],
    }


def _base_weight(item: EvidenceInput) -> float:
    """Return what a row weighs before repeats of one origin are discounted (B4)."""
    if item.base_weight is not None:
        return item.base_weight
    policy = settings.POLICY.confidence
    weights = {
        EvidenceKind.CURATOR: policy.curator_weight,
        EvidenceKind.ECHO: 0.0,
        EvidenceKind.ENDED: policy.announced_weight,
        EvidenceKind.ANNOUNCED: policy.announced_weight
        if item.verdict is Verdict.CONTRADICTS
        else policy.ordinary_weight,
    }
    weight: float = weights.get(item.kind, policy.ordinary_weight)
    return weight


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceWithdrawal:
    """The beliefs that lost evidence, and those among them that were archived because no support was left."""

    beliefs: frozenset[str] = frozenset()
    archived: frozenset[str] = frozenset()

    def __or__(self, other: Self) -> Self:
        return replace(self, beliefs=self.beliefs | other.beliefs, archived=self.archived | other.archived)


def withdraw_evidence(*, rows: QuerySet[Evidence], actor: Actor, now: datetime) -> EvidenceWithdrawal:
    """Recompute the beliefs of rows whose episodes have just left; archive the live ones without support (B19).

    The caller holds the workspace's lock, so that nobody gives a belief evidence of what leaves.
    """
    beliefs = lock_beliefs(rows.values("belief"))
    lost_support = set(supporting_rows(rows=rows).values_list("belief_id", flat=True))
    supported = [belief for belief in beliefs if belief.pk in lost_support]
    archived = recompute_without(beliefs=beliefs, supported=supported, actor=actor, now=now)
    return EvidenceWithdrawal(beliefs=frozenset(belief.pk for belief in beliefs), archived=archived)


def recompute_without(
    *, beliefs: Collection[Belief], supported: Collection[Belief], actor: Actor, now: datetime
) -> frozenset[str]:
    """Recompute locked beliefs by what evidence is left; return those that were archived for want of support.

    `supported` are those that lost support.
    """
    attribute_changes(actor=actor, reason=EVIDENCE_FORGOTTEN)
    _reset_announced_ends(beliefs, now)
    recompute_beliefs(beliefs=list(beliefs), now=now)
    supported_still = _with_support(supported)
    bare = [b for b in supported if b.pk not in supported_still and b.status in LIVE and not b.is_pinned]  # D9
    for belief in bare:
        change_status(belief=belief, new=BeliefStatus.ARCHIVED, reason=Reason.UNSUPPORTED, actor=actor, now=now)
    return frozenset(belief.pk for belief in bare)


def _reset_announced_ends(beliefs: Collection[Belief], now: datetime) -> None:
    """Let beliefs hold until the last day that what is left announces, or that they were told with; else on (C1)."""
    ahead = [belief for belief in beliefs if belief.status == BeliefStatus.ACTIVE and belief.valid_until]
    days = read_announced_ends(beliefs=ahead, now=now) if ahead else {}
    for belief in ahead:
        if belief.valid_until != days.get(belief.pk):
            belief.valid_until = days.get(belief.pk)
            belief.save(update_fields=["valid_until"])


def _with_support(beliefs: Collection[Belief]) -> set[str]:
    """Find the beliefs for which a support is left that counts."""
    left = supporting_rows(rows=Evidence.objects.filter(belief__in=[belief.pk for belief in beliefs]))
    return set(left.exclude(episode__status__in=WITHDRAWN_STATUSES).values_list("belief", flat=True))


def supporting_rows(*, rows: QuerySet[Evidence]) -> QuerySet[Evidence]:
    """Keep the rows that support something, echoes left out."""
    return rows.filter(verdict=Verdict.SUPPORTS, base_weight__gt=0)
