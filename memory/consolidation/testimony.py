"""What episodes said of beliefs: as a job found it out, as models are shown it, as a belief's children inherit it."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from django.db.models import OuterRef, Subquery

from memory.consolidation.sources import EpisodeSource, canonical_key, read_sources, with_claims
from memory.domain.evidence import EvidenceRow, Verdict, merge_evidence
from memory.language.clauses import Mode
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EvidenceInput, record_evidence, supporting_rows
from memory.ledger.transactions import Author, lock_beliefs
from memory.models import (
    Basis,
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    EvidenceKind,
    JobVerdict,
    StructuralJob,
    StructuralKind,
)

NEW_EVIDENCE = "new evidence"
PAST = "held_before"  # why what was said founds nothing: it says nothing of now (C2)


def give_evidence(*, cycle: Cycle, job: ClusterJob) -> list[str]:
    """Turn a job's verdicts on existing beliefs into evidence; return the beliefs that gained some, echoes too."""
    said = {key: items for key, items in read_job_evidence(job=job).items() if key is not None}
    beliefs = lock_beliefs(said)
    known = {belief.pk for belief in beliefs}
    gained = record_evidence(
        said={key: items for key, items in said.items() if key in known},
        beliefs=beliefs,
        author=Author.of_cycle(cycle, reason=NEW_EVIDENCE),
    )
    if gained:
        job.outcome = "matched"
    return sorted(gained)


def find_supported_later(*, beliefs: Collection[str], than: datetime) -> set[str]:
    """Find the beliefs borne out by something said after a time: what was so before says nothing against them."""
    rows = supporting_rows(rows=Evidence.objects.filter(belief__in=beliefs)).exclude(
        episode__status__in=WITHDRAWN_STATUSES
    )
    return set(rows.filter(episode__occurred_at__gt=than).values_list("belief", flat=True))


def read_job_evidence(*, job: ClusterJob) -> dict[str | None, list[EvidenceInput]]:
    """Read what a job's verdicts say of each belief, and under None of its own candidate, as evidence."""
    took_part = ClusterMember.objects.filter(job=job, episode=OuterRef("episode")).values("claim")[:1]
    judged = job.verdicts.filter(claim=None).exclude(verdict=Verdict.IRRELEVANT)
    announces = job.claim is not None and job.claim.mode == Mode.CHANGE
    said: dict[str | None, list[EvidenceInput]] = defaultdict(list)
    for row in judged.annotate(member_claim=Subquery(took_part)).order_by("belief_id", "episode_id"):
        said[row.belief_id].append(
            EvidenceInput(
                episode_id=row.episode_id,
                verdict=Verdict(row.verdict),
                kind=_kind_of(row) if announces else EvidenceKind.ORDINARY,
                basis=Basis(row.basis),
                reason=row.reason,
                call_id=row.call_id,
                claim_id=row.member_claim,
            )
        )
    return dict(said)


def _kind_of(row: JobVerdict) -> EvidenceKind:
    """Tell of a claim that announces a change what announces it: that a belief ends, or what the claim founds."""
    is_announced = row.ends_belief or row.belief_id is None
    return EvidenceKind.ANNOUNCED if is_announced else EvidenceKind.ORDINARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """One episode's word on one belief."""

    belief_id: str
    episode: EpisodeSource
    verdict: Verdict
    kind: str
    base_weight: float
    basis: str
    reason: str
    call_id: int | None
    claim_id: int | None
    at: datetime  # when what it says is so

    @property
    def row(self) -> EvidenceRow:
        """Return it as evidence is weighed."""
        return EvidenceRow(
            episode_id=self.episode.id,
            verdict=self.verdict,
            base_weight=self.base_weight,
            origin=self.episode.origin,
            occurred_at=self.at,
        )


def read_testimony(*, beliefs: Collection[str], with_echoes: bool = False) -> list[Testimony]:
    """Read what still counts as evidence of beliefs, in canonical order."""
    rows = Evidence.objects.filter(belief__in=beliefs)
    if not with_echoes:
        rows = rows.filter(base_weight__gt=0)
    kept = Episode.objects.filter(pk__in={row.episode_id for row in rows}, is_derived=False).exclude(
        status__in=WITHDRAWN_STATUSES
    )
    whole = {source.id: source for source in read_sources(episodes=kept)}
    claims = {row.episode_id: row.claim_id for row in rows if row.claim_id}
    sources = with_claims(sources=whole, claims=claims)
    found = [
        Testimony(
            belief_id=row.belief_id,
            episode=sources[row.episode_id],
            verdict=Verdict(row.verdict),
            kind=row.kind,
            base_weight=row.base_weight,
            basis=row.basis,
            reason=row.reason,
            call_id=row.call_id,
            claim_id=row.claim_id,
            at=row.valid_at or sources[row.episode_id].occurred_at,
        )
        for row in rows
        if row.episode_id in sources
    ]
    return sorted(found, key=_in_order)


def testimony_of(*, job: StructuralJob) -> list[Testimony]:
    """Read what a structural job goes by: of a closed belief what was said since it was closed (C2), else all."""
    testimony = read_testimony(beliefs=[job.belief_id])
    until = job.belief.valid_until
    if job.kind != StructuralKind.CLOSE or until is None:
        return testimony
    return [said for said in testimony if said.at >= until]


CLASH = "What supports one of the two merged beliefs contradicts the other."


def unite_testimony(*, belief_id: str, twin_id: str) -> list[tuple[Testimony, Verdict, str]]:
    """Unite by episode what was said of two beliefs (B13): whose word counts, what it comes to, and why if they clash.

    Of two words that weigh the same the first belief's counts.
    """
    testimony = read_testimony(beliefs=[belief_id, twin_id], with_echoes=True)
    sides = [[said.row for said in testimony if said.belief_id == key] for key in (belief_id, twin_id)]
    by_weight = sorted(testimony, key=lambda said: (said.base_weight, said.belief_id == belief_id))
    heaviest = {said.episode.id: said for said in by_weight}
    united = [(heaviest[row.episode_id], row.verdict) for row in merge_evidence(left=sides[0], right=sides[1])]
    return [(said, verdict, "" if verdict is said.verdict else CLASH) for said, verdict in united]


def newest_against(testimony: Sequence[Testimony], *, most: int) -> list[Testimony]:
    """Choose what to show of a disproved belief: the newest contradictions, then what else there is; oldest first."""
    newest_first = sorted(testimony, key=_in_order, reverse=True)
    against_first = sorted(newest_first, key=lambda said: said.verdict is not Verdict.CONTRADICTS)
    return sorted(against_first[:most], key=_in_order)


def newest_of_both(testimony: Sequence[Testimony], *, most: int) -> list[Testimony]:
    """Choose what to show of a belief true in part: the newest of each side, as many of both; oldest first."""
    newest_first = sorted(testimony, key=_in_order, reverse=True)
    in_favour = [said for said in newest_first if said.verdict is Verdict.SUPPORTS]
    against = [said for said in newest_first if said.verdict is not Verdict.SUPPORTS]
    taking_turns = [said for pair in zip_longest(in_favour, against) for said in pair if said]
    return sorted(taking_turns[:most], key=_in_order)


def _in_order(said: Testimony) -> tuple[object, ...]:
    return canonical_key(said.episode), said.belief_id
