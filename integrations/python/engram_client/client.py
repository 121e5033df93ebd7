"""The clients: `Engram` for threads and `AsyncEngram` for asyncio, with every operation of the API as a method.

`Operations` names the methods, made of the descriptions of calls in `calls`: the same for threads, where they answer,
and for asyncio, where one awaits. The clients below it send them.
"""

import asyncio
import inspect
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from types import MethodType, TracebackType
from typing import Any, Generic, ParamSpec, Self, TypedDict, TypeVar, get_args, overload
from urllib.parse import parse_qs, urlsplit

import httpx

from engram_client import calls, types
from engram_client.errors import Answers, ApiError, Closed, EngramError, Unreachable, checked, error_of
from engram_client.request import JSON, LINES, Call

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


class PagedOperation(Generic[P, Row]):
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


class StreamOperation(Generic[P]):
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
    read_memory_md = StreamOperation(calls.read_memory_md)
    read_project_memory_md = StreamOperation(calls.read_project_memory_md)
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

    export_workspace = StreamOperation(calls.export_workspace)
    import_workspace = Operation(calls.import_workspace)

    all_episodes = PagedOperation(calls.list_episodes, types.Episode)
    all_beliefs = PagedOperation(calls.list_beliefs, types.Belief)
    all_consolidations = PagedOperation(calls.list_consolidations, types.Cycle)
    all_belief_changes = PagedOperation(calls.read_belief_history, types.Change)


