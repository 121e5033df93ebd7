"""What need not be asked again: pairs of episode and statement that have their verdict (B7)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from memory.domain.evidence import Verdict
from memory.llm.prompts import CLASSIFICATION_VERSION
from memory.llm.registry import language_model
from memory.llm.requests import Purpose
from memory.models import Basis, ChildVerdict, Evidence, JobVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a model said of an episode and a statement, and in which call."""

    verdict: Verdict
    reason: str
    call_id: int | None


def judging_model() -> str:
    """Name the model whose verdicts count as given."""
    return language_model().model_for(Purpose.CLASSIFY)


def given_verdicts(
    *, workspace_id: int, hashes: Collection[str], episodes: Collection[str]
) -> dict[tuple[str, str], Given]:
    """Find the verdicts that today's model and prompt gave, by (statement hash, episode id)."""
    rows = _given(workspace_id, hashes, episodes, "verdict", "reason", "call_id")
    return {
        (statement, episode): Given(verdict=Verdict(verdict), reason=reason, call_id=call_id)
        for statement, episode, verdict, reason, call_id in rows
    }


def judged_pairs(
    *, workspace_id: int, hashes: Collection[str], episodes: Collection[str]
) -> dict[tuple[str, str], Verdict]:
    """Find what was said of pairs (statement hash, episode id), and nothing else of it: a pool has many of them."""
    rows = _given(workspace_id, hashes, episodes, "verdict")
    return {(statement, episode): Verdict(verdict) for statement, episode, verdict in rows}


def _given(
    workspace_id: int, hashes: Collection[str], episodes: Collection[str], *columns: str
) -> Iterator[tuple[Any, ...]]:
    """Yield statement hash, episode and columns of what was said of beliefs, candidates and children of structure."""
    about = {
        "child__statement_hash": ChildVerdict.objects.for_workspace(workspace_id),
        "statement_hash": JobVerdict.objects.for_workspace(workspace_id),
    }
    for statement_hash, said in about.items():
        rows = said.filter(
            **{f"{statement_hash}__in": hashes},
            episode__in=episodes,
            basis=Basis.MODEL,
            model=judging_model(),
            prompt_version=CLASSIFICATION_VERSION,
        )
        yield from rows.values_list(statement_hash, "episode_id", *columns).iterator(chunk_size=5000)


def evidenced_pairs(*, workspace_id: int, beliefs: Collection[str], episodes: Collection[str]) -> set[tuple[str, str]]:
    """Find the pairs (belief id, episode id) that already are evidence."""
    rows = Evidence.objects.for_workspace(workspace_id).filter(belief__in=beliefs, episode__in=episodes)
    return set(rows.values_list("belief_id", "episode_id"))
