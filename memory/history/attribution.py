"""Who changes beliefs, and why: said once in a transaction, and written beside every change by the triggers (R10)."""

import json

from django.db import connection
from django.db.transaction import TransactionManagementError

from memory.domain.identity import Actor
from memory.models import Belief, BeliefEvent
from memory.models.audit import RECORDED_COLUMNS

# The context's id is left unset: with it the triggers would keep a second copy of every context in a table of its own.
_SAY = "SELECT set_config('pghistory.context_metadata', %s, true)"


def attribute_changes(*, actor: Actor, reason: str) -> None:
    """Say who changes beliefs from here to the end of the transaction, or until said otherwise, and why."""
    if not connection.in_atomic_block:
        raise TransactionManagementError("Changes are attributed within a transaction.")
    with connection.cursor() as cursor:
        cursor.execute(_SAY, [json.dumps({"actor": str(actor), "reason": reason})])


def record_change(*, belief: Belief, actor: Actor, reason: str) -> None:
    """Keep how a belief stands after a change that touched nothing for which the triggers keep it."""
    BeliefEvent.objects.create(
        pgh_obj=belief,
        pgh_label="changed",
        pgh_context={"actor": str(actor), "reason": reason},
        **{name: getattr(belief, name) for name in RECORDED_COLUMNS},
    )
