"""What the demo prints, read from the API alone."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from textwrap import shorten
from typing import Any

import httpx
from django.core.management.base import OutputWrapper

from memory.management.wording import counted
from workers.demo_life import Life

_QUERY = "When does the choir meet?"
_WIDTH = 110  # of what somebody said
_WORDS = {"SUPPORTS": "for", "CONTRADICTS": "against", "PARTIAL": "partly"}
_ENDED = ("challenged", "invalidated", "revised", "split", "merged", "archived")
_WHAT_NOW = """
What now
  make up                     runs the whole stack; its admin shows this workspace, `demo`, with all of its evidence
  README.md, "First episodes" stores your own, makes beliefs of them and recalls them, call by call"""

Card = dict[str, Any]


def print_report(*, api: httpx.Client, life: Life, out: OutputWrapper) -> None:
    """Print what was believed before and after a change in a life, one recall then and now, and the rest in short."""
    cards = {status: _cards(api, status) for status in ("active", *_ENDED)}
    ended = [card for status in _ENDED for card in cards[status]]
    old, new = _find_change([*cards["active"], *ended], life.changed_at)
    _print_change(api, life, old, new, out)
    _print_recall(api, life, out)
    told = {card["id"] for card in (*old, *new)}
    _print_ended([card for card in ended if card["id"] not in told], out)
    _print_held([card for card in cards["active"] if card["id"] not in told], out)
    out.write(_WHAT_NOW)


def print_beginning(*, api: httpx.Client, life: Life, out: OutputWrapper) -> None:
    """Name the models in use, and say who tells what."""
    models = _get(api, "/api/v1/status")["models"]
    kind = "offline: rules and a small static embedding model" if models["offline"] else "served"
    out.write(f"models     {models['llm']}, {models['embeddings']} ({kind})")
    first, last = (life.messages[place]["occurred_at"][:10] for place in (0, -1))
    out.write(f"\n{life.user} and an assistant write each other {len(life.messages)} messages, {first} to {last}.")
    out.flush()  # what follows takes a while


def _get(api: httpx.Client, path: str) -> Any:
    return api.get(path).raise_for_status().json()


def _cards(api: httpx.Client, status: str) -> list[Card]:
    """Read all beliefs of a status with their evidence, newest first and in the same order on every run."""
    found: list[Card] = []
    address: str | None = f"/api/v1/beliefs?status={status}"
    while address:
        page = _get(api, address)
        found += [_get(api, f"/api/v1/beliefs/{belief['id']}") for belief in page["results"]]
        address = page["next"]
    return sorted(sorted(found, key=lambda card: card["statement"]), key=lambda card: card["created_at"], reverse=True)


def _find_change(cards: Sequence[Card], at: datetime) -> tuple[list[Card], list[Card]]:
    """Return the beliefs that the message of a time speaks against, and those that its same sentences bear out."""
    old = [card for card in cards if _sentences(card, "CONTRADICTS", at)]
    sentences = {sentence for card in old for sentence in _sentences(card, "CONTRADICTS", at)}
    return old, [card for card in cards if sentences & _sentences(card, "SUPPORTS", at)]


def _sentences(card: Card, verdict: str, at: datetime) -> set[str]:
    return {
        _sentence(row)
        for row in card["evidence"]
        if row["verdict"] == verdict and datetime.fromisoformat(row["occurred_at"]) == at
    }


def _sentence(row: dict[str, Any]) -> str:
    """Return the sentence of an episode that counts; where none does alone, all of it."""
    sentence: str = row["claim"] or row["text"]
    return sentence


def _print_change(api: httpx.Client, life: Life, old: Sequence[Card], new: Sequence[Card], out: OutputWrapper) -> None:
    morning = life.changed_at.astimezone(UTC).replace(hour=0, minute=0)
    night, day = morning + timedelta(days=1), timedelta(days=1)
    _print_cards(f"Believed on {morning - day:%Y-%m-%d}", _as_of(api, (*new, *old), morning), out)
    out.write(f"\n{life.user} on {morning:%Y-%m-%d}\n  “{shorten(life.change['text'], _WIDTH, placeholder=' …')}”")
    _print_cards(f"Believed on {morning:%Y-%m-%d}, once that was consolidated", _as_of(api, (*new, *old), night), out)
    _print_cards(f"Believed on {life.messages[-1]['occurred_at'][:10]}, when all was told", new, out)


def _as_of(api: httpx.Client, cards: Iterable[Card], at: datetime) -> list[Card]:
    """Read beliefs as they stood at a time, without those that were not there yet."""
    answers = [api.get(f"/api/v1/beliefs/{card['id']}", params={"as_of": at.isoformat()}) for card in cards]
    return [answer.raise_for_status().json() for answer in answers if answer.status_code != httpx.codes.NOT_FOUND]


def _print_cards(title: str, cards: Sequence[Card], out: OutputWrapper) -> None:
    """Print beliefs with each episode's word on them."""
    out.write(f"\n{title}")
    for card in cards:
        low, high = card["interval"]
        out.write(f"  {card['confidence']:.2f}  [{low:.2f}, {high:.2f}]  {_statement(card)}")
        for row in card["evidence"]:
            out.write(f"        {_evidence(row)}")
    if not cards:
        out.write("  nothing of it")


