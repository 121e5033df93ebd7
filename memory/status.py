"""B20: how a memory stands, by kind and status, with what waits and what it may still spend."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db.models import Count, Min, Sum

from memory import VERSION
from memory.access import Viewer, existing_beliefs, existing_episodes, visible_conversations
from memory.consolidation.cycle import find_pause
from memory.consolidation.schedule import Backlog, read_backlog
from memory.domain.lifecycle import ConsolidationState
from memory.graph.edges import count_unlinked
from memory.llm.call_log import reached_cap, recall_token_cap, recall_tokens_today, spent_today
from memory.llm.embeddings import embedder_of
from memory.llm.onnx_models import ModelUnavailable, reranker_name
from memory.llm.registry import language_model
from memory.llm.requests import Purpose
from memory.models import (
    Box,
    Cycle,
    Edge,
    Entity,
    Episode,
    PauseReason,
    Redaction,
    RememberJob,
    Turn,
    Workspace,
    WorkspacePause,
)
from memory.models.episodes import PENDING_STATES
from memory.models.fields import count_about
from memory.models.tenancy import WorkspaceQuerySet


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingStatus:
    """What models used since midnight UTC, recall's embeddings apart, and the caps; None for no cap."""

    tokens_today: int
    daily_token_cap: int | None
    cost_usd_today: Decimal
    daily_cost_cap_usd: Decimal | None
    is_cap_reached: bool
    recall_tokens_today: int
    daily_recall_token_cap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsInUse:
    """The models in use; offline means rules and vectors from the installation itself.

    `verdicts` judges pairs of texts, `reranker` has the last word on recall's order; it is "" where there is none.
    """

    llm: str
    verdicts: str
    embeddings: str
    reranker: str
    offline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTurns:
    """Turns of conversations that nobody has read yet, that are being read, or that wait for a person."""

    buffered: int
    leased: int
    dead: int
    oldest_at: datetime | None  # when the oldest of those that wait was stored


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberCounts:
    """Texts that are to be remembered at once: what waits for a model, and what was given up for a person to see."""

    queued: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCounts:
    """What links memories, estimated above a bound, and how many memories wait to be linked, up to one more than it."""

    entities: int
    edges: int
    boxes: int
    unlinked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A viewer's view of the memory; one limited to projects sees no cycles, backlog, budget or graph: everybody's."""

    beliefs_enabled: bool
    episodes: Mapping[str, int]
    beliefs: Mapping[str, int]
    pending_episodes: int
    pooled_episodes: int
    held_episodes: int
    dead_letters: int
    backlog: Backlog | None
    turns: WaitingTurns
    remembering: RememberCounts
    graph: GraphCounts | None
    redactions: Mapping[str, int] | None
    last_cycle: Cycle | None
    next_cycle_at: datetime | None
    pause: WorkspacePause | None
    budget: SpendingStatus | None
    models: ModelsInUse
    version: str = VERSION

    @property
    def is_believing(self) -> bool:
        """Return the same under the name that answers had first."""
        return self.beliefs_enabled


def read_status(*, viewer: Viewer, now: datetime) -> Status:
    """Count what the viewer may see, and say what comes next."""
    workspace, is_whole = viewer.workspace, not viewer.is_limited
    episodes = existing_episodes(viewer=viewer)
    states, dead = _count_by(episodes.active(), "state"), episodes.dead().count()
    pause = find_pause(workspace=workspace) if is_whole else None
    last = Cycle.objects.for_workspace(workspace).order_by("-opened_at").first() if is_whole else None
    return Status(
        beliefs_enabled=workspace.keeps_beliefs,
        episodes=_count_by(episodes, "status"),
        beliefs=_count_by(existing_beliefs(viewer=viewer), "status"),
        pending_episodes=sum(states.get(state, 0) for state in PENDING_STATES) - dead,
        pooled_episodes=states.get(ConsolidationState.POOLED, 0),
        held_episodes=states.get(ConsolidationState.HELD, 0),
        dead_letters=dead,
        backlog=read_backlog(workspace_id=workspace.pk, now=now) if is_whole else None,
        turns=_waiting_turns(viewer),
        remembering=_remember_counts(viewer),
        graph=read_graph(workspace=workspace) if is_whole else None,
        redactions=read_redactions(workspace=workspace) if is_whole else None,
        last_cycle=last,
        next_cycle_at=next_cycle_at(workspace=workspace, last=last, now=now, pause=pause) if is_whole else None,
        pause=pause,
        budget=_spending(workspace, pause) if is_whole else None,
        models=_models_in_use(workspace),
    )


def next_cycle_at(
    *, workspace: Workspace, last: Cycle | None, now: datetime, pause: WorkspacePause | None = None
) -> datetime | None:
    """Return when the next cycle starts by itself; None while nothing waits (B7) or beliefs are off (B22).

    A pause ends with one (B9). Where the last one left a backlog, the next follows at once.
    """
    if not workspace.keeps_beliefs or not Episode.objects.for_workspace(workspace).pending().exists():
        return None
    hours = timedelta(hours=settings.POLICY.consolidation.every_hours)
    due = max(last.opened_at + hours, now) if last and not last.has_backlog else now
    if pause is not None:
        due = max(pause.until, now)
    return max(due, workspace.next_cycle_held_until or due)


def _waiting_turns(viewer: Viewer) -> WaitingTurns:
    """Count the turns that wait to be read, in the viewer's projects."""
    conversations = visible_conversations(viewer=viewer)
    sums = conversations.aggregate(buffered=Sum("buffered", default=0), leased=Sum("leased", default=0))
    turns = Turn.objects.filter(conversation__in=conversations)
    oldest = turns.waiting().aggregate(at=Min("created_at"))["at"]
    return WaitingTurns(**sums, dead=turns.dead().count(), oldest_at=oldest)


