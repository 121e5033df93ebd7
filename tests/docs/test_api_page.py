"""docs/api.md and docs/mcp.md name every call, field, tool and permission that there is, and no other."""

import re
from collections.abc import Iterator, Mapping

import pytest
from django.conf import settings
from rest_framework.fields import Field

from memory.api.curation import ACTS
from memory.api.ingest import RememberRequest
from memory.api.recall import ContextRequest, RecallRequest, RecollectionRequest
from memory.api.reflection import PAIR_ACTIONS
from memory.api.urls import urlpatterns
from memory.domain.taxonomy import RecallMode, categories_of
from memory.ingest.schemas import EpisodeLine
from memory.mcp.catalogue import TOOLS
from tests.docs.pages import ROOT

API = (ROOT / "docs" / "api.md").read_text()
MCP = (ROOT / "docs" / "mcp.md").read_text()
OF_PARAMETERS = {"?erase=true": "owner"}  # what a parameter asks for beyond its call


def _rows(page: str) -> Iterator[list[str]]:
    for line in page.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def _calls_on_the_page() -> dict[str, str]:
    """Return permissions by call, such as `POST /beliefs/{id}/pin`."""
    found: dict[str, str] = {}
    for cells in _rows(API):
        for method, path in re.findall(r"`(GET|POST|DELETE) ([^`]+)`", cells[0]):
            found[f"{method} {path}"] = cells[-1]
            base = path.rpartition("/")[0]
            found |= {f"{method} {base}{other}": cells[-1] for other in re.findall(r"`(/[a-z]+)`", cells[0])}
    return found


def _calls() -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern in urlpatterns:
        route = re.sub(r"<\w+:(?:\w+_)?(id|slug)>", r"{\1}", str(pattern.pattern))
        permissions: Mapping[str, str] = pattern.callback.view_class.permission_for  # type: ignore[attr-defined]
        found |= {
            f"{method} /{path}": str(needed) for path in _spelled_out(route) for method, needed in permissions.items()
        }
    return found


def _spelled_out(route: str) -> Iterator[str]:
    """Yield a route once for each word that may stand in the place of one of its parts."""
    for part, words in {"<act:act>": ACTS, "<settling:settling>": PAIR_ACTIONS}.items():
        if part in route:
            yield from (route.replace(part, str(word)) for word in words)
            return
    yield route


def test_every_call_is_on_the_page_with_its_permission() -> None:
    named = _calls_on_the_page()
    parameters = {call: call[call.index("?") :] for call in named if "?" in call}

    assert {call: needed for call, needed in named.items() if call not in parameters} == _calls()
    assert {parameters[call]: named[call] for call in parameters} == OF_PARAMETERS


def test_every_tool_is_on_the_page_with_its_permission() -> None:
    named = {cells[0].strip("| `"): cells[-1] for cells in _rows(MCP) if "memory_" in cells[0]}

    assert named == {tool.name: str(tool.permission) for tool in TOOLS}


def _section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", API, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def _fields_of(body: Mapping[str, Field]) -> set[str]:  # type: ignore[type-arg]  # of whichever kind
    return set(body)


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("Episodes", set(EpisodeLine.model_fields)),
        ("Remembering", set(RememberRequest.model_fields)),
        ("Recall", _fields_of(RecallRequest().fields)),
        ("Context", _fields_of(ContextRequest().fields)),
        ("Recollections", _fields_of(RecollectionRequest().fields)),
    ],
)
def test_every_field_of_a_body_is_told(title: str, fields: set[str]) -> None:
    assert fields <= set(re.findall(r"`(\w+)`", _section(title)))


def test_limits_are_those_of_the_policy() -> None:
    """B24."""
    policy = settings.POLICY
    recall, recollection = _section("Recall"), _section("Recollections")

    assert f"up to {policy.recall.query_characters:,} characters" in recall
    assert f"1 to {policy.recall.max_limit}; {policy.recall.limit} if left out" in recall
    assert f"confidence above {policy.recall.min_confidence}" in recall
    assert f"less than {policy.associative.min_similarity:.2f} like the query" in recall
    assert f"1 to {policy.recollection.max_tokens:,}, {policy.recollection.tokens}" in recollection
    assert f"at most {policy.recollection.episodes} episodes" in recollection


@pytest.mark.parametrize("mode", [RecallMode.FACTS_ONLY, RecallMode.FACTS_PLUS_RULES])
def test_modes_name_the_categories_that_they_ask_for(mode: RecallMode) -> None:
    """D2: what the second adds to the first, too."""
    rows = {cells[0].strip("| `"): cells[-1] for cells in _rows(_section("Recall"))}
    told = set(
        re.findall(r"[a-z]+", " ".join(rows[name] for name in rows if name.startswith("facts") and name <= mode))
    )

    assert set(categories_of(mode=mode) or ()) == told - {"of", "the", "categories", "these", "and"}
