"""The HTTP client of one model call: one deadline, a bounded body, no redirects.

A timeout of httpx holds for a single read, so a server that sends a byte a second would never run into it; and httpx
reads a body whole before its length is known. Only the lookup of a host's name is left to the system's own limits.
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import httpcore2
import httpx2
import openai
from django.conf import settings

_PIECE_BYTES = 16 * 1024  # of a request, between two looks at the clock
_OF_THE_BODY = {"content-encoding", "content-length", "transfer-encoding"}
_call = threading.local()  # `ends_at`, a reading of time.monotonic(): a call is sent and read in one thread


class BodyTooLong(Exception):
    """An answer that goes on after the most that is read of one."""

    def __init__(self, *, most: int) -> None:
        super().__init__(f"the server's answer is longer than {most} bytes (ENGRAM_BUDGET_REPLY_BYTES)")


class BoundedClient(openai.DefaultHttpxClient):
    """openai's usual client with a deadline over the whole call, a cap on the body, and no redirects."""

    def __init__(self) -> None:
        super().__init__(follow_redirects=False)
        for transport in (self._transport, *self._mounts.values()):  # the second are proxies that the environment names
            if isinstance(transport, httpx2.HTTPTransport):
                transport._pool._network_backend = _Backend()  # httpcore's own hook, which httpx does not pass on

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the whole answer; raise BodyTooLong, or what httpx raises for a call that took too long."""
        _call.ends_at = time.monotonic() + request.extensions["timeout"]["read"]
        with closing(super().send(request, **{**options, "stream": True, "follow_redirects": False})) as response:
            self.cookies.clear()  # a server is owed no memory of what it said
            return _whole(response, most=settings.POLICY.budget.reply_bytes)


def _whole(response: httpx2.Response, *, most: int) -> httpx2.Response:
    """Read a body, counted as it is once decompressed, and return the answer with it."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > most:
            raise BodyTooLong(most=most)
    whole = httpx2.Response(
        status_code=response.status_code,
        headers=[(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BODY],
        content=bytes(body),
        request=response.request,
    )
    whole.encoding = "utf-8"  # the codec that a server names may be one that unpacks
    return whole


class _Backend(httpcore2.NetworkBackend):
    """Opens connections within the deadline of the call that needs one."""

    def __init__(self) -> None:
        self._backend = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Try a name's addresses in turn; the standard library would give each of them the whole time."""
        failure: Exception = httpcore2.ConnectError(f"no address of {host}")
        for address in _addresses(host, port):
            try:
                seconds = _seconds_left(httpcore2.ConnectTimeout, most=timeout)
                return _Stream(self._backend.connect_tcp(address, port, seconds, local_address, socket_options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


class _Stream(httpcore2.NetworkStream):
    """A connection each of whose reads and writes has what is left of the call's time."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _seconds_left(httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            self._stream.write(buffer[start : start + _PIECE_BYTES], _seconds_left(httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        seconds = _seconds_left(httpcore2.ConnectTimeout, most=timeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _addresses(host: str, port: int) -> Iterable[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore2.ConnectError(f"{host}: {error}") from error
    return [str(address[0]) for *_, address in found]


def _seconds_left(late: type[Exception], *, most: float | None = None) -> float:
    """Return the seconds that the call under way has left, `most` at most; raise `late` where it has none."""
    seconds: float = _call.ends_at - time.monotonic()
    if seconds <= 0:
        raise late("the call's time is up")
    return seconds if most is None else min(seconds, most)
