"""Ask a language model what facts the turns of a conversation tell (L3)."""

from collections.abc import Callable, Iterator, Sequence

from django.conf import settings

from memory.domain.breaking import describe_own
from memory.domain.conversation import Fact, FactsFound, Role, SaidTurn
from memory.domain.matter import matter_of
from memory.domain.pieces import cut_pieces
from memory.domain.refusals import says_nothing
from memory.domain.user_names import name_of_user
from memory.llm.budget import CallBudget
from memory.llm.calls import Answer, Ask, Failure, answer_asks
from memory.llm.ledger import CallScope
from memory.llm.model import FailureKind, language_model
from memory.llm.prompts import LONGEST_TEXT
from memory.llm.replies import Facts
from memory.llm.requests import FactsRequest, TurnText

_UNHEARD = frozenset({Role.SYSTEM})  # what a system says are orders, the same in every conversation


def extraction_budget() -> CallBudget:
    """Return the time and attempts of one extraction."""
    return CallBudget.of_step(seconds=settings.POLICY.extraction.seconds, policy=settings.POLICY.budget)


def _always() -> bool:
    return True


def ask_for_facts(
    *,
    workspace_id: int,
    turns: Sequence[SaidTurn],
    budget: CallBudget,
    fence: Callable[[], bool] = _always,
    conversation_id: int | None = None,
    user: str = "",
) -> FactsFound:
    """Ask the language model what facts some turns of one conversation tell; call it outside a transaction.

    Turns that no answer could be had for are named in `unread`: garbage is a failure, never "nothing found". Raises
    MustWait, OutOfBudget (DailyCapReached is one) or LeaseLost where the asking has to go on later.
    """
    answers: list[Answer] = []
    failures = answer_asks(
        asks=list(_asks(as_turn_texts(turns, pieces=settings.POLICY.extraction.turns), name_of_user(user=user))),
        scope=CallScope(workspace_id=workspace_id, conversation_id=conversation_id),
        budget=budget,
        model=language_model(),
        store=answers.extend,
        fence=fence,
    )
    broken, failures = _part_ours(failures)
    found = [(fact, answer.call_id) for answer in answers for fact in _facts(answer)]
    found.sort(key=lambda entry: entry[0].turns)
    return FactsFound(
        facts=tuple(fact for fact, _ in found),
        call_ids=tuple(call_id for _, call_id in found),
        unread=tuple(sorted({number for failure in failures for number in _numbers(failure)})),
        failure=f"{failures[0].kind}: {failures[0].message}" if failures else "",
        broken=tuple(sorted(broken.items())),
    )


def _part_ours(failures: Sequence[Failure]) -> tuple[dict[int, str], list[Failure]]:
    """Part the turns that break rules on this machine from those that got no answer (E6)."""
    if not language_model().is_offline:
        return {}, list(failures)
    ours = [failure for failure in failures if failure.kind is FailureKind.OWN_ERROR]
    broken = {number: describe_own(failure.message) for failure in ours for number in _numbers(failure)}
    return broken, [failure for failure in failures if failure not in ours]


def as_turn_texts(turns: Sequence[SaidTurn], *, pieces: int) -> list[TurnText]:
    """Return what a model is shown of turns: not what we injected ourselves, nor a system's orders.

    A long turn is several of its number, one after another, as many as `pieces` at most.
    """
    return [
        TurnText(
            number=turn.number,
            role=turn.role,
            text=piece,
            speaker=turn.speaker,
            said_on=turn.occurred_at.date().isoformat(),
        )
        for turn in turns
        if turn.role not in _UNHEARD and (matter := matter_of(turn.text, turn.speaker))
        for piece in cut_pieces(text=matter, longest=LONGEST_TEXT)[:pieces]
    ]


def _asks(turns: Sequence[TurnText], person: str) -> Iterator[Ask]:
    most = settings.POLICY.extraction.turns
    for start in range(0, len(turns), most):
        yield Ask(key=str(start), request=FactsRequest(turns=tuple(turns[start : start + most]), person=person))


def _facts(answer: Answer) -> Iterator[Fact]:
    """Read a reply's facts; what says nothing is none, whatever model wrote it."""
    if not isinstance(answer.reply, Facts):
        raise TypeError(f"Facts were asked for, and {type(answer.reply).__name__} came.")
    for told in answer.reply.facts:
        if not says_nothing(told.text):
            yield Fact(
                text=told.text,
                category=told.category,
                confidence=told.confidence,
                turns=tuple(sorted(set(told.turns))),
                entities=tuple(told.entities),
                causes=tuple(cause for cause in told.causes if cause),
                importance=told.importance,
                valence=told.valence,
            )


def _numbers(failure: Failure) -> list[int]:
    return [turn.number for turn in failure.request.turns] if isinstance(failure.request, FactsRequest) else []
