"""A curator corrects a belief: what they say is an episode, and evidence that weighs more than any other (B4, R7)."""

from dataclasses import replace

from django.db import transaction

from memory.consolidation.curation import (
    BeliefText,
    CurationResult,
    InvalidStatement,
    contradict_belief,
    embed_statements,
    replace_belief,
)
from memory.domain.errors import EngramError
from memory.ingest.schemas import IngestContext, Rejected
from memory.ingest.store import store_raw_episodes
from memory.ledger.beliefs import StatementVector
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.transactions import Author
from memory.models import Belief, Episode, Source
from memory.redaction.service import redact_for, redact_values

_CATEGORY = "correction"

_FORGOTTEN = "This was said before and has been forgotten: say it in other words, or give another reason."


class WasForgotten(EngramError, ValueError):
    """A curator says again what was forgotten, or found invalid, since they said it first: that is no evidence."""


def correct_belief(*, belief: Belief, wording: BeliefText | None, author: Author) -> CurationResult:
    """Say of a belief that it is wrong, and with a wording what is right instead.

    Saying the same twice changes nothing more. Raise InvalidStatement, WasForgotten, EmbeddingUnavailable, NotFound or
    IllegalTransitionError.
    """
    author = replace(author, reason=redact_for(workspace_id=belief.workspace_id, text=author.reason))
    wording = wording and _without_secrets(belief.workspace_id, wording)
    if wording is None:
        return _contradict(belief, author)
    if _words(wording.statement) == _words(belief.statement) and not (wording.context or wording.timeframe):
        raise InvalidStatement("The belief says that already.")
    [vector] = embed_statements(workspace_id=belief.workspace_id, statements=[wording.statement])
    return _replace(belief, wording, vector, author)


@transaction.atomic
def _contradict(belief: Belief, author: Author) -> CurationResult:
    """Record the reason alone: with the statement, the belief's words would outlive its being erased (B19)."""
    episode_id = _record(belief, text=f"Correction: {author.reason}", author=author)
    return CurationResult(
        made=[], changed=[contradict_belief(belief_id=belief.pk, episode_id=episode_id, author=author)]
    )


@transaction.atomic
def _replace(belief: Belief, wording: BeliefText, vector: StatementVector, author: Author) -> CurationResult:
    episode_id = _record(belief, text=wording.statement, author=author)
    return replace_belief(belief_id=belief.pk, wording=wording, vector=vector, episode_id=episode_id, author=author)


def _record(belief: Belief, *, text: str, author: Author) -> str:
    """Store the curator's word as an episode beside the belief's own; each curator is an origin."""
    line = {
        "text": text,
        "project": belief.project.slug if belief.project else None,
        "user": belief.user or None,
        "session": f"correction of {belief.pk} by {author.actor}"[:200],
        "source": Source.HUMAN.value,
        "category": _CATEGORY,
    }
    arrival = IngestContext(workspace=belief.workspace, now=author.now, actor=author.actor)
    [outcome] = store_raw_episodes(raw_lines=[line], arrival=arrival)
    if isinstance(outcome, Rejected):
        raise InvalidStatement(outcome.detail)
    if Episode.objects.filter(pk=outcome.id, status__in=WITHDRAWN_STATUSES).exists():
        raise WasForgotten(_FORGOTTEN)
    return outcome.id


def _without_secrets(workspace_id: int, wording: BeliefText) -> BeliefText:
    said = {name: getattr(wording, name) for name in ("statement", "subject", "predicate", "context")}
    return replace(wording, **redact_values(workspace_id=workspace_id, values=said))


def _words(statement: str) -> str:
    return statement.casefold().rstrip(" .!")
