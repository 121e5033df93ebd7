"""Step 1: lease what is new, corrections first, and see that it has a vector."""

from collections.abc import Sequence

import structlog
from django.conf import settings
from django.db.models import Case, IntegerField, Value, When

from memory.consolidation.cycle import budget_policy, renew_cycle, step_of_cycle, take_up_cycle
from memory.consolidation.leases import kept_alive
from memory.domain.lifecycle import ConsolidationState
from memory.domain.matter import matter_of
from memory.llm.embedding_calls import embed_in_ledger
from memory.llm.embeddings import Embedder, embedder
from memory.llm.ledger import CallScope
from memory.llm.model import CallFailed
from memory.models import Cycle, Episode
from memory.models.vectors import store_episode_vectors

log = structlog.get_logger(__name__)

_BATCH = 256


def extract_episodes(*, cycle_id: str, attempt: int) -> bool:
    """Lease new episodes for the cycle and embed those without a vector; false if the attempt must end here."""
    if not take_up_cycle(cycle_id=cycle_id, attempt=attempt):
        return False
    with step_of_cycle(cycle_id=cycle_id, attempt=attempt, name="extract") as step:
        if step is not None:
            step.counts = {"episodes": _lease_new(cycle_id=cycle_id, workspace_id=step.workspace_id)}
    return _embed_leased(cycle_id=cycle_id, attempt=attempt)


def _lease_new(*, cycle_id: str, workspace_id: int) -> int:
    waiting = (
        Episode.objects.for_workspace(workspace_id)
        .active()
        .filter(state__in=(ConsolidationState.NEW, ConsolidationState.FAILED), is_derived=False)
    )
    corrections_first = Case(When(category="correction", then=Value(0)), default=Value(1), output_field=IntegerField())
    chosen = waiting.order_by(corrections_first, "occurred_at", "content_hash", "origin")
    ids = list(
        chosen.select_for_update(skip_locked=True).values_list("pk", flat=True)[
            : settings.POLICY.consolidation.lease_episodes
        ]
    )
    return Episode.objects.filter(pk__in=ids).update(state=ConsolidationState.LEASED, leased_by=cycle_id)


def _embed_leased(*, cycle_id: str, attempt: int) -> bool:
    """Embed the leased episodes that have no vector of today's model; false if a server would not."""
    model = embedder()
    cycle = Cycle.objects.get(pk=cycle_id)
    missing = Episode.objects.for_workspace(cycle.workspace_id).filter(leased_by=cycle_id)
    rows = list(missing.exclude(embedding__model=model.name).values_list("pk", "text", "speaker"))
    with kept_alive(lambda: renew_cycle(cycle_id=cycle_id, attempt=attempt)):
        for start in range(0, len(rows), _BATCH):
            if not _embed_batch(model=model, cycle=cycle, rows=rows[start : start + _BATCH]):
                return False
    return True


def _embed_batch(*, model: Embedder, cycle: Cycle, rows: Sequence[tuple[str, str, str]]) -> bool:
    texts = [matter_of(text, speaker) for _, text, speaker in rows]
    try:
        vectors = embed_in_ledger(
            scope=CallScope(workspace_id=cycle.workspace_id, cycle_id=cycle.pk),
            model=model,
            texts=texts,
            timeout=budget_policy().call_seconds,
            episodes=[row[0] for row in rows],
        )
    except CallFailed as failure:
        log.warning("embedding_failed", cycle=cycle.pk, workspace=cycle.workspace_id, kind=failure.kind)
        return False
    store_episode_vectors(
        workspace_id=cycle.workspace_id,
        model=model.name,
        vectors={row[0]: vector for row, vector in zip(rows, vectors, strict=True)},
        chunked=[row[0] for row, text in zip(rows, texts, strict=True) if model.is_overlong(text)],
    )
    return True
