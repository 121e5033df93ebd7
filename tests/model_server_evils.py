"""What a model server can do wrong: on the wire, in its status, in its JSON. Each name is a mode of the evil server."""

import json
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.model_server_acts import (
    Act,
    Wire,
    answer,
    close_socket,
    garbage,
    half_reply,
    html,
    refuse,
    stall,
    truncated_json,
    unknown_ids,
    wrong_schema,
)

MEGABYTE = 2**20
ENDLESS = 2_000 * MEGABYTE  # more than anybody may read; the client hangs up long before
DRIP_SECONDS = 0.05
LATE_SECONDS = 8.0  # beyond every deadline of the tests
LOOPBACK = "http://127.0.0.1:9/elsewhere"
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


# --- On the wire


def drip(wire: Wire, data: bytes) -> None:
    """Send a byte at a time, as long as somebody reads."""
    for byte in data:
        wire.send(bytes([byte]))
        time.sleep(DRIP_SECONDS)


def drip_headers(wire: Wire, body: bytes) -> None:
    """Never come to the end of the headers."""
    drip(wire, _OK + b"X-Filler: " + b"x" * 10_000)


def drip_body(wire: Wire, body: bytes) -> None:
    """Send the headers at once, and the body by and by."""
    wire.send(_OK + b"Content-Length: %d\r\n\r\n" % len(body))
    drip(wire, body)


def drip_chunks(wire: Wire, body: bytes) -> None:
    """Send a chunk of one space at a time, which JSON allows without end."""
    wire.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        wire.send(b"1\r\n \r\n")
        time.sleep(DRIP_SECONDS)


def headers_only(wire: Wire, body: bytes) -> None:
    """Promise a body, and send none."""
    wire.send(_OK + b"Content-Length: %d\r\n\r\n" % len(body))
    time.sleep(LATE_SECONDS)


def hang_up(wire: Wire, body: bytes) -> None:
    """Say nothing at all."""


