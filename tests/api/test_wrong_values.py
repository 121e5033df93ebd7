"""Values that the schema does not allow, of each field of each call: refused by the field's name, and nothing is done.

They are made from the schema. What it cannot say stands in the tests of each call: times without an offset, fields that
go together, texts that are blank.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db.models.functions import Now
from drf_spectacular.generators import SchemaGenerator

from memory.models import Belief, ContradictionCandidate, Cycle, Episode, Transition, Turn, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

SCHEMA: dict[str, Any] = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
OPERATIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    operation["operationId"]: (method.upper(), path, operation)
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
}

# A body that is right but for the one field that is tried.
RIGHT: dict[str, dict[str, Any]] = {
    "accept_turns": {"session": "s", "role": "user", "content": "tea"},
    "context": {"query": "tea"},
    "correct_belief": {"reason": "so"},
    "curate_belief": {"reason": "so"},
    "erase_memories": {"user": "mara"},
    "found_belief": {"statement": "Mara drinks tea.", "evidence": [{"episode": "{episode}"}]},
    "give_feedback": {"value": "useful"},
    "merge_beliefs": {"beliefs": ["{belief}", "{other}"], "reason": "so"},
    "recall": {"query": "tea"},
    "recollect": {"query": "tea"},
    "remember": {"text": "tea"},
    "split_belief": {"parts": [{"statement": "a"}, {"statement": "b"}], "reason": "so"},
    "store_episodes": {"text": "tea"},
}
STORED = (Belief, ContradictionCandidate, Cycle, Episode, Transition, Turn)
# They look at no body and no parameter.
HEEDLESS = {"cancel_consolidation", "release_consolidation", "read_consolidation"}
SAMPLES: dict[str, object] = {
    "string": "x",
    "integer": 5,
    "number": 0.5,
    "boolean": True,
    "array": ["x"],
    "object": {"x": 1},
}


def resolved(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return a shape with what it refers to, as one of the kinds that it may be."""
    found = dict(shape)
    if "$ref" in found:
        found |= resolved(named_shape(found.pop("$ref")))
    for union in ("allOf", "anyOf", "oneOf"):
        parts = [resolved(part) for part in found.pop(union, ())]
        kinds = set(kinds_of(found)).union(*map(kinds_of, parts))
        for part in reversed(parts):
            found |= part
        if kinds:
            found["type"] = sorted(kinds)
    return found


def named_shape(reference: str) -> dict[str, Any]:
    """Return the component that a reference names."""
    shape: dict[str, Any] = SCHEMA["components"]["schemas"][reference.rsplit("/", 1)[1]]
    return shape


def kinds_of(shape: Mapping[str, Any]) -> list[str]:
    """Return the types in JSON that a shape allows."""
    kinds = shape.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def wrong_values(shape: Mapping[str, Any]) -> Iterator[object]:
    """Yield values of other types, null, beyond each bound, and outside a closed set."""
    whole = resolved(shape)
    kinds = set(kinds_of(whole))
    if not kinds:
        return
    if "null" not in kinds:
        yield None
    allowed = kinds | ({"integer"} if "number" in kinds else set())
    yield from (sample for kind, sample in SAMPLES.items() if kind not in allowed)
    yield from out_of_bounds(whole)
    if "array" in kinds:
        yield from ([wrong] for wrong in wrong_values(whole.get("items", {})))


def out_of_bounds(whole: Mapping[str, Any]) -> Iterator[object]:
    """Yield what is of the right type, and too small, too great, too long, or no word of the set."""
    if "minimum" in whole:
        yield whole["minimum"] - 1
    if "maximum" in whole:
        yield whole["maximum"] + 1
    if "maxLength" in whole:
        yield "x" * (whole["maxLength"] + 1)
    if whole.get("minLength") and "string" in kinds_of(whole):
        yield ""
    if "minItems" in whole:
        yield []
    if "maxItems" in whole:
        yield ["x"] * (whole["maxItems"] + 1)
    if "enum" in whole:
        yield "nonsense"
    if whole.get("format") == "date-time":
        yield "yesterday"


