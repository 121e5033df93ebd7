"""The evidence of two beliefs that become one (B13)."""

from collections.abc import Iterable
from dataclasses import replace

from memory.domain.evidence import EvidenceRow
from memory.domain.verdicts import Verdict


def unite_evidence(*, left: Iterable[EvidenceRow], right: Iterable[EvidenceRow]) -> list[EvidenceRow]:
    """Return one row per episode, by id: the heavier one's, PARTIAL where the two verdicts clash."""
    united = {row.episode_id: row for row in left}
    for row in right:
        known = united.get(row.episode_id)
        united[row.episode_id] = row if known is None else _unite(known, row)
    return [united[key] for key in sorted(united)]


def _unite(one: EvidenceRow, other: EvidenceRow) -> EvidenceRow:
    heavier = max(one, other, key=lambda row: row.base_weight)
    # An echo says nothing, so it clashes with nothing that was said.
    is_clash = one.verdict is not other.verdict and (one.base_weight > 0) == (other.base_weight > 0)
    return replace(heavier, verdict=Verdict.PARTIAL) if is_clash else heavier
