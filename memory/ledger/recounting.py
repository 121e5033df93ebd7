"""A workspace counts its evidence another way from now on, and all its beliefs are counted anew (B4, R10a)."""

from collections.abc import Iterator
from datetime import datetime

import structlog
from django.db import transaction

from memory.domain.actor import Actor
from memory.history.attribution import attribute_changes
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.locks import lock_beliefs, lock_workspace
from memory.models import Belief

log = structlog.get_logger(__name__)

# The choices of a workspace on which the numbers of its beliefs hang.
COUNTING = ("confidence_model", "counts_origins")

_BATCH = 500


@transaction.atomic
def recount_beliefs(*, workspace_id: int, actor: Actor, reason: str, now: datetime) -> int:
    """Compute every belief's numbers, and when time archives it, by what its workspace has chosen; return how many.

    The choice is stored by then, in the same transaction, so that no gate counts by the old one afterwards.
    """
    lock_workspace(workspace_id)
    attribute_changes(actor=actor, reason=reason)
    counted = 0
    for ids in _batches(workspace_id):
        recompute_beliefs(beliefs=lock_beliefs(ids), now=now)
        counted += len(ids)
    log.info("beliefs_recounted", workspace=workspace_id, beliefs=counted, actor=str(actor))
    return counted


def _batches(workspace_id: int) -> Iterator[list[str]]:
    ids = list(Belief.objects.for_workspace(workspace_id).order_by("pk").values_list("pk", flat=True))
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
