"""What is kept of erased words, so that they are refused: hashes under a key of the workspace's own (L4)."""

import secrets
from collections.abc import Iterable

from memory.domain.erasure import KEY_BYTES, digest_of_statement, digest_of_words
from memory.models import Erased, Workspace
from memory.models.rows import insert_new

Words = tuple[str, str]  # a user, and the hash of an episode's words
Statement = tuple[str, str]  # a user, and what a belief says


def refuse_from_now_on(*, workspace: Workspace, words: Iterable[Words], statements: Iterable[Statement]) -> None:
    """Note that some words, and some statements, do not come back."""
    key = _key_of(workspace)
    digests = {digest_of_words(key=key, user=user, words=hashed) for user, hashed in words}
    digests |= {digest_of_statement(key=key, user=user, statement=text) for user, text in statements}
    insert_new(model=Erased, rows=[{"workspace_id": workspace.pk, "digest": digest} for digest in sorted(digests)])


def _key_of(workspace: Workspace) -> bytes:
    """Return the workspace's key, drawn when it is needed first."""
    mine = Workspace.objects.filter(pk=workspace.pk)
    mine.filter(erasure_key=None).update(erasure_key=secrets.token_bytes(KEY_BYTES))
    return bytes(mine.values_list("erasure_key", flat=True).get() or b"")
