"""What some models want in front of a text, told apart by whether it asks or answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Words put in front of a query and of what it is to find; most models want none."""

    query: str = ""
    document: str = ""


_SEARCHING = Prefixes(query="Represent this sentence for searching relevant passages: ")

# As the models' own cards give them; a model that is not named here is given its texts as they are.
_FAMILIES = (
    (
        re.compile(r"nomic[-_](embed|bert)", re.IGNORECASE),
        Prefixes(query="search_query: ", document="search_document: "),
    ),
    (re.compile(r"(^|[-/])e5-", re.IGNORECASE), Prefixes(query="query: ", document="passage: ")),
    (re.compile(r"mxbai-embed|snowflake-arctic-embed|bge-\w+-en$", re.IGNORECASE), _SEARCHING),
)


def prefixes_of(*, names: tuple[str, ...], prompts: Mapping[str, Any] | None = None) -> Prefixes:
    """Return what a model's own files ask for (sentence-transformers' prompts), else what its family does."""
    given = {name: value for name, value in (prompts or {}).items() if isinstance(value, str)}
    if given.get("query") or given.get("document") or given.get("passage"):
        return Prefixes(query=given.get("query", ""), document=given.get("document", given.get("passage", "")))
    return next((prefixes for family, prefixes in _FAMILIES if any(map(family.search, names))), Prefixes())