def body_of(operation: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the shape of an operation's body; of lines, that of one. None where there is no body, or a file."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    shape = dict(content["schema"])
    while "$ref" in shape or "anyOf" in shape:
        shape = (
            SCHEMA["components"]["schemas"][shape["$ref"].rsplit("/", 1)[1]] if "$ref" in shape else shape["anyOf"][0]
        )
    return shape


def posted() -> set[str]:
    """Return the operations that take a body, a file apart."""
    return {name for name, (method, *_) in OPERATIONS.items() if method == "POST"} - {"import_workspace"}


def named_fields() -> Iterator[Any]:
    """Yield each field of a body."""
    for name, (_, _, operation) in OPERATIONS.items():
        for field in (body_of(operation) or {}).get("properties", {}):
            yield pytest.param(name, field, id=f"{name}-{field}")


def named_parameters() -> Iterator[Any]:
    """Yield each parameter of an address that takes some texts and not others."""
    for name, (_, _, operation) in OPERATIONS.items():
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query" and list(wrong_texts(parameter["schema"])):
                yield pytest.param(name, parameter, id=f"{name}-{parameter['name']}")


def wrong_texts(shape: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an address cannot say."""
    whole = resolved(shape)
    yield from map(str, out_of_bounds(whole))
    if {"integer", "number", "boolean"} & set(kinds_of(whole)):
        yield "perhaps"


@pytest.fixture
def world(workspace: Workspace) -> dict[str, str]:
    """Fill a workspace with one memory of each kind, and name them as addresses do."""
    episode, belief = (
        remembered("Mara drinks tea.", workspace=workspace),
        believed("Mara likes tea.", workspace=workspace),
    )
    other = believed("Mara likes green tea.", workspace=workspace)
    cycle = Cycle.objects.create(
        workspace=workspace, trigger="person", now=factories.NOW, state="finished", finished_at=Now()
    )
    named = {"belief_id": belief.pk, "memory_id": episode.pk, "cycle_id": cycle.pk, "pair_id": "1"}
    named["slug"] = factories.project(workspace=workspace).slug
    return named | {"act": "pin", "settling": "dismiss", "episode": episode.pk, "belief": belief.pk, "other": other.pk}


@pytest.fixture
def owner(workspace: Workspace) -> Caller:
    return caller(workspace=workspace)


def stored() -> list[int]:
    """Count what there is."""
    return [model.objects.count() for model in STORED]


def send(owner: Caller, world: Mapping[str, str], name: str, *, body: object = None, query: str = "") -> Any:
    method, path, _ = OPERATIONS[name]
    address = path.removeprefix("/api/v1").format(**world)
    return owner.post(address, body) if method == "POST" else owner.request(method, f"{address}?{query}")


def right(name: str, world: Mapping[str, str]) -> dict[str, Any]:
    """Return a body that nothing is wrong with."""
    text = json.dumps(RIGHT.get(name, {}))
    for named, key in world.items():
        text = text.replace(f"{{{named}}}", key)
    return dict(json.loads(text))


def is_refused(answer: Any, field: str) -> bool:
    """Tell whether an answer is a problem that names a field, or a place within it."""
    if answer.status_code != 422 or not is_problem(answer, 422):
        return False
    return any(f"{name}.".startswith(f"{field}.") for name in answer.json()["errors"])


@pytest.mark.parametrize(("name", "field"), list(named_fields()))
def test_a_wrong_value_is_refused_by_its_field(name: str, field: str, world: dict[str, str], owner: Caller) -> None:
    """E6 (21): nothing is made of it, and nothing begun."""
    shape, before = body_of(OPERATIONS[name][2]) or {}, stored()
    bodies = [right(name, world) | {field: value} for value in wrong_values(shape["properties"][field])]
    answers = [(body, send(owner, world, name, body=body)) for body in bodies]
    assert [(body, answer.content) for body, answer in answers if not is_refused(answer, field)] == []
    assert stored() == before


@pytest.mark.parametrize("name", sorted(posted() - HEEDLESS))
def test_an_unknown_field_is_refused(name: str, world: dict[str, str], owner: Caller) -> None:
    before = stored()
    assert is_refused(send(owner, world, name, body=right(name, world) | {"colour": "red"}), "colour")
    assert stored() == before


@pytest.mark.parametrize("name", [name for name, (*_, operation) in OPERATIONS.items() if body_of(operation)])
def test_a_missing_field_is_named(name: str, world: dict[str, str], owner: Caller) -> None:
    required, before = (body_of(OPERATIONS[name][2]) or {}).get("required", []), stored()
    for field in required:
        rest = {key: value for key, value in right(name, world).items() if key != field}
        assert is_refused(send(owner, world, name, body=rest), field), field
    assert stored() == before


@pytest.mark.parametrize(("name", "parameter"), list(named_parameters()))
def test_a_wrong_parameter_is_named(name: str, parameter: dict[str, Any], world: dict[str, str], owner: Caller) -> None:
    field, before = parameter["name"], stored()
    answers = [
        (text, send(owner, world, name, query=urlencode({field: text}))) for text in wrong_texts(parameter["schema"])
    ]
    assert [(text, answer.content) for text, answer in answers if not is_refused(answer, field)] == []
    assert stored() == before


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - posted() - HEEDLESS - {"import_workspace"}))
def test_an_unknown_parameter_is_named(name: str, world: dict[str, str], owner: Caller) -> None:
    assert is_refused(send(owner, world, name, query="colour=red"), "colour")
    assert Episode.objects.get(pk=world["episode"]).status == "active"
