"""What the scripted model server can do with a request, and how it reads and wraps one."""

import json
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from memory.llm.prompts import (
    CLASSIFICATION,
    CONTRADICT,
    MERGE,
    META,
    PERSON,
    READING,
    REVISION,
    SPLIT,
    SUMMARY,
    SYNTHESIS,
)

PURPOSES = {
    SYNTHESIS: "synthesize",
    META: "synthesize",
    CLASSIFICATION: "classify",
    REVISION: "revise",
    SPLIT: "split",
    MERGE: "merge",
    SUMMARY: "summarize",
    CONTRADICT: "contradict",
}
_READING_BEGINS = READING.partition("{who}")[0]  # whose memory it is stands in its rules
MARKER = re.compile(r"#(supports|contradicts|partial|irrelevant)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as the server understood it."""

    purpose: str
    model: str
    fence: str
    items: tuple[dict[str, Any], ...]  # but for the one that names the person
    body: dict[str, Any] = field(repr=False)

    @property
    def episodes(self) -> tuple[dict[str, Any], ...]:
        """Return the episodes, without the beliefs that a classification begins with."""
        return tuple(item for item in self.items if "text" in item and "role" not in item)

    @property
    def beliefs(self) -> tuple[dict[str, Any], ...]:
        """Return the beliefs that are asked about."""
        return tuple(item for item in self.items if "belief" in item)

    @property
    def first(self) -> dict[str, Any]:
        """Return the first episode, or the first belief where beliefs are all there is."""
        told = [*self.episodes, *({**item, "text": item["belief"]} for item in self.beliefs)]
        return told[0] if told else {"text": "nothing"}

    @property
    def turns(self) -> tuple[dict[str, Any], ...]:
        """Return the turns of a conversation whose summary is asked for."""
        return tuple(item for item in self.items if "role" in item)

    @property
    def messages(self) -> tuple[dict[str, Any], ...]:
        """Return the messages that are to be read, without those that only stand beside them."""
        return tuple(item for item in self.items if "m" in item)

    @property
    def held(self) -> dict[str, int]:
        """Return the numbers of the beliefs that a reading is shown, by their statements."""
        return {item["belief"]: item["b"] for item in self.items if "b" in item}


@dataclass(slots=True, kw_only=True)
class Call:
    """One line of the log; times are readings of time.time()."""

    purpose: str
    model: str
    fence: str
    texts: list[str]  # of the episodes, or what is to be embedded
    came_at: float
    did: str = ""
    sent: int = 0  # bytes, where an act wrote them itself
    left_at: float | None = None
    beliefs: list[str] = field(default_factory=list)


class Wire:
    """What an act writes to that answers byte by byte: headers are its own business, too."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self.sent = connection, 0

    def send(self, data: bytes) -> None:
        """Write some bytes; raise OSError once nobody reads them."""
        self._connection.sendall(data)
        self.sent += len(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What the server does with a request: a status and a body, after a wait, whole or not.

    `twist` makes another answer of the usual one; `write` is given the wire and the body, and does the rest itself.
    """

    name: str = "answer"
    status: int = 200
    body: bytes = b""
    content: str | None = None
    content_type: str = "application/json"
    retry_after: str | None = None
    wait: float = 0.0
    cut: bool = False
    close: bool = False
    usage: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    twist: Callable[[Any], Any] | None = None
    write: Callable[[Wire, bytes], None] | None = None


Script = Callable[[Asked], Act | dict[str, Any] | None]


def answer(content: str | dict[str, Any], *, usage: bool = True) -> Act:
    """Answer with a text, or with an object as JSON."""
    return Act(content=content if isinstance(content, str) else json.dumps(content), usage=usage)


def refuse(status: int, *, code: str = "refused", message: str = "no", retry_after: float | str | None = None) -> Act:
    """Refuse with a status, as 429, 500 or 401 do."""
    body = {"error": {"message": message, "type": code, "code": code, "param": None}}
    wait = None if retry_after is None else str(retry_after)
    return Act(name=f"refuse {status}", status=status, body=json.dumps(body).encode(), retry_after=wait)


def stall(seconds: float) -> Act:
    """Answer as usual, but late."""
    return Act(name="stall", wait=seconds)


def close_socket() -> Act:
    """Close the connection without a word."""
    return Act(name="close", close=True)


def half_reply() -> Act:
    """Promise a whole answer and break off in its middle."""
    return Act(name="half", cut=True)


def truncated_json() -> Act:
    """Answer 200 with JSON that ends too early."""
    return Act(name="truncated", body=b'{"id": "x", "choices": [{"index": 0, "mess')


def html() -> Act:
    """Answer 200 with a page, as a captive proxy does."""
    return Act(name="html", body=b"<html><body>Please log in.</body></html>", content_type="text/html")


def garbage() -> Act:
    """Answer with words instead of JSON."""
    return Act(name="garbage", content="Sure! Here is what I think about that.")


def wrong_schema() -> Act:
    """Answer with JSON of another shape."""
    return Act(name="wrong schema", content='{"verdict": "SUPPORTS", "sentence": 7}')


def unknown_ids() -> Act:
    """Judge an episode that nobody asked about."""
    return Act(name="unknown ids", content=json.dumps({"verdicts": [{"belief": "A", "texts": ["99 S"]}]}))


FAULTS: dict[str, Callable[..., Act]] = {
    "answer": answer,
    "refuse": refuse,
    "stall": stall,
    "close": close_socket,
    "half": half_reply,
    "truncated": truncated_json,
    "html": html,
    "garbage": garbage,
    "wrong_schema": wrong_schema,
    "unknown_ids": unknown_ids,
}


def sensible(asked: Asked) -> dict[str, Any]:
    """Answer as a model of few words but good sense would."""
    match asked.purpose:
        case "classify":
            return judged(asked, lambda belief, episode: _verdict(episode))
        case "revise":
            return since(state(_first(asked, "C")))
        case "split":
            sides = {"where it holds": _first(asked, "S"), "where not": _first(asked, "C", "P")}
            return {"parts": [state(episode, context=context) for context, episode in sides.items()]}
        case "merge":
            return {"same": True, **state({"text": ""})}
        case "summarize":
            return {"summary": " ".join(turn["text"] for turn in asked.turns)[:200]}
        case "contradict":
            return {"contradicts": [], "reason": ""}
        case "read":
            return {"new": [], "about": []}
    return since(state(asked.first))


def since(statement: dict[str, Any], day: str = "") -> dict[str, Any]:
    """Say since when a statement holds."""
    return {**statement, "since": day}


def state(episode: dict[str, str], *, context: str = "general") -> dict[str, Any]:
    """Make a statement of an episode's words."""
    return {
        "statement": MARKER.sub("", episode["text"]).strip(),
        "subject": episode.get("speaker", "user"),
        "predicate": "states",
        "context": context,
        "timeframe": "current",
    }


def new(m: int, statement: str, **given: Any) -> dict[str, Any]:
    """Make a new statement of a reading."""
    return {"m": m, "statement": statement, "kind": "lasting"} | given


def about(m: int, belief: int | str, verdict: str, **given: Any) -> dict[str, Any]:
    """Say what a message says of a belief, by its number or as an entry of the same reply."""
    return {"m": m, "b": str(belief), "verdict": verdict} | given


def _first(asked: Asked, *letters: str) -> dict[str, str]:
    return next(episode for episode in asked.episodes if episode.get("says") in letters)


def _verdict(episode: dict[str, str]) -> tuple[str, str]:
    marker = MARKER.search(episode["text"])
    return marker[1].upper() if marker else "SUPPORTS", "as marked"


def judged(asked: Asked, judge: Callable[[dict[str, Any], dict[str, Any]], tuple[str, str]]) -> dict[str, Any]:
    """Answer a classification: `judge` is given a belief and an episode, and returns a verdict and why."""
    return {
        "verdicts": [
            {"belief": belief["letter"], "texts": [_said(one, *judge(belief, one)) for one in asked.episodes]}
            for belief in asked.beliefs
        ]
    }


def _said(episode: dict[str, Any], verdict: str, reason: str) -> str:
    return f"{episode['number']} {verdict[0]} {reason}".rstrip()


def as_act(result: Act | dict[str, Any]) -> Act:
    """Take an object for the text of an answer."""
    return result if isinstance(result, Act) else answer(result)


def read_chat(body: dict[str, Any]) -> Asked:
    """Read the purpose, the fence and the fenced JSON lines of a chat request."""
    messages = {message["role"]: message["content"] for message in body["messages"]}
    lines = messages.get("user", "").split("\n")
    fence = lines[0].removeprefix("BEGIN ")
    items = [json.loads(line) for line in lines[1:-1]] if lines[-1] == f"END {fence}" else []
    rules = messages.get("system", "")
    is_reading = rules.startswith(_READING_BEGINS)
    return Asked(
        purpose="read" if is_reading else PURPOSES.get(rules.removesuffix(f"\n{PERSON}"), "other"),
        model=body["model"],
        fence=fence,
        items=tuple(item for item in items if "user" not in item),
        body=body,
    )


def chat_body(asked: Asked, act: Act) -> bytes:
    """Wrap an answer's text as a chat completion, with a plausible count of tokens."""
    sent = sum(len(message["content"]) for message in asked.body["messages"]) // 4
    received = len(act.content or "") // 4
    usage = {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}
    message = {"role": "assistant", "content": act.content}
    whole = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
    }
    return json.dumps(whole | ({"usage": usage} if act.usage else {})).encode()
