"""What the demo prints, read from the API alone."""

from collections import Counter
from typing import Any

import httpx
from django.core.management.base import OutputWrapper

from memory.management.wording import counted

_QUERY = "When is Tidewatch deployed?"
_WHAT_NOW = """
What now
  make up                     runs the whole stack; its admin shows this workspace, `demo`, with all of its evidence
  README.md, "First episodes" stores your own, makes beliefs of them and recalls them, call by call"""


def print_report(*, api: httpx.Client, out: OutputWrapper) -> None:
    """Print the models in use, every belief with its evidence, and one recall."""
    _print_models(_get(api, "/api/v1/status"), out)
    for title, statuses in _SECTIONS.items():
        out.write(f"\n{title}")
        for belief in (belief for status in statuses for belief in _beliefs(api, status)):
            _print_belief(_get(api, f"/api/v1/beliefs/{belief['id']}"), out)
    _print_recall(api, out)
    out.write(_WHAT_NOW)


def _get(api: httpx.Client, path: str) -> Any:
    return api.get(path).raise_for_status().json()


def _beliefs(api: httpx.Client, status: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    address: str | None = f"/api/v1/beliefs?status={status}"
    while address:
        page = _get(api, address)
        found += page["results"]
        address = page["next"]
    return sorted(found, key=lambda belief: (-belief["confidence"], belief["id"]))


def _print_models(status: dict[str, Any], out: OutputWrapper) -> None:
    models = status["models"]
    kind = "offline: rules and a small static embedding model" if models["offline"] else "served"
    out.write(f"models     {models['llm']}, {models['embeddings']} ({kind})")
    if models["offline"]:
        out.write("           Offline, clusters never cross languages: German matters form German beliefs.")


def _print_belief(belief: dict[str, Any], out: OutputWrapper) -> None:
    counts = Counter(row["verdict"] for row in belief["evidence"])
    low, high = belief["interval"]
    evidence = ", ".join(
        f"{counts[verdict]} {word} from {counted(belief['origins'].get(verdict, 0), 'origin')}"
        for verdict, word in _WORDS.items()
        if counts[verdict]
    )
    out.write(f"  {belief['id']}  {belief['confidence']:.2f}  [{low:.2f}, {high:.2f}]  {belief['statement']}")
    out.write(f"                   {evidence}{_what_became_of(belief)}")


def _what_became_of(belief: dict[str, Any]) -> str:
    """Say of a belief that is held no longer what was done to it, why, and what took its place."""
    if belief["status"] == "active":
        return ""
    children = ", ".join(child["id"] for child in belief["lineage"]["children"])
    reason = belief["status_reason"].replace("_", " ")
    return f"; {belief['status']}: {reason}" + (f", now {children}" if children else "")


_SECTIONS = {
    "What is believed": ("active",),
    "What is believed no longer": ("revised", "split", "merged", "archived"),
}
_WORDS = {"SUPPORTS": "supporting", "CONTRADICTS": "contradicting", "PARTIAL": "partial"}


def _print_recall(api: httpx.Client, out: OutputWrapper) -> None:
    found = api.post("/api/v1/recall", json={"query": _QUERY, "limit": 8}).raise_for_status().json()
    out.write(f"\nRecall: {_QUERY}")
    for item in found["results"]:
        out.write(f"  {item['score']:.2f}  {item['type']:<7}  {_date_of(api, item)}  {item['text']}  ({item['id']})")


def _date_of(api: httpx.Client, item: dict[str, Any]) -> str:
    """Say on which day an episode happened, or since when something is believed."""
    if item["type"] == "episode":
        return f"on    {item['occurred_at'][:10]}"
    belief = _get(api, f"/api/v1/beliefs/{item['id']}")
    return f"since {belief['created_at'][:10]}"
