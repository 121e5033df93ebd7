"""From turns of a conversation to episodes: ask what facts they tell, and store those (L3)."""

from collections.abc import Callable, Sequence

from memory.domain.conversation import FactsFound, SaidTurn, Talk
from memory.ingest.arrival import Arrival, Outcome
from memory.llm.calls import CallBudget


def _always() -> bool:
    return True


def ask_for_facts(
    *, workspace_id: int, turns: Sequence[SaidTurn], budget: CallBudget, fence: Callable[[], bool] = _always
) -> FactsFound:
    """Ask the language model what facts some turns of one conversation tell; call it outside a transaction.

    Turns that no answer could be had for are named in `unread`: garbage is a failure, never "nothing found". Raises
    MustWait, OutOfBudget (DailyCapReached is one) or LeaseLost where the asking has to go on later.
    """
    raise NotImplementedError


def store_facts(*, found: FactsFound, turns: Sequence[SaidTurn], talk: Talk, arrival: Arrival) -> list[Outcome]:
    """Store each fact as an episode of its session, in one transaction; doing it again adds nothing (L4)."""
    raise NotImplementedError
