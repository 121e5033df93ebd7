"""A scripted server that speaks OpenAI's protocol: it answers, refuses, stalls, breaks off, and keeps a log.

In process: `with ModelServer() as server: server.then(refuse(429, retry_after=1)); … server.url, server.log`.
By itself:  `python -m tests.model_server --port 8801 --latency 1 --faults '[{"do": "refuse", "status": 500}]'`.

Unless a script says otherwise, a synthesis repeats its first episode, and a verdict follows the first marker in the
episode's text: #supports, #contradicts, #partial or #irrelevant; without one, the episode SUPPORTS.
"""

import argparse
import base64
import importlib
import json
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from memory.llm.openai_client import close_clients, preload
from tests.model_server_acts import (
    FAULTS,
    Act,
    Asked,
    Call,
    Script,
    Wire,
    answer,
    as_act,
    chat_body,
    close_socket,
    garbage,
    half_reply,
    html,
    read_chat,
    refuse,
    sensible,
    stall,
    truncated_json,
    unknown_ids,
    wrong_schema,
)
from tests.model_server_vectors import Embed, hashed_vectors

__all__ = [
    "Act",
    "Asked",
    "Call",
    "ModelServer",
    "Script",
    "answer",
    "close_socket",
    "garbage",
    "half_reply",
    "html",
    "refuse",
    "sensible",
    "stall",
    "truncated_json",
    "unknown_ids",
    "wrong_schema",
]


class ModelServer:
    """Runs in threads of this process until it is stopped."""

    def __init__(
        self,
        *,
        port: int = 0,
        script: Script = sensible,
        embed: Embed = hashed_vectors,
        dimensions: int = 768,
        honours_dimensions: bool = True,
        latency: float = 0.0,
        embedding_latency: float = 0.0,
        refuses_json_schema: bool = False,
    ) -> None:
        self.script, self.embed, self.dimensions = script, embed, dimensions
        self.honours_dimensions, self.refuses_json_schema = honours_dimensions, refuses_json_schema
        self.latency, self.embedding_latency = latency, embedding_latency
        self.log: list[Call] = []
        self.connections = 0
        self._plan: deque[tuple[str, Act]] = deque()
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", port), _Handler, self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Return the base URL for a client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        preload(base_url=self.url, api_key="")  # as workers do: the first call's time is not spent on loading it
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        close_clients(base_url=self.url)

    def serve(self) -> None:
        """Serve in this thread until interrupted."""
        self._http.serve_forever()

    def then(self, *acts: Act, purpose: str = "") -> None:
        """Plan what happens to the next requests (of a purpose), one act each, before the script goes on."""
        with self._lock:
            self._plan.extend((purpose, act) for act in acts)

    def calls(self, purpose: str) -> list[Call]:
        """Return the logged calls of one purpose."""
        return [call for call in self.log if call.purpose == purpose]

    def receive(self, call: Call) -> None:
        """Write a call into the log as it comes in."""
        with self._lock:
            self.log.append(call)

    def planned(self, purpose: str) -> Act | None:
        """Take the next planned act that fits a purpose."""
        with self._lock:
            for entry in self._plan:
                if entry[0] in ("", purpose):
                    self._plan.remove(entry)
                    return entry[1]
        return None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], owner: ModelServer) -> None:
        self.owner = owner
        self.open_sockets: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.owner.connections += 1
        self.open_sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open_sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that hang up, as those under test do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Close kept-alive connections too, so that clients see a stopped server at once."""
        super().server_close()
        for request in list(self.open_sockets):
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Http

    def do_GET(self) -> None:
        """Show the log."""
        log = [asdict(call) for call in self.server.owner.log]
        self._send(Act(body=json.dumps(log if self.path == "/_log" else {"object": "list", "data": []}).encode()))

    def do_POST(self) -> None:
        """Answer a chat completion or an embeddings request, or change the plan."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if self.path == "/_plan":
            plan(self.server.owner, body)
            self._send(Act(body=b"{}"))
        elif self.path.endswith("/embeddings"):
            self._embed(body)
        else:
            self._chat(body)

    def _chat(self, body: dict[str, Any]) -> None:
        owner, asked = self.server.owner, read_chat(body)
        call = Call(
            purpose=asked.purpose,
            model=asked.model,
            fence=asked.fence,
            texts=[episode["text"] for episode in asked.episodes],
            beliefs=[belief["belief"] for belief in asked.beliefs],
            came_at=time.time(),
        )
        owner.receive(call)
        time.sleep(owner.latency)
        self._perform(call, self._choose(asked), lambda: chat_body(asked, as_act(sensible(asked))))

    def _choose(self, asked: Asked) -> Act:
        owner = self.server.owner
        if owner.refuses_json_schema and asked.body.get("response_format", {}).get("type") == "json_schema":
            return refuse(400, code="invalid_request_error", message="json_schema is not supported")
        act = owner.planned(asked.purpose)
        if act is None:
            act = as_act(owner.script(asked) or sensible(asked))
        if act.content is not None:
            return replace(act, body=chat_body(asked, act))
        return act

    def _embed(self, body: dict[str, Any]) -> None:
        owner = self.server.owner
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        call = Call(purpose="embed", model=body["model"], fence="", texts=texts, came_at=time.time())
        owner.receive(call)
        time.sleep(owner.embedding_latency)
        self._perform(call, owner.planned("embed") or Act(), lambda: embeddings_body(owner, body, texts))

    def _perform(self, call: Call, act: Act, usual: Callable[[], bytes]) -> None:
        """Do what was decided; an act without a body of its own sends the usual one."""
        time.sleep(act.wait)
        call.did = act.name
        body = act.body or usual()
        if act.twist:
            body = json.dumps(act.twist(json.loads(body))).encode()
        if act.write:
            self._write(call, act.write, body)
        elif act.close:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self._send(replace(act, body=body))
        call.left_at = time.time()

    def _write(self, call: Call, write: Callable[[Wire, bytes], None], body: bytes) -> None:
        """Let an act write the answer, and end the connection after it."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)  # what is sent is nearly read
        self.close_connection = True
        wire = Wire(self.connection)
        try:
            write(wire, body)
        except OSError:
            return  # the client has gone
        finally:
            call.sent = wire.sent

    def _send(self, act: Act) -> None:
        try:
            self.send_response(act.status)
            self.send_header("Content-Type", act.content_type)
            self.send_header("Content-Length", str(len(act.body)))
            if act.retry_after is not None:
                self.send_header("Retry-After", act.retry_after)
            for name, value in act.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(act.body[: len(act.body) // 2] if act.cut else act.body)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # the client has gone: what it would have read is of no interest
        self.close_connection = self.close_connection or act.cut

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: the log is in the rows above."""