PREFIX = "/api/v1"
_BACKOFF = 0.25  # seconds before the first repetition, doubled each time
_TRANSIENT = {429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How long a call may take, how often one that may be repeated is, and the longest wait that a server may ask.

    `patience` is for calls that ask a model meanwhile, or look at all that is believed.
    """

    timeout: float = 10.0
    patience: float = 60.0
    retries: int = 2
    longest_wait: float = 30.0


def _base_url(url: str | None) -> str:
    return (url or os.environ.get("ENGRAM_URL") or "http://127.0.0.1:8000").rstrip("/") + PREFIX


def _auth_headers(key: str | None) -> dict[str, str]:
    found = key or os.environ.get("ENGRAM_API_KEY", "")
    if not found:
        raise EngramError("a key is needed: give `key`, or set ENGRAM_API_KEY")
    return {"Authorization": f"Bearer {found}"}


def _request(http: httpx.Client | httpx.AsyncClient, call: Call[Any], options: Options) -> httpx.Request:
    if http.is_closed:
        raise Closed("This client is closed.")
    headers = {} if call.content is None else {"Content-Type": LINES}
    headers |= {"Accept": f"{JSON}, {LINES}"}
    timeout = max(options.timeout, options.patience) if call.is_slow else options.timeout
    return http.build_request(
        call.method, call.path.lstrip("/"), params=dict(call.query), json=call.body, content=call.content,
        headers=headers, timeout=timeout,
    )  # fmt: skip


class _Retries:
    """How often a call was made, and whether it is to be made again."""

    def __init__(self, call: Call[Any], options: Options) -> None:
        self._options, self._made = options, 0
        self._most = options.retries if call.is_repeatable else 0

    def pause_after(self, failed: EngramError) -> float:
        """Return the seconds until the call is made again; raise what it failed with if it is not to be."""
        asked = failed.retry_after if isinstance(failed, ApiError) else None
        if self._made >= self._most or not _is_transient(failed) or (asked or 0.0) > self._options.longest_wait:
            raise failed
        backoff: float = _BACKOFF * 2**self._made
        self._made += 1
        return backoff + random.uniform(0, backoff / 2) if asked is None else asked  # noqa: S311 - guards no secret


def _is_transient(failed: EngramError) -> bool:
    return not isinstance(failed, ApiError) or failed.status in _TRANSIENT


class Engram(Operations):
    """Engram's API. Methods answer, or raise an EngramError. Threads may share one."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        options: Options | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Take the address and the key, else ENGRAM_URL and ENGRAM_API_KEY of the environment."""
        self.options = options or Options()
        self._http = httpx.Client(base_url=_base_url(url), headers=_auth_headers(key), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def with_options(self, *, timeout: float | None = None, retries: int | None = None) -> Self:
        """Return this client with other options, on the same connections."""
        other = object.__new__(type(self))
        other._http = self._http
        other.options = _changed(self.options, timeout, retries)
        return other

    def send(self, call: Call[T]) -> T:
        """Make a call, again where it may be repeated and that may help; return its answer, or raise EngramError."""
        if not call.requests:
            return self._send(call)
        answers = Answers(call)
        for request in call.requests:
            try:
                answers.add(self._send(replace(request, lines="")))  # type: ignore[arg-type]  # of lines
            except ApiError as refused:
                answers.add_refused(refused)
        whole: T = answers.whole()
        return whole

    def _send(self, call: Call[T]) -> T:
        tries = _Retries(call, self.options)
        while True:
            try:
                response = self._http.send(_request(self._http, call, self.options))
            except httpx.TransportError as error:
                pause = tries.pause_after(_unreachable(error))
            else:
                if response.is_success:
                    answer: T = checked(call.lines, response.json())
                    return answer
                pause = tries.pause_after(error_of(response))
            time.sleep(pause)

    def walk(self, call: Call[Any]) -> Iterator[Any]:
        """Yield the rows of all pages."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.send(_page_at(call, cursor))
            yield from page["results"]
            cursor = next_cursor(page)

    def stream(self, call: Call[bytes]) -> Iterator[bytes]:
        """Yield an answer as it comes. One that breaks off raises Unreachable."""
        try:
            response = self._http.send(_request(self._http, call, self.options), stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise error_of(response)
                yield from response.iter_bytes()
            finally:
                response.close()
        except httpx.TransportError as error:
            raise _unreachable(error) from error


class AsyncEngram(Operations):
    """Engram's API for asyncio. Methods are awaited; walks and streams are iterated with `async for`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        options: Options | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Take the address and the key, else ENGRAM_URL and ENGRAM_API_KEY of the environment."""
        self.options = options or Options()
        self._http = httpx.AsyncClient(base_url=_base_url(url), headers=_auth_headers(key), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def with_options(self, *, timeout: float | None = None, retries: int | None = None) -> Self:
        """Return this client with other options, on the same connections."""
        other = object.__new__(type(self))
        other._http = self._http
        other.options = _changed(self.options, timeout, retries)
        return other

    async def send(self, call: Call[T]) -> T:
        """Make a call, again where it may be repeated and that may help; return its answer, or raise EngramError."""
        if not call.requests:
            return await self._send(call)
        answers = Answers(call)
        for request in call.requests:
            try:
                answers.add(await self._send(replace(request, lines="")))  # type: ignore[arg-type]  # of lines
            except ApiError as refused:
                answers.add_refused(refused)
        whole: T = answers.whole()
        return whole

    async def _send(self, call: Call[T]) -> T:
        tries = _Retries(call, self.options)
        while True:
            try:
                response = await self._http.send(_request(self._http, call, self.options))
            except httpx.TransportError as error:
                pause = tries.pause_after(_unreachable(error))
            else:
                if response.is_success:
                    answer: T = checked(call.lines, response.json())
                    return answer
                pause = tries.pause_after(error_of(response))
            await asyncio.sleep(pause)

    async def walk(self, call: Call[Any]) -> AsyncIterator[Any]:
        """Yield the rows of all pages."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self.send(_page_at(call, cursor))
            for row in page["results"]:
                yield row
            cursor = next_cursor(page)

    async def stream(self, call: Call[bytes]) -> AsyncIterator[bytes]:
        """Yield an answer as it comes. One that breaks off raises Unreachable."""
        try:
            response = await self._http.send(_request(self._http, call, self.options), stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response)
                async for block in response.aiter_bytes():
                    yield block
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            raise _unreachable(error) from error


def _changed(options: Options, timeout: float | None, retries: int | None) -> Options:
    given = {"timeout": timeout, "retries": retries}
    return replace(options, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # checked above


def _page_at(call: Call[Any], cursor: str) -> Call[Any]:
    return replace(call, query={**call.query, "cursor": cursor}) if cursor else call


def _unreachable(error: httpx.TransportError) -> Unreachable:
    return Unreachable(f"{type(error).__name__}: {error}".removesuffix(": "))
