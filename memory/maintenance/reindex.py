"""Move a workspace to another embedding model while everything goes on.

`reindex_workspace` writes new vectors beside the old ones, which recall and cycles go on to compare; when all are
there, and no cycle is open, the workspace changes its model in one step, and the old vectors go. What is done stands
in the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.consolidation.model_calls import embed_with_retries
from memory.language.sentences import strip_echo
from memory.ledger.transactions import lock_workspace
from memory.llm.call_log import CallScope
from memory.llm.types import CallFailed, Embedder, FailureKind, WrongDimensions
from memory.models import Belief, BeliefEmbedding, Claim, ClaimEmbedding, Cycle, Episode, EpisodeEmbedding, Workspace
from memory.search.vectors import Vectors, store_belief_vectors, store_claim_vectors, store_episode_vectors

log = structlog.get_logger(__name__)
BATCH_TEXTS = 256
_DROPPED_AT_ONCE = 5_000
_POLL_SECONDS = 0.25  # between two looks whether the open cycle has ended


def reindex_workspace(
    *,
    workspace: Workspace,
    model: Embedder,
    wait_seconds: float,
    on_progress: Progress = lambda _, __: None,
    before_change: Callable[[], object] = lambda: None,
) -> ReindexResult:
    """Move a workspace to a model; raise CallFailed or DailyCapReached where it would not answer, CycleGoesOn.

    A running cycle compares the old vectors to its end, and the change waits for that. Indexes over the new vectors are
    best made in `before_change`.
    """
    before = workspace.embedding_model
    kinds = [_MemoryKind(workspace_id=workspace.pk, model=model, of=of) for of in (_EPISODES, _CLAIMS, _BELIEFS)]
    _embed_all(kinds, on_progress)
    if before != model.name:
        before_change()
        _change_model(workspace, kinds, wait_seconds, on_progress)
    _embed_all(kinds, on_progress)  # what was written under the old model by those who had looked before
    dropped = sum(kind.drop_old() for kind in kinds)
    episodes, claims, beliefs = kinds
    log.info("workspace_reembedded", workspace=workspace.pk, before=before, model=model.name)
    return ReindexResult(
        before=before,
        model=model.name,
        episodes=episodes.made,
        claims=claims.made,
        beliefs=beliefs.made,
        refused=sum(len(kind.refused) for kind in kinds),
        dropped=dropped,
    )


def _change_model(
    workspace: Workspace, kinds: Sequence[_MemoryKind], wait_seconds: float, on_progress: Progress
) -> None:
    """Change the model between two cycles, with nothing left to embed."""
    gives_up_at = time.monotonic() + wait_seconds
    while not _try_to_change(workspace, kinds):
        if time.monotonic() > gives_up_at:
            raise CycleStillOpen(f"A cycle has been open for {wait_seconds:g} s; its vectors were not taken away.")
        time.sleep(_POLL_SECONDS)
        _embed_all(kinds, on_progress)


@transaction.atomic
def _try_to_change(workspace: Workspace, kinds: Sequence[_MemoryKind]) -> bool:
    lock_workspace(workspace.pk)  # no cycle is opened meanwhile
    is_open = Cycle.objects.open().filter(workspace=workspace).exists()
    if is_open or any(kind.count_missing() for kind in kinds):
        return False
    workspace.embedding_model = kinds[0].model.name
    workspace.save(update_fields=["embedding_model"])
    return True


def _embed_all(kinds: Sequence[_MemoryKind], on_progress: Progress) -> None:
    while sum(kind.embed_missing(on_progress) for kind in kinds):  # until nothing came meanwhile
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexResult:
    """A workspace that compares a model's vectors now: how many were made, refused by the model, and dropped."""

    before: str
    model: str
    episodes: int
    claims: int
    beliefs: int
    refused: int
    dropped: int


class CycleStillOpen(RuntimeError):
    """A cycle was open for as long as the move would wait; what was embedded is kept."""


Progress = Callable[[int, int], None]  # vectors made since the last call, and those of the kind still to be made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Where a kind of memory keeps its texts and its vectors."""

    rows: type[Any]
    vectors: type[Any]
    owner: str
    columns: tuple[str, ...]
    first: Any  # that comes before every key
    text: Callable[..., str]
    store: Callable[..., None]


_EPISODES = _Table(
    rows=Episode,
    vectors=EpisodeEmbedding,
    owner="episode",
    columns=("text", "speaker"),
    first="",
    text=strip_echo,
    store=store_episode_vectors,
)

