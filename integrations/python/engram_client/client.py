"""The clients: one for threads, one for asyncio. Both speak by the same descriptions of calls."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from engram_client.call import JSON, LINES, Call
from engram_client.errors import Answers, ApiError, Closed, EngramError, Unreachable, checked, error_of
from engram_client.operations import Operations, next_cursor

T = TypeVar("T")

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


def _base_of(url: str | None) -> str:
    return (url or os.environ.get("ENGRAM_URL") or "http://127.0.0.1:8000").rstrip("/") + PREFIX


def _headers_of(key: str | None) -> dict[str, str]:
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


class _Tries:
    """How often a call was made, and whether it is to be made again."""

    def __init__(self, call: Call[Any], options: Options) -> None:
        self._options, self._made = options, 0
        self._most = options.retries if call.is_repeatable else 0

    def pause_after(self, failed: EngramError) -> float:
        """Return the seconds until the call is made again; raise what it failed with if it is not to be."""
        asked = failed.retry_after if isinstance(failed, ApiError) else None
        if self._made >= self._most or not _may_help(failed) or (asked or 0.0) > self._options.longest_wait:
            raise failed
        backoff: float = _BACKOFF * 2**self._made
        self._made += 1
        return backoff + random.uniform(0, backoff / 2) if asked is None else asked  # noqa: S311 - guards no secret


def _may_help(failed: EngramError) -> bool:
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
        self._http = httpx.Client(base_url=_base_of(url), headers=_headers_of(key), transport=transport)

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
        tries = _Tries(call, self.options)
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
        self._http = httpx.AsyncClient(base_url=_base_of(url), headers=_headers_of(key), transport=transport)

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
        tries = _Tries(call, self.options)
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
