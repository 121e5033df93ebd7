"""Engram's HTTP API as hooks use it: one request, a time for all of it, and silence where anything goes wrong.

Python's standard library alone, 3.9 and newer: hooks run with whatever `python3` the machine has. A request is written
to a socket: importing an HTTP client would take longer than the answer.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
import time
from typing import Any, Callable, Mapping, Optional, Tuple, Union  # noqa: UP035 - for 3.9
from urllib.parse import urlsplit

BEGAN = time.monotonic()
_PREFIX = "/api/v1"
_MOST_BYTES = 4 * 2**20  # of an answer
_ON = ("1", "true", "yes", "on")
_LONGEST_SLUG = 100
_PORTS = {"http": 80, "https": 443}

Event = Mapping[str, Any]
Told = Union[str, Mapping[str, Any]]  # noqa: UP007 - for 3.9
Answer = Tuple[int, Mapping[str, str], bytes]  # status, headers by their names in small letters, body  # noqa: UP006


class Unusable(Exception):
    """The memory is not set up, not there, or answers with what is of no use."""


def run_hook(work: Callable[[Event], Optional[Told]], *, seconds: float) -> None:  # noqa: UP045 - for 3.9
    """Give a hook its event and print what it tells, if it tells it in time; whatever goes wrong, end well.

    The work is done in another thread, which is left behind when its time is over: no slow lookup of a name and no
    server that answers drop by drop holds the client up.
    """
    told: list[Told] = []
    worker = threading.Thread(target=_work, args=(work, told), daemon=True)
    worker.start()
    worker.join(max(seconds - (time.monotonic() - BEGAN), 0.0))
    if told:
        sys.stdout.write((told[0] if isinstance(told[0], str) else json.dumps(told[0])) + "\n")
        sys.stdout.flush()
    os._exit(0)  # a thread that still waits for an answer must not be waited for


def _work(work: Callable[[Event], Optional[Told]], told: list[Told]) -> None:  # noqa: UP045
    try:
        event = json.loads(sys.stdin.buffer.read())
        answer = work(event) if isinstance(event, dict) else None
        if answer:
            told.append(answer)
    except Exception as error:  # noqa: BLE001 - a memory that fails must never be in an agent's way
        note(f"{type(error).__name__}: {error}")


def note(message: str) -> None:
    """Say what went wrong to who looks for it (ENGRAM_HOOK_DEBUG=1), and to nobody else."""
    if os.environ.get("ENGRAM_HOOK_DEBUG"):
        sys.stderr.write(f"engram: {message}\n")


def seconds_of(name: str, *, default: int) -> float:
    """Return a time of the environment, which has it in milliseconds."""
    try:
        return max(int(os.environ.get(name) or default), 1) / 1000
    except ValueError:
        return default / 1000


_VARIABLES = {"project": "ENGRAM_PROJECT", "user": "ENGRAM_USER"}


def own(name: str) -> dict[str, str]:
    """Return what the environment says of a field of requests: the project, or the user."""
    value = os.environ.get(_VARIABLES[name], "").strip()
    return {name: value} if value else {}


def project_of(event: Event) -> dict[str, str]:
    """Return the project of requests: ENGRAM_PROJECT, or with ENGRAM_PROJECT_FROM_FOLDER=1 that of the folder."""
    named = own("project")
    if named or os.environ.get("ENGRAM_PROJECT_FROM_FOLDER", "").strip() not in _ON:
        return named
    name = re.split(r"[\\/]+", folder_of(event).rstrip("\\/"))[-1]
    slug = re.sub(r"[^-\w]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG]
    return {"project": slug} if slug else {}


def folder_of(event: Event) -> str:
    """Return the folder that the client was started in, or else the one that it is in."""
    return str(os.environ.get("CLAUDE_PROJECT_DIR") or event.get("cwd") or "")


def ask(method: str, path: str, body: object = None, *, seconds: float) -> tuple[int, Any]:
    """Send one request; return status and parsed answer, None for one that is no JSON. Raise Unusable or OSError."""
    status, _, content = send(method, path, b"" if body is None else json.dumps(body).encode(), seconds=seconds)
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not 200 <= status < 300:
        note(f"{method} {path}: {status} {detail_of(answer)}")
    return status, answer


def send(method: str, path: str, content: bytes = b"", *, etag: str = "", seconds: float) -> Answer:
    """Send one request with the key of the environment. Raise Unusable or OSError."""
    key = os.environ.get("ENGRAM_API_KEY", "").strip()
    if not key.isascii() or not key.isprintable() or not key:
        raise Unusable("ENGRAM_API_KEY is not set, or is no key")
    base = urlsplit(os.environ.get("ENGRAM_URL", "").strip() or "http://127.0.0.1:8000")
    condition = f"If-None-Match: {etag}\r\n" if etag else ""
    # Of HTTP/1.0: the answer ends where the connection does, and never comes in chunks.
    head = (
        f"{method} {base.path.rstrip('/')}{_PREFIX}{path} HTTP/1.0\r\nHost: {base.netloc}\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        f"{condition}Connection: close\r\n\r\n"
    )
    with _connected(base.scheme, base.hostname, base.port, seconds) as connection:
        connection.sendall(head.encode() + content)
        return _read(connection)


def detail_of(answer: object) -> str:
    """Return what a problem says of itself, first of all of the first thing that was refused."""
    if not isinstance(answer, dict):
        return ""
    refused = [one["error"] for one in answer.get("turns") or () if isinstance(one, dict) and "error" in one]
    return str((refused[0] if refused else answer).get("detail") or "")


def _connected(scheme: str, host: Optional[str], port: Optional[int], seconds: float) -> socket.socket:  # noqa: UP045
    if scheme not in _PORTS or not host:
        raise Unusable("ENGRAM_URL is no address of http or https")
    plain = socket.create_connection((host, port or _PORTS[scheme]), timeout=seconds)
    if scheme == "http":
        return plain
    import ssl

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


def _read(connection: socket.socket) -> Answer:
    parts, size = [], 0
    while (part := connection.recv(65_536)) and size < _MOST_BYTES:
        parts.append(part)
        size += len(part)
    head, _, content = b"".join(parts).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if not head.startswith(b"HTTP/") or len(words) < 2 or not words[1].isdigit():
        raise Unusable("the answer is not of HTTP")
    headers = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])
    return int(words[1]), {name.lower(): value.strip() for name, _, value in headers}, content
