"""What a workspace may spend in a UTC day, and what it has spent, settled or reserved, by the database's clock (B9).

Recall's embeddings are counted apart: a memory that may not think any more today still answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal

from django.conf import settings
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now, TruncDay

from memory.llm.budget import MONEY_IS_SPENT, RECALL_IS_SPENT, TOKENS_ARE_SPENT, DailyCapReached
from memory.models import ModelCall, Workspace
from memory.models.audit import PURPOSE_RECALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What calls used."""

    tokens: int
    cost_usd: Decimal


def spent_today(*, workspace_id: int) -> Spent:
    """Add up the calls of this UTC day, recall's embeddings apart."""
    sums = _today(workspace_id).exclude(purpose=PURPOSE_RECALL).aggregate(
        tokens=Sum(F("input_tokens") + F("output_tokens"), default=0),
        cost_usd=Sum("cost_usd", default=Decimal(0)),
    )  # fmt: skip
    return Spent(**sums)


def count_affordable(*, workspace: Workspace, rows: Sequence[ModelCall]) -> int:
    """Count how many of some reservations, in their order, fit under the workspace's caps.

    The caller holds the ledger's lock. Raises DailyCapReached where a cap is reached already.
    """
    if not _has_cap(workspace):
        return len(rows)
    spent = spent_today(workspace_id=workspace.pk)
    if reason := cap_reached(workspace=workspace, spent=spent):
        raise DailyCapReached(reason)
    tokens, cost = spent.tokens, spent.cost_usd
    for count, row in enumerate(rows):
        tokens, cost = tokens + row.input_tokens + row.output_tokens, cost + row.cost_usd
        if _over(tokens, workspace.daily_token_cap) or _over(cost, workspace.daily_cost_cap_usd):
            return count
    return len(rows)


def why_unaffordable(*, workspace: Workspace, row: ModelCall) -> str:
    """Name the cap under which a reservation does not fit."""
    tokens = spent_today(workspace_id=workspace.pk).tokens + row.input_tokens + row.output_tokens
    return TOKENS_ARE_SPENT if _over(tokens, workspace.daily_token_cap) else MONEY_IS_SPENT


def cap_reached(*, workspace: Workspace, spent: Spent) -> str:
    """Name the cap that has been reached; nothing if there is none, or room below it."""
    if workspace.daily_token_cap is not None and spent.tokens >= workspace.daily_token_cap:
        return TOKENS_ARE_SPENT
    if workspace.daily_cost_cap_usd is not None and spent.cost_usd >= workspace.daily_cost_cap_usd:
        return MONEY_IS_SPENT
    return ""


def recall_tokens_today(*, workspace_id: int) -> int:
    """Add up the tokens of this UTC day's query embeddings."""
    today = _today(workspace_id).filter(purpose=PURPOSE_RECALL)
    tokens: int = today.aggregate(tokens=Sum(F("input_tokens") + F("output_tokens"), default=0))["tokens"]
    return tokens


def recall_token_cap(*, workspace: Workspace) -> int:
    """Return the workspace's own cap on recall's embeddings, else the setting."""
    usual: int = settings.POLICY.recall.daily_tokens
    return usual if workspace.daily_recall_token_cap is None else workspace.daily_recall_token_cap


def check_recall_cap(*, workspace: Workspace, tokens: int) -> None:
    """Raise DailyCapReached where a query's embedding would go over the cap of its own; what is in flight may."""
    if recall_tokens_today(workspace_id=workspace.pk) + tokens > recall_token_cap(workspace=workspace):
        raise DailyCapReached(RECALL_IS_SPENT)


def _today(workspace_id: int) -> QuerySet[ModelCall]:
    rows: QuerySet[ModelCall] = ModelCall.objects.for_workspace(workspace_id)
    return rows.filter(started_at__gte=TruncDay(Now(), tzinfo=UTC))


def _has_cap(workspace: Workspace) -> bool:
    return workspace.daily_token_cap is not None or workspace.daily_cost_cap_usd is not None


def _over(amount: int | Decimal, cap: int | Decimal | None) -> bool:
    return cap is not None and amount > cap
