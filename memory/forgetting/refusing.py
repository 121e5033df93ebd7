"""What is kept of erased words, so that they are refused: hashes under a key of the workspace's own (L4)."""

import secrets
from collections.abc import Iterable

from django.conf import settings
from django.db.models import QuerySet

from memory.domain.erasure import KEY_BYTES, ToldTurn, digest_of_statement, digest_of_words, digests_of_turn
from memory.models import Erased, Turn, Workspace
from memory.models.fields import insert_new

Words = tuple[str, str]  # a user, and the hash of an episode's words
Statement = tuple[str, str]  # a user, and what a belief says

_CHUNK = 2_000  # turns that are held in memory at once


def refuse_from_now_on(*, workspace: Workspace, words: Iterable[Words], statements: Iterable[Statement]) -> None:
    """Note that some words, and some statements, do not come back."""
    key = _key_of(workspace)
    digests = {digest_of_words(key=key, user=user, words=hashed) for user, hashed in words}
    digests |= {digest_of_statement(key=key, user=user, statement=text) for user, text in statements}
    _keep(workspace, digests)


def refuse_turns_from_now_on(*, workspace: Workspace, turns: QuerySet[Turn]) -> None:
    """Note that some turns do not come back, by a replay, an import or whatever else sends them."""
    key, fewest = _key_of(workspace), settings.POLICY.turns.erased_words
    rows = turns.select_related("conversation__project").iterator(chunk_size=_CHUNK)
    digests = {mark for turn in rows for mark in digests_of_turn(key=key, turn=_as_told(turn), fewest_words=fewest)}
    _keep(workspace, digests)


def _as_told(turn: Turn) -> ToldTurn:
    place = turn.conversation
    return ToldTurn(
        user=place.user,
        session=place.session,
        project=place.project.slug if place.project else "",
        role=turn.role,
        content=turn.content,
        turn_id=turn.turn_id,
        occurred_at=None if turn.occurred_at == turn.created_at else turn.occurred_at,  # when it was stored: not said
    )


def _keep(workspace: Workspace, digests: Iterable[str]) -> None:
    insert_new(model=Erased, rows=[{"workspace_id": workspace.pk, "digest": digest} for digest in sorted(digests)])


def _key_of(workspace: Workspace) -> bytes:
    """Return the workspace's key, drawn when it is needed first."""
    mine = Workspace.objects.filter(pk=workspace.pk)
    mine.filter(erasure_key=None).update(erasure_key=secrets.token_bytes(KEY_BYTES))
    return bytes(mine.values_list("erasure_key", flat=True).get() or b"")