def _statement(card: Card) -> str:
    """Return what a belief states, and of one that is held no longer what was done to it and why."""
    if card["status"] == "active":
        return str(card["statement"])
    return f"{card['statement']}  ({card['status']}: {card['status_reason'].replace('_', ' ')})"


def _evidence(row: dict[str, Any]) -> str:
    said = shorten(_sentence(row), _WIDTH, placeholder=" …")
    reason = f"  ({row['reason']})" if row["reason"] else ""
    return f"{row['occurred_at'][:10]}  {_WORDS[row['verdict']]:<7}  {said}{reason}"


def _print_recall(api: httpx.Client, life: Life, out: OutputWrapper) -> None:
    """Ask the same of the day before the change and of now, and print the best memory of each kind."""
    before = life.changed_at - timedelta(days=1)
    out.write(f"\nRecall: {_QUERY}")
    for when, body in ((f"as of {before:%Y-%m-%d}", {"as_of": before.isoformat()}), ("now", {})):
        asked = {"query": _QUERY, "limit": 5, "user": life.user, **body}
        found = api.post("/api/v1/recall", json=asked).raise_for_status().json()
        best: dict[str, str] = {}
        for item in found["results"]:
            best.setdefault(item["type"], item["text"])
        out.write(f"  {when}")
        for kind, text in best.items():
            out.write(f"    {kind:<7}  {shorten(text, _WIDTH, placeholder=' …')}")


def _print_ended(cards: Sequence[Card], out: OutputWrapper) -> None:
    """Print beliefs that are held no longer, each with what speaks against it."""
    out.write("\nAlso believed no longer")
    for card in cards:
        out.write(f"  {card['confidence']:.2f}  {_statement(card)}")
        for row in card["evidence"]:
            if row["verdict"] == "CONTRADICTS":
                out.write(f"        {_evidence(row)}")
    if not cards:
        out.write("  nothing")


def _print_held(cards: Sequence[Card], out: OutputWrapper) -> None:
    """Print what more than one conversation bears out, and count the rest."""
    borne_out = [card for card in cards if card["origins"].get("SUPPORTS", 0) > 1]
    out.write("\nAlso believed, from more than one conversation")
    for card in borne_out:
        out.write(f"  {card['confidence']:.2f}  {card['origins']['SUPPORTS']} conversations  {card['statement']}")
    rest = len(cards) - len(borne_out)
    out.write(f"  and {counted(rest, 'belief')} from a single conversation")
