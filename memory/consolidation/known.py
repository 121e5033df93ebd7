"""What need not be asked again: pairs of episode and statement that have their verdict (B7)."""

from collections.abc import Collection

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
    rows = JobVerdict.objects.for_workspace(workspace_id).filter(
        statement_hash__in=hashes,
        episode__in=episodes,
        basis=Basis.MODEL,
        model=judging_model(),
        prompt_version=CLASSIFICATION_VERSION,
    )
    return {(row.statement_hash, row.episode_id): row for row in rows}


def evidenced_pairs(*, workspace_id: int, beliefs: Collection[str], episodes: Collection[str]) -> set[tuple[str, str]]:
    """Find the pairs (belief id, episode id) that already are evidence."""
    rows = Evidence.objects.for_workspace(workspace_id).filter(belief__in=beliefs, episode__in=episodes)
    return set(rows.values_list("belief_id", "episode_id"))
