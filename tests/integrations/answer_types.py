"""The types of engram_client's bodies and answers, written from the OpenAPI schema.

`python -m tests.integrations.answer_types` writes integrations/python/engram_client/types.py anew; a test says when.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT

FILE = ROOT / "integrations" / "python" / "engram_client" / "types.py"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = '''"""What goes into calls and comes back, as JSON has it. Written from the API's schema: change that."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
'''


def schema() -> dict[str, Any]:
    """Return the API's OpenAPI schema."""
    from drf_spectacular.generators import SchemaGenerator

    made: dict[str, Any] = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    return made


def render(components: Mapping[str, Any]) -> str:
    """Render the schema's components as Python."""
    objects = {name: one for name, one in components.items() if "properties" in one}
    others = {name: one for name, one in components.items() if name not in objects}
    parts = [_HEAD, *("\n".join(_typed_dict(name, one)) for name, one in objects.items())]
    aliases = "\n".join(f"{name}: TypeAlias = {_type(one)}" for name, one in others.items())
    return "\n\n".join([parts[0].rstrip(), aliases, *parts[1:]]) + "\n"


def _typed_dict(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    required = set(one.get("required", ()))
    yield f"class {name}(TypedDict):"
    if told := str(one.get("description", "")).split("\n")[0]:
        yield f'    """{told}"""\n'
    for field, shape in one["properties"].items():
        kind = _type(shape)
        yield f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}"


def _type(shape: Mapping[str, Any]) -> str:
    if "$ref" in shape:
        name = shape["$ref"].rsplit("/", 1)[1]
        return f'"{name}"'
    if "enum" in shape:
        return f"Literal[{', '.join(_literal(value) for value in shape['enum'])}]"
    for union in ("anyOf", "oneOf", "allOf"):
        if union in shape:
            return _union([_type(part) for part in shape[union]])
    if isinstance(shape.get("type"), list):
        return _union([_type({**shape, "type": kind}) for kind in shape["type"]])
    return _container(shape)


def _container(shape: Mapping[str, Any]) -> str:
    kind = shape.get("type")
    if kind == "array":
        return f"list[{_type(shape.get('items', {}))}]"
    if kind == "object":
        inner = shape.get("additionalProperties")
        return f"dict[str, {_type(inner) if isinstance(inner, Mapping) else 'Any'}]"
    return _PLAIN.get(str(kind), "Any")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _union(kinds: list[str]) -> str:
    """Join kinds; names that stand in quotes make the whole a text."""
    distinct = list(dict.fromkeys(kinds))
    if len(distinct) > 1 and any('"' in kind and not kind.startswith("Literal") for kind in distinct):
        return '"' + " | ".join(kind.replace('"', "") for kind in distinct) + '"'
    return " | ".join(distinct)


def in_form(source: str, *, at: Path) -> str:
    """Return source as the project's formatter leaves it."""
    import subprocess
    import sys

    command = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", str(at), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=ROOT).stdout


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
    import django

    django.setup()
    FILE.write_text(in_form(render(schema()["components"]["schemas"]), at=FILE))
