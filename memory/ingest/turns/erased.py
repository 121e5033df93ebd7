"""Turns that were erased are refused when they come again, as the words of erased episodes are (L4)."""

from collections.abc import Mapping

from django.conf import settings

from memory.domain.erasure import ToldTurn, digests_of_turn
from memory.ingest.turns.lines import TurnLine
from memory.models import Erased, Workspace


def told_turn(*, line: TurnLine, project: str) -> ToldTurn:
    """Return what a redacted line can be told by."""
    return ToldTurn(
        user=line.user or "",
        session=line.session,
        project=project,
        role=line.role,
        content=line.content,
        turn_id=line.turn_id,
        occurred_at=line.occurred_at,
    )


def erasure_key_of(workspace_id: int) -> bytes | None:
    """Return the key under which a workspace keeps what was erased; None where nothing was."""
    key = Workspace.objects.values_list("erasure_key", flat=True).get(pk=workspace_id)
    return None if key is None else bytes(key)


def find_erased(*, workspace_id: int, key: bytes | None, turns: Mapping[int, ToldTurn]) -> set[int]:
    """Return which of some turns were erased; without a key there is nothing to look for."""
    if key is None:
        return set()
    fewest = settings.POLICY.turns.erased_words
    digests = {place: digests_of_turn(key=key, turn=turn, fewest_words=fewest) for place, turn in turns.items()}
    asked = set().union(*digests.values())
    rows = Erased.objects.for_workspace(workspace_id).filter(digest__in=asked)
    erased = set(rows.values_list("digest", flat=True))
    return {place for place, marks in digests.items() if not erased.isdisjoint(marks)}