def embeddings_body(owner: ModelServer, body: dict[str, Any], texts: list[str]) -> bytes:
    """Wrap vectors as an embeddings answer, as base64 where asked for."""
    asked = body.get("dimensions") if owner.honours_dimensions else None
    vectors = owner.embed(texts, min(int(asked), owner.dimensions) if asked else owner.dimensions)
    as_text = body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode() if as_text else vector.tolist(),
        }
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(len(text) for text in texts) // 4
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps({"object": "list", "data": data, "model": body["model"], "usage": usage}).encode()


def plan(server: ModelServer, faults: Iterable[dict[str, Any]]) -> None:
    """Plan faults given as JSON: {"do": "refuse", "status": 429, "retry_after": 1, "times": 2, "purpose": ""}."""
    for fault in faults:
        options = {name: value for name, value in fault.items() if name not in ("do", "times", "purpose")}
        acts = [FAULTS[fault["do"]](**options)] * int(fault.get("times", 1))
        server.then(*acts, purpose=fault.get("purpose", ""))


def load_script(name: str) -> Script:
    """Import a script by `package.module:function`."""
    module, _, function = name.partition(":")
    script: Script = getattr(importlib.import_module(module), function)
    return script


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.model_server")
    parser.add_argument("--port", type=int, default=8801)
    parser.add_argument("--script", default="tests.model_server:sensible", help="package.module:function")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every chat answer")
    parser.add_argument("--embedding-latency", type=float, default=0.0)
    parser.add_argument("--embeddings", choices=["hashed", "offline"], default="hashed")
    parser.add_argument("--faults", type=json.loads, default=[], help="JSON list of acts to begin with")
    options = parser.parse_args()
    server = ModelServer(
        port=options.port,
        script=load_script(options.script),
        latency=options.latency,
        embedding_latency=options.embedding_latency,
        embed=load_script(f"tests.model_server_vectors:{options.embeddings}_vectors"),  # type: ignore[arg-type]
    )
    plan(server, options.faults)
    server.serve()


if __name__ == "__main__":
    main()
