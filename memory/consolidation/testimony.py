"""What a belief's episodes said of it, as models are shown it and as its children inherit it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from memory.consolidation.sources import EpisodeSource, canonical_key, read_sources, with_claims
from memory.domain.evidence import EvidenceRow
from memory.domain.uniting import unite_evidence
from memory.domain.verdicts import Verdict
from memory.ledger.evidence import LEFT
from memory.models import Episode, Evidence


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

    @property
    def row(self) -> EvidenceRow:
        """Return it as evidence is weighed."""
        return EvidenceRow(
            episode_id=self.episode.id,
            verdict=self.verdict,
            base_weight=self.base_weight,
            origin=self.episode.origin,
            occurred_at=self.episode.occurred_at,
        )


def read_testimony(*, beliefs: Collection[str], with_echoes: bool = False) -> list[Testimony]:
    """Read what still counts as evidence of beliefs, in canonical order."""
    rows = Evidence.objects.filter(belief__in=beliefs)
    if not with_echoes:
        rows = rows.filter(base_weight__gt=0)
    kept = Episode.objects.filter(pk__in={row.episode_id for row in rows}, is_derived=False).exclude(status__in=LEFT)
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
        )
        for row in rows
        if row.episode_id in sources
    ]
    return sorted(found, key=_in_order)


CLASH = "What supports one of the two merged beliefs contradicts the other."


def unite_testimony(*, belief_id: str, twin_id: str) -> list[tuple[Testimony, Verdict, str]]:
    """Unite by episode what was said of two beliefs (B13): whose word counts, what it comes to, and why if they clash.

    Of two words that weigh the same the first belief's counts.
    """
    testimony = read_testimony(beliefs=[belief_id, twin_id], with_echoes=True)
    sides = [[said.row for said in testimony if said.belief_id == key] for key in (belief_id, twin_id)]
    by_weight = sorted(testimony, key=lambda said: (said.base_weight, said.belief_id == belief_id))
    heaviest = {said.episode.id: said for said in by_weight}
    united = [(heaviest[row.episode_id], row.verdict) for row in unite_evidence(left=sides[0], right=sides[1])]
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