_CLAIMS = _Table(
    rows=Claim,
    vectors=ClaimEmbedding,
    owner="claim",
    columns=("sentence",),
    first=0,
    text=str,
    store=store_claim_vectors,
)

_BELIEFS = _Table(
    rows=Belief,
    vectors=BeliefEmbedding,
    owner="belief",
    columns=("statement",),
    first="",
    text=str,
    store=store_belief_vectors,
)


@dataclass(slots=True, kw_only=True)
class _MemoryKind:
    """One kind of memory on its way to a model."""

    workspace_id: int
    model: Embedder
    of: _Table
    made: int = 0
    refused: set[Any] = field(default_factory=set)

    def embed_missing(self, on_progress: Progress) -> int:
        """Embed what has old vectors only, in the order of ids; return how many vectors were made."""
        after, before, left = self.of.first, self.made, self.count_missing()
        while ids := list(self._missing().filter(**{f"{self.of.owner}__gt": after})[:BATCH_TEXTS]):
            stored = self._embed(self._texts(self.of.rows.objects.filter(pk__in=ids)))
            self.made, after, left = self.made + stored, ids[-1], max(left - len(ids), 0)
            on_progress(stored, left)
        return self.made - before

    def count_missing(self) -> int:
        """Count what has old vectors only."""
        return self._missing().count()

    def drop_old(self) -> int:
        """Delete the vectors of other models where there is one of this, or never will be; return how many."""
        owner = self.of.owner
        has_new = Exists(self._all().filter(**{owner: OuterRef(owner), "model": self.model.name}))
        old = self._all().exclude(model=self.model.name).filter(has_new | Q(**{f"{owner}__in": self.refused}))
        dropped = 0
        while ids := list(old.values_list(f"{owner}_id", flat=True)[:_DROPPED_AT_ONCE]):
            gone, _ = self._all().exclude(model=self.model.name).filter(**{f"{owner}__in": ids}).delete()
            dropped += gone
        return dropped

    def _all(self) -> QuerySet[Any]:
        vectors: QuerySet[Any] = self.of.vectors.objects.for_workspace(self.workspace_id)
        return vectors

    def _missing(self) -> QuerySet[Any, Any]:
        owner = self.of.owner
        has_new = Exists(self._all().filter(**{owner: OuterRef(owner), "model": self.model.name}))
        old = self._all().exclude(model=self.model.name).exclude(**{f"{owner}__in": self.refused}).filter(~has_new)
        return old.order_by(owner).values_list(f"{owner}_id", flat=True).distinct()

    def _texts(self, rows: QuerySet[Any]) -> dict[Any, str]:
        return {key: self.of.text(*values) for key, *values in rows.order_by("pk").values_list("pk", *self.of.columns)}

    def _embed(self, texts: Mapping[Any, str]) -> int:
        """Embed and store; what the model refuses alone, or what says nothing, is left without a vector."""
        said = {key: text for key, text in texts.items() if text.strip()}
        self.refused |= texts.keys() - said.keys()
        if not said:
            return 0
        try:
            vectors = embed_with_retries(
                scope=CallScope(workspace_id=self.workspace_id), model=self.model, texts=list(said.values())
            )
        except CallFailed as failure:
            if failure.kind is not FailureKind.BAD_REQUEST or isinstance(failure.__cause__, WrongDimensions):
                raise
            return self._embed_parts(said)
        return self._store(said, dict(zip(said, vectors, strict=True)))

    def _embed_parts(self, texts: Mapping[Any, str]) -> int:
        if len(texts) == 1:
            self.refused |= texts.keys()
            return 0
        keys, middle = list(texts), len(texts) // 2
        return sum(self._embed({key: texts[key] for key in part}) for part in (keys[:middle], keys[middle:]))

    @transaction.atomic
    def _store(self, texts: Mapping[Any, str], vectors: Mapping[Any, Vectors]) -> int:
        """Store the vectors of texts that are still as they were embedded, held so until they are stored."""
        held = self.of.rows.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=list(texts))
        same = {key for key, text in self._texts(held).items() if text == texts[key]}
        self.of.store(
            workspace_id=self.workspace_id,
            model=self.model.name,
            vectors={key: vector for key, vector in vectors.items() if key in same},
            is_beside=True,
            **self._flags({key: texts[key] for key in same}),
        )
        return len(same)

    def _flags(self, texts: Mapping[Any, str]) -> dict[str, Collection[str]]:
        if self.of is not _EPISODES:
            return {}
        return {"chunked": [key for key, text in texts.items() if self.model.is_overlong(text)]}