def _count_by(rows: WorkspaceQuerySet, column: str) -> dict[str, int]:
    return dict(rows.order_by(column).values_list(column).annotate(Count("pk")))


def _remember_counts(viewer: Viewer) -> RememberCounts:
    """Count the texts of the viewer's projects that wait to be remembered, or were given up."""
    texts = RememberJob.objects.for_workspace(viewer.workspace)
    if viewer.projects is not None:
        texts = texts.filter(episode__project__in=viewer.projects)
    return RememberCounts(queued=texts.queued().count(), failed=texts.failed().count())


def read_graph(*, workspace: Workspace) -> GraphCounts:
    """Count what links a workspace's memories, and about how much it is where it is much."""
    return GraphCounts(
        entities=count_about(Entity.objects.for_workspace(workspace)),
        edges=count_about(Edge.objects.for_workspace(workspace)),
        boxes=count_about(Box.objects.for_workspace(workspace)),
        unlinked=count_unlinked(workspace_id=workspace.pk),
    )


def read_redactions(*, workspace: Workspace) -> dict[str, int]:
    """Count the secrets that were taken out of a workspace's texts, by kind."""
    return dict(Redaction.objects.for_workspace(workspace).order_by("kind").values_list("kind", "count"))


def _spending(workspace: Workspace, pause: WorkspacePause | None) -> SpendingStatus:
    spent = spent_today(workspace_id=workspace.pk)
    return SpendingStatus(
        is_cap_reached=(pause is not None and pause.reason == PauseReason.CAP)
        or bool(reached_cap(workspace=workspace, spent=spent)),
        recall_tokens_today=recall_tokens_today(workspace_id=workspace.pk),
        daily_recall_token_cap=recall_token_cap(workspace=workspace),
        tokens_today=spent.tokens,
        daily_token_cap=workspace.daily_token_cap,
        cost_usd_today=spent.cost_usd,
        daily_cost_cap_usd=workspace.daily_cost_cap_usd,
    )


def _models_in_use(workspace: Workspace) -> ModelsInUse:
    model = language_model()
    return ModelsInUse(
        llm=model.model_for(Purpose.SYNTHESIZE),
        verdicts=model.model_for(Purpose.CLASSIFY),
        embeddings=embedder_of(workspace).name,
        reranker=_reranker(settings.ENGRAM_RERANKER),
        offline=model.is_offline,
    )


def _reranker(named: str) -> str:
    try:
        return reranker_name(named=named) if named else ""
    except ModelUnavailable as error:
        return str(error)
