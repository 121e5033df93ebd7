"""What need not be asked again: pairs of episode and statement that have their verdict (B7)."""

from collections.abc import Collection

from django.db.models import QuerySet

from memory.domain.verdicts import Verdict
from memory.llm.model import language_model
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.requests import Purpose
from memory.models import Basis, Evidence, JobVerdict


def judging_model() -> str:
    """Name the model whose verdicts count as given."""
    return language_model().model_for(Purpose.CLASSIFY)


def given_verdicts(
    *, workspace_id: int, hashes: Collection[str], episodes: Collection[str]
) -> dict[tuple[str, str], JobVerdict]:
    """Find the verdicts that today's model and prompt gave, by (statement hash, episode id)."""
    rows = _given(workspace_id, hashes, episodes)
    return {(row.statement_hash, row.episode_id): row for row in rows}


def judged_pairs(
    *, workspace_id: int, hashes: Collection[str], episodes: Collection[str]
) -> dict[tuple[str, str], Verdict]:
    """Find what was said of pairs (statement hash, episode id), and nothing else of it: a pool has many of them."""
    rows = _given(workspace_id, hashes, episodes).values_list("statement_hash", "episode_id", "verdict")
    return {(statement, episode): Verdict(verdict) for statement, episode, verdict in rows.iterator(chunk_size=5000)}


def _given(workspace_id: int, hashes: Collection[str], episodes: Collection[str]) -> QuerySet[JobVerdict]:
    mine: QuerySet[JobVerdict] = JobVerdict.objects.for_workspace(workspace_id)
    return mine.filter(
        statement_hash__in=hashes,
        episode__in=episodes,
        basis=Basis.MODEL,
        model=judging_model(),
        prompt_version=CLASSIFICATION_VERSION,
    )


def evidenced_pairs(*, workspace_id: int, beliefs: Collection[str], episodes: Collection[str]) -> set[tuple[str, str]]:
    """Find the pairs (belief id, episode id) that already are evidence."""
    rows = Evidence.objects.for_workspace(workspace_id).filter(belief__in=beliefs, episode__in=episodes)
    return set(rows.values_list("belief_id", "episode_id"))
