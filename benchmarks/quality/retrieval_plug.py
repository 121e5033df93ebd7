"""Does recall over HTTP find the evidence? A plug for a retrieval check.

    ENGRAM_URL=http://127.0.0.1:8000 python CHECK.py --plug benchmarks/quality/retrieval_plug.py …

The check calls `begin(conversation)`, then `retrieve(conversation, query, k)` for each query, then `end(conversation)`;
a conversation is {"id", "items": [{"id", "text", "speaker", "session", …}]}. Each becomes a workspace of its own on the
server of this checkout, whose commands are run to make it. All episodes that a belief rests on stand in its place, in
order and without duplicates. With ENGRAM_FOLLOW_LINKS=1, recall follows the links between memories as well.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[2]
URL = os.environ.get("ENGRAM_URL", "http://127.0.0.1:8000") + "/api/v1"
TYPES = os.environ.get("ENGRAM_TYPES", "episode,belief").split(",")
GRAPH = os.environ.get("ENGRAM_FOLLOW_LINKS") == "1"

_BATCH = 500
_keys: dict[str, str] = {}
_items: dict[str, dict[str, str]] = {}  # by conversation: the item of an episode
_sources: dict[str, list[str]] = {}  # the items of a belief


def begin(conversation: dict[str, Any]) -> None:
    """Store a conversation in a workspace of its own, and let it be consolidated."""
    name = f"check-{conversation['id']}-{uuid4().hex[:6]}"
    _manage("create_workspace", name)
    key = _manage("create_api_key", name, "--permissions", "owner").splitlines()[-1]
    _keys[conversation["id"]] = key
    items, stored = conversation["items"], []
    for start in range(0, len(items), _BATCH):
        lines = [
            {"text": item["text"], "speaker": item["speaker"], "session": item["session"]}
            for item in items[start : start + _BATCH]
        ]
        stored += _call(key, "POST", "/episodes", {"episodes": lines})["episodes"]
    found: dict[str, str] = {}
    for item, answer in zip(items, stored, strict=True):
        if "id" in answer:  # what the server refuses, as too long, is never found
            found.setdefault(answer["id"], item["id"])
    _items[conversation["id"]] = found
    _consolidate(key)


def retrieve(conversation: dict[str, Any], query: str, k: int) -> list[str]:
    """Return the ids of the items that recall answers with, best first."""
    key = _keys[conversation["id"]]
    asked = {"query": query, "limit": min(k, 100), "types": TYPES, "graph": GRAPH}
    results = _call(key, "POST", "/recall", asked)["results"]
    found = [item for result in results for item in _items_of(conversation["id"], key, result)]
    return list(dict.fromkeys(found))[:k]


def _items_of(conversation: str, key: str, result: dict[str, Any]) -> list[str]:
    if result["type"] == "episode":
        return [_items[conversation][result["id"]]]
    if result["id"] not in _sources:
        evidence = _call(key, "GET", f"/beliefs/{result['id']}", None)["evidence"]
        _sources[result["id"]] = [_items[conversation][row["episode"]] for row in evidence]
    return _sources[result["id"]]


def _consolidate(key: str) -> None:
    """Start cycles until nothing is pending: vectors come with the first step of one."""
    while _call(key, "GET", "/status", None)["pending_episodes"]:
        try:
            _call(key, "POST", "/consolidations", {})
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.CONFLICT:  # one is under way
                raise
        time.sleep(1)
    while GRAPH and _call(key, "GET", "/status", None)["graph"]["unlinked"]:
        time.sleep(1)


def _manage(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _call(key: str, method: str, path: str, body: Any) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, data=data, headers=headers, method=method)  # noqa: S310  (our own)
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.load(answer)
