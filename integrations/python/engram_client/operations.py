"""Methods made of descriptions of calls: the same for threads, where they answer, and for asyncio, where one awaits."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar, get_args, overload
from urllib.parse import parse_qs, urlsplit

from engram_client import calls, types
from engram_client.call import Call

if TYPE_CHECKING:
    from engram_client.client import AsyncEngram, Engram

P = ParamSpec("P")
T = TypeVar("T")
Row = TypeVar("Row")


class Page(TypedDict, Generic[Row]):
    """A page of a list."""

    results: list[Row]
    next: str | None


class Operation(Generic[P, T]):
    """A method that makes one call."""

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__
        self._method = _method(lambda client, *a, **k: client.send(describe(*a, **k)), describe, self.__doc__)

    @overload
    def __get__(self, client: "Engram", owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: "AsyncEngram", owner: object) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, client: None, owner: object) -> Callable[..., T]: ...
    def __get__(self, client: Any, owner: object) -> Any:
        """Return the method, bound to a client if there is one."""
        return self._method if client is None else MethodType(self._method, client)

    def __set_name__(self, owner: type, name: str) -> None:
        self._method.__name__, self._method.__qualname__ = name, f"{owner.__name__}.{name}"


class Pages(Generic[P, Row]):
    """A method that yields every row of a list, page by page as they are asked for."""

    def __init__(self, describe: Callable[P, Call[Any]], row: type[Row]) -> None:
        self.describe = describe
        self.__doc__ = f"{describe.__doc__} All pages, row by row."
        answers = f"Iterator[types.{row.__name__}]"
        self._method = _method(lambda client, *a, **k: client.walk(describe(*a, **k)), describe, self.__doc__, answers)

    @overload
    def __get__(self, client: "Engram", owner: object) -> Callable[P, Iterator[Row]]: ...
    @overload
    def __get__(self, client: "AsyncEngram", owner: object) -> Callable[P, AsyncIterator[Row]]: ...
    @overload
    def __get__(self, client: None, owner: object) -> Callable[..., Iterator[Row]]: ...
    def __get__(self, client: Any, owner: object) -> Any:
        """Return the method, bound to a client if there is one."""
        return self._method if client is None else MethodType(self._method, client)

    def __set_name__(self, owner: type, name: str) -> None:
        self._method.__name__, self._method.__qualname__ = name, f"{owner.__name__}.{name}"


class Blocks(Generic[P]):
    """A method that yields an answer as it comes, in blocks of bytes."""

    def __init__(self, describe: Callable[P, Call[bytes]]) -> None:
        self.describe = describe
        self.__doc__ = f"{describe.__doc__} Block by block, as they come."
        self._method = _method(
            lambda client, *a, **k: client.stream(describe(*a, **k)), describe, self.__doc__, "Iterator[bytes]"
        )

    @overload
    def __get__(self, client: "Engram", owner: object) -> Callable[P, Iterator[bytes]]: ...
    @overload
    def __get__(self, client: "AsyncEngram", owner: object) -> Callable[P, AsyncIterator[bytes]]: ...
    @overload
    def __get__(self, client: None, owner: object) -> Callable[..., Iterator[bytes]]: ...
    def __get__(self, client: Any, owner: object) -> Any:
        """Return the method, bound to a client if there is one."""
        return self._method if client is None else MethodType(self._method, client)

    def __set_name__(self, owner: type, name: str) -> None:
        self._method.__name__, self._method.__qualname__ = name, f"{owner.__name__}.{name}"


def _method(
    method: Callable[..., Any], describe: Callable[..., Call[Any]], doc: str | None, answers: str = ""
) -> Callable[..., Any]:
    """Give a method the parameters of a description, so that help() and inspect.signature() show them."""
    told = inspect.signature(describe)
    client = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    answer = answers or _answer_of(told.return_annotation)
    method.__doc__ = doc
    method.__signature__ = told.replace(  # type: ignore[attr-defined]  # read by inspect
        parameters=[client, *told.parameters.values()], return_annotation=answer
    )
    return method


def _answer_of(annotation: Any) -> Any:
    """Return the T of a Call[T]."""
    if isinstance(annotation, str):
        return annotation.removeprefix("Call[").removesuffix("]")
    return get_args(annotation)[0]


def next_cursor(page: Page[Any]) -> str | None:
    """Return where the next page begins; the address beside it is not followed, for it could lead elsewhere."""
    following = parse_qs(urlsplit(page["next"] or "").query)
    return following.get("cursor", [None])[0]


class Operations:
    """Every operation of the API under its id, and walks over what comes in pages."""

    store_episode = Operation(calls.store_episode)
    store_episodes = Operation(calls.store_episodes)
    accept_turns = Operation(calls.accept_turns)
    remember = Operation(calls.remember)

    recall = Operation(calls.recall)
    recollect = Operation(calls.recollect)
    context = Operation(calls.context)
    read_memory = Operation(calls.read_memory)
    read_status = Operation(calls.read_status)
    list_episodes = Operation(calls.list_episodes)
    list_beliefs = Operation(calls.list_beliefs)
    read_belief = Operation(calls.read_belief)
    read_belief_history = Operation(calls.read_belief_history)
    read_lineage = Operation(calls.read_lineage)
    read_claims = Operation(calls.read_claims)

    give_feedback = Operation(calls.give_feedback)
    resolve_commitment = Operation(calls.resolve_commitment)
    forget_memory = Operation(calls.forget_memory)
    erase_memories = Operation(calls.erase_memories)
    found_belief = Operation(calls.found_belief)
    curate_belief = Operation(calls.curate_belief)
    correct_belief = Operation(calls.correct_belief)
    merge_beliefs = Operation(calls.merge_beliefs)
    split_belief = Operation(calls.split_belief)

    reflect = Operation(calls.reflect)
    prune_beliefs = Operation(calls.prune_beliefs)
    propose_merges = Operation(calls.propose_merges)
    make_meta_beliefs = Operation(calls.make_meta_beliefs)
    backfill_subjects = Operation(calls.backfill_subjects)
    list_contradictions = Operation(calls.list_contradictions)
    find_contradictions = Operation(calls.find_contradictions)
    settle_contradiction = Operation(calls.settle_contradiction)

    start_consolidation = Operation(calls.start_consolidation)
    list_consolidations = Operation(calls.list_consolidations)
    read_consolidation = Operation(calls.read_consolidation)
    cancel_consolidation = Operation(calls.cancel_consolidation)
    undo_consolidation = Operation(calls.undo_consolidation)
    release_consolidation = Operation(calls.release_consolidation)

    export_workspace = Blocks(calls.export_workspace)
    import_workspace = Operation(calls.import_workspace)

    all_episodes = Pages(calls.list_episodes, types.Episode)
    all_beliefs = Pages(calls.list_beliefs, types.Belief)
    all_consolidations = Pages(calls.list_consolidations, types.Cycle)
    all_belief_changes = Pages(calls.read_belief_history, types.Change)