def flood(wire: Wire, body: bytes) -> None:
    """Send more than anybody may read, as one body."""
    wire.send(_OK + b"Content-Length: %d\r\n\r\n" % ENDLESS)
    for _ in range(ENDLESS // MEGABYTE):
        wire.send(b" " * MEGABYTE)


def flood_chunks(wire: Wire, body: bytes) -> None:
    """Send chunks without end."""
    wire.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(ENDLESS // MEGABYTE):
        wire.send(b"%x\r\n" % MEGABYTE + b" " * MEGABYTE + b"\r\n")


def flood_tiny_chunks(wire: Wire, body: bytes) -> None:
    """Send chunks of a byte without end: each costs whoever reads them more than it weighs."""
    wire.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        wire.send(b"1\r\n \r\n" * 10_000)


def flood_headers(wire: Wire, body: bytes) -> None:
    """Send headers without end."""
    wire.send(_OK)
    while True:
        wire.send(b"X-Filler: " + b"x" * 1_000 + b"\r\n")


def flood_continues(wire: Wire, body: bytes) -> None:
    """Ask for patience without end."""
    while True:
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def bomb(encoding: str, *, layers: int = 1) -> Callable[[Wire, bytes], None]:
    """Send a few kilobytes for every megabyte that they unpack to, without end."""

    def write(wire: Wire, body: bytes) -> None:
        wire.send(_OK + b"Content-Encoding: " + ", ".join([encoding] * layers).encode())
        wire.send(b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        pieces = _endless_spaces()
        for _ in range(layers):
            pieces = _packed(pieces, gzip=encoding == "gzip")
        for piece in pieces:
            wire.send(b"%x\r\n" % len(piece) + piece + b"\r\n")

    return write


def _endless_spaces() -> Iterator[bytes]:
    for _ in range(ENDLESS // MEGABYTE):
        yield b" " * MEGABYTE


def _packed(pieces: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    packer = zlib.compressobj(1, wbits=31 if gzip else 15)
    for piece in pieces:
        if packed := packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH):
            yield packed


def raw(data: bytes) -> Act:
    """Send these bytes, whatever they are, and hang up."""
    return Act(name="raw", write=lambda wire, body: wire.send(data))


def written(write: Callable[[Wire, bytes], None]) -> Act:
    """Have a function of the above answer."""
    return Act(name=getattr(write, "__name__", "write"), write=write)


def _vectors_beyond_the_cap() -> bytes:
    """Spell more vectors, each number plausible, than fit into what is read of an answer."""
    row = b'{"index": 0, "embedding": [' + b",".join([b"0.12345678"] * 768) + b"]},"
    return b'{"data": [' + row * (40 * MEGABYTE // len(row)) + b"{}]}"


def flood_vectors(wire: Wire, body: bytes) -> None:
    """Send what would be a fine answer, were it not for its length."""
    vectors = _vectors_beyond_the_cap()
    wire.send(_OK + b"Content-Length: %d\r\n\r\n" % len(vectors))
    wire.send(vectors)


ON_THE_WIRE: dict[str, Act] = {
    "never answers": stall(LATE_SECONDS),
    "headers only": written(headers_only),
    "headers drip": written(drip_headers),
    "body drips": written(drip_body),
    "chunks drip": written(drip_chunks),
    "hangs up": written(hang_up),
    "reset": close_socket(),
    "half a body": half_reply(),
    "flood": written(flood),
    "flood of chunks": written(flood_chunks),
    "flood of tiny chunks": written(flood_tiny_chunks),
    "flood of headers": written(flood_headers),
    "flood of 100 Continue": written(flood_continues),
    "flood of vectors": written(flood_vectors),
    "gzip bomb": written(bomb("gzip")),
    "deflate bomb": written(bomb("deflate")),
    "gzip bomb in a gzip bomb": written(bomb("gzip", layers=2)),
    "broken gzip": Act(body=b"\x1f\x8b\x08 no more", headers=(("Content-Encoding", "gzip"),)),
    "unknown encoding": Act(body=b"\x00\x01\x02", headers=(("Content-Encoding", "br, exotic"),)),
    "codec that unpacks": Act(body=zlib.compress(b" " * 64 * MEGABYTE), content_type="text/plain; charset=zlib"),
    "no HTTP": raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "bad chunk": raw(_OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
    "negative length": raw(_OK + b"Content-Length: -1\r\n\r\n{}"),
    "two lengths": raw(_OK + b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}"),
}


# --- In the status


def redirect(status: int, target: str | None = LOOPBACK) -> Act:
    """Send the caller elsewhere, or nowhere."""
    headers = () if target is None else (("Location", target),)
    return Act(name="redirect", status=status, body=b"{}", headers=headers)


def _odd_error(error: object) -> Act:
    return Act(status=422, body=json.dumps({"error": error}).encode())


IN_THE_STATUS: dict[str, Act] = {
    "302 to loopback": redirect(302),
    "307 to loopback": redirect(307),
    "301 to nowhere": redirect(301, None),
    "308 to no address": redirect(308, "http://[:::]:x/\x80"),
    "429": refuse(429),
    "429, wait 0.01 s": refuse(429, retry_after=0.01),
    "429, wait 30 s": refuse(429, retry_after=30),
    "429, wait 1e308 s": refuse(429, retry_after="1e308"),
    "429, wait to the year 9999": refuse(429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
    "429, wait to no date": refuse(429, retry_after="Mon, 01 Jan 2024 00:00:00 +99999999999999999999"),
    "429, wait nan": refuse(429, retry_after="nan"),
    "500": refuse(500),
    "503": refuse(503),
    "503, wait a century": refuse(503, retry_after=3_155_760_000),
    "503, wait minus one": refuse(503, retry_after=-1),
    "401": refuse(401),
    "402": refuse(402),
    "404 as a page": Act(status=404, body=b"<html>no</html>", content_type="text/html"),
    "422 with a list for its type": _odd_error({"type": ["x"], "code": {"y": 1}, "message": 7}),
    "422 with words for an error": _odd_error("no"),
    "599": refuse(599),
    "204": Act(status=204, body=b" "),
}


# --- In the JSON of either kind


IN_ANY_JSON: dict[str, Act] = {
    "many empty choices": Act(body=b'{"choices": [' + b"{}," * 300_000 + b"{}]}"),
    "nothing": Act(body=b" "),
    "truncated": truncated_json(),
    "page": html(),
    "noise": Act(body=bytes(range(256)) * 8),
    "bad UTF-8": Act(body=b'{"choices": "\xff\xfe"}'),
    "null": Act(body=b"null"),
    "number": Act(body=b"7"),
    "list": Act(body=b"[1, 2]"),
    "error with 200": Act(body=b'{"error": {"message": "overloaded"}}'),
    "deep": Act(body=b"[" * 200_000),
    "long number": Act(body=b'{"data": ' + b"9" * 100_000 + b"}"),
    "many empty lists": Act(body=b'{"data": [' + b"[]," * 300_000 + b"[]]}"),
}


def usage(**counts: object) -> Callable[[Any], Any]:
    """Return what puts other counts into an answer."""
    return lambda told: {**told, "usage": counts}


ABSURD_COUNTS: dict[str, object] = {
    "negative": -5,
    "1e30": 1e30,
    "nan": float("nan"),
    "words": "many",
    "true": True,
    "a fraction": 1.5,
    "beyond the column": 2**31,
}
ABSURD_USAGE: dict[str, Act] = {
    f"usage {name}": Act(twist=usage(prompt_tokens=count, completion_tokens=count, total_tokens=count))
    for name, count in ABSURD_COUNTS.items()
}


# --- In a chat completion


def _choices(choices: object) -> Act:
    return Act(twist=lambda told: {**told, "choices": choices})


def _content(content: object) -> Act:
    return _choices([{"index": 0, "message": {"role": "assistant", "content": content}}])


IN_CHAT: dict[str, Act] = {
    "no choices": Act(twist=lambda told: {"id": told["id"]}),
    "choices null": _choices(None),
    "choices empty": _choices([]),
    "choices in words": _choices("many"),
    "choices of nothing": _choices([{}, None]),
    "content null": _content(None),
    "content a number": _content(7),
    "content a list": _content([{"type": "text", "text": "{}"}]),
    "content an object": _content({"verdicts": []}),
    "content unspeakable": _content("\ud800 \x00 {"),
    "content deep": _content("[" * 100_000),
    "content of line breaks in a fence": _content("```\n" + "\n" * 900_000 + "x"),
    "content of spaces in a fence": _content("```" + " " * 900_000 + "x"),
    "content of a million wrong items": _content('{"verdicts": [' + "1," * 400_000 + "1]}"),
    "content beyond any reply": _content('{"verdicts": [' + " " * 2_000_000 + "]}"),
    "content in words": garbage(),
    "content blank": answer(""),
    "content of another shape": wrong_schema(),
    "content of unknown ids": unknown_ids(),
}


# --- In an answer with vectors


def _rows(change: Callable[[int, dict[str, Any]], dict[str, Any] | None]) -> Act:
    """Change every row of the usual answer, or leave it out."""

    def twist(told: Any) -> Any:
        rows = [change(place, {**row, "embedding": [0.5] * 768}) for place, row in enumerate(told["data"])]
        return {**told, "data": [row for row in rows if row is not None]}

    return Act(twist=twist)


def _vector(vector: object) -> Act:
    return _rows(lambda place, row: {**row, "embedding": vector})


IN_VECTORS: dict[str, Act] = {
    "data null": Act(twist=lambda told: {**told, "data": None}),
    "data in words": Act(twist=lambda told: {**told, "data": "none today"}),
    "data empty": Act(twist=lambda told: {**told, "data": []}),
    "rows null": Act(twist=lambda told: {**told, "data": [None for _ in told["data"]]}),
    "one too few": Act(twist=lambda told: {**told, "data": told["data"][1:]}),
    "one too many": Act(twist=lambda told: {**told, "data": [*told["data"], told["data"][0]]}),
    "zeros": _vector([0.0] * 768),
    "zeros in base64": _vector("A" * 4096),
    "nan": _vector([float("nan")] * 768),
    "infinite": _vector([float("inf")] * 768),
    "too large": _vector([1e39] * 768),
    "too small": _vector([1e-60] * 768),
    "numbers of 400 digits": _vector([10**400] * 768),
    "too long": _vector([0.5] * 1024),
    "of two numbers": _vector([0.6, 0.8]),
    "of one number": _vector([1.0]),
    "of none": _vector([]),
    "ragged": _rows(lambda place, row: {**row, "embedding": [0.5] * (768 - place % 2)}),
    "null": _vector(None),
    "words": _vector("not base64!"),
    "odd base64": _vector("AAAAAAA="),
    "numbers in words": _vector(["0.5"] * 768),
    "nested": _vector([[0.5] * 768]),
    "an object": _vector({"0": 0.5}),
    "index twice": _rows(lambda place, row: {**row, "index": 0}),
    "index missing": _rows(lambda place, row: {"embedding": row["embedding"]}),
    "index from one": _rows(lambda place, row: {**row, "index": place + 1}),
    "index negative": _rows(lambda place, row: {**row, "index": -1 - place}),
    "index in words": _rows(lambda place, row: {**row, "index": str(place)}),
    "index true": _rows(lambda place, row: {**row, "index": place == 1}),
}
OF_ANOTHER_LENGTH = ("too long", "of two numbers", "of one number", "of none")
NEEDS_TWO = ("ragged", "index twice")  # texts in one call, to be an evil at all
