"""Episodes of before there were claims are read: what waits in the pool, and facts, which stand as they are (E1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memory.claims.reading import RULES, read_episodes_into_claims
from memory.domain.lifecycle import ConsolidationState
from memory.domain.matter import matter_of
from memory.language.modes import Mode
from memory.llm.embedding_calls import embed_in_ledger
from memory.llm.ledger import CallScope
from memory.llm.workspace_model import embedder_of
from memory.models import Claim, Episode, Source, TurnEpisode, Workspace
from memory.models.vectors import store_claim_vectors

BATCH = 200

Progress = Callable[[int, int], object]  # episodes read since the last call, and those still to be read


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp:
    """How many episodes were read into how many claims, and how many wait still."""

    episodes: int = 0
    facts: int = 0  # of these episodes
    claims: int = 0
    left: int = 0


def read_stored_episodes(
    *, workspace: Workspace, now: datetime, most: int | None = None, on_progress: Progress = lambda _, __: None
) -> CaughtUp:
    """Read up to `most` episodes that nobody has read, the oldest first; done again, it goes on where it was.

    What was read stands with its vectors after every batch. Raise CallFailed where the embedding model does not answer.
    """
    _embed_missing(workspace)
    episodes = facts = claims = 0
    left = unread_episodes(workspace=workspace).count()
    while left and (most is None or episodes < most):
        size = BATCH if most is None else min(BATCH, most - episodes)
        batch = list(unread_episodes(workspace=workspace).values_list("pk", flat=True)[:size])
        if not batch:
            break
        stored = _read(batch, now)
        _embed_missing(workspace)
        episodes, facts, claims = episodes + len(batch), facts + stored[0], claims + stored[1]
        left = max(left - len(batch), 0)
        on_progress(len(batch), left)
    return CaughtUp(episodes=episodes, facts=facts, claims=claims, left=left)


def unread_episodes(*, workspace: Workspace) -> QuerySet[Episode]:
    """Select what waits in the pool unread, and the facts that turns were read into; other settled ones stay unread."""
    unread = Episode.objects.for_workspace(workspace.pk).active().filter(read_at=None, is_derived=False)
    chosen = unread.filter(state=ConsolidationState.POOLED) | unread.filter(_is_fact(), state__in=_RESTING)
    return chosen.order_by("occurred_at", "pk")


_RESTING = (ConsolidationState.POOLED, ConsolidationState.SETTLED)  # no cycle is about to read it


def _is_fact() -> Exists:
    """Recognise what an extraction made of a turn; turns that are episodes in their own words are speech."""
    made = TurnEpisode.objects.filter(episode=OuterRef("pk"), is_verbatim=False)
    return Exists(made.filter(episode__confidence__isnull=False))


def _read(ids: Sequence[str], now: datetime) -> tuple[int, int]:
    """Read a batch; return how many of it are facts, and how many claims all have."""
    facts = _read_facts(ids, now)
    read_episodes_into_claims(episodes=ids, now=now)
    return len(facts), Claim.objects.filter(episode__in=ids).count()


@transaction.atomic
def _read_facts(ids: Sequence[str], now: datetime) -> list[Claim]:
    """Give each fact the one claim that it is, under its own vector."""
    unread = Episode.objects.select_for_update(no_key=True, of=("self",)).filter(_is_fact(), pk__in=ids, read_at=None)
    rows = list(unread.order_by("pk").defer("search"))
    said = {row.pk: matter_of(row.text, row.speaker) for row in rows}
    claims = Claim.objects.bulk_create(_as_it_stands(row, said[row.pk], now) for row in rows if said[row.pk])
    Episode.objects.filter(pk__in=list(said)).update(read_at=now)
    return claims


def _as_it_stands(fact: Episode, matter: str, now: datetime) -> Claim:
    """Return the claim that a fact is; what an AI says asserts nothing about its user (E2)."""
    is_advice = fact.source == Source.AI and bool(fact.user)
    return Claim(
        workspace_id=fact.workspace_id,
        episode=fact,
        number=1,
        sentence=matter,
        mode=Mode.ADVISED if is_advice else Mode.ASSERTED,
        confidence=fact.confidence or 0.0,
        is_whole=True,
        words=fact.verbatim,
        language=fact.language,
        reader=RULES,
        created_at=now,
    )


def _embed_missing(workspace: Workspace) -> None:
    """Embed the claims of the pool that no cycle would find otherwise, whoever read them."""
    model = embedder_of(workspace.pk)
    pooled = Claim.objects.for_workspace(workspace.pk).active().evidence().filter(is_whole=False)
    blank = pooled.filter(episode__state=ConsolidationState.POOLED).exclude(embedding__model=model.name)
    sentences: Mapping[int, str] = dict(blank.order_by("pk").values_list("pk", "sentence"))
    keys = list(sentences)
    for start in range(0, len(keys), BATCH):
        batch = keys[start : start + BATCH]
        vectors = embed_in_ledger(
            scope=CallScope(workspace_id=workspace.pk),
            model=model,
            texts=[sentences[key] for key in batch],
            timeout=settings.POLICY.budget.call_seconds,
        )
        store_claim_vectors(
            workspace_id=workspace.pk, model=model.name, vectors=dict(zip(batch, vectors, strict=True)), is_beside=True
        )
