"""The types of engram_client's bodies and answers, written from the OpenAPI schema.

`python -m tests.integrations.answer_types` writes integrations/python/engram_client/types/ anew; a test says when.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT

CLIENT = ROOT / "integrations" / "python" / "engram_client"
FOLDER = CLIENT / "types"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_CLOSED_SETS = "closed_sets"
_FILE_OF_SECTION = {
    "What goes in": "stored",
    "What comes to mind": "recalled",
    "What is known": "read",
    "By hand": "curated",
    "All beliefs": "workspace",
    "Cycles": "workspace",
    "Moving": "workspace",
}
_SAYS = {
    _CLOSED_SETS: "Closed sets of words",
    "stored": "What is stored, and what is answered",
    "recalled": "What comes to mind, and how a memory stands",
    "read": "What is known of memories",
    "curated": "What is done to memories by hand",
    "workspace": "What is told of all beliefs, of cycles and of exports",
}
_WRITTEN = "as JSON has it. Written from the API's schema: change that."
_OF_TYPING = ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict")
_FEWEST_INHERITED = 3  # fewer fields are alike by chance


def schema() -> dict[str, Any]:
    """Return the API's OpenAPI schema."""
    from drf_spectacular.generators import SchemaGenerator

    made: dict[str, Any] = SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]
    return made


def render(components: Mapping[str, Any]) -> dict[str, str]:
    """Render what the client's functions name, and all that it is made of, as Python: a source for each file."""
    bases = _bases(components)
    files: dict[str, list[str]] = {_CLOSED_SETS: []}
    placed: dict[str, str] = {}
    for file, names in _named_by_calls():
        for name in _in_order(names, components, bases):
            home = placed.setdefault(name, _CLOSED_SETS if "enum" in components[name] else file)
            if name not in files.setdefault(home, []) and home in (file, _CLOSED_SETS):
                files[home].append(name)
    sources = {file: _module(file, names, placed, components, bases) for file, names in files.items()}
    stars = "".join(f"from engram_client.types.{file} import *\n" for file in sorted(files))
    return {
        "__init__": f'"""What goes into calls and comes back, {_WRITTEN}"""\n\n# ruff: noqa: F403\n{stars}',
        **sources,
    }


def _named_by_calls() -> Iterator[tuple[str, list[str]]]:
    """Yield a file with the types that a section of the client's calls names."""
    title, *sections = re.split(r"^# --- (.*)$", (CLIENT / "calls.py").read_text(), flags=re.MULTILINE)
    for name, text in (("What goes in", title), *zip(sections[::2], sections[1::2], strict=True)):
        yield _FILE_OF_SECTION[name], sorted(set(re.findall(r"\btypes\.([A-Z]\w+)", text)))


def _in_order(
    names: Collection[str], components: Mapping[str, Any], bases: Mapping[str, str], known: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield types, each after all that it is made of."""
    for name in names:
        if name not in known:
            base = [bases[name]] if name in bases else []
            inner = [one for one in _references(components[name]) if one != name]
            yield from _in_order([*base, *inner], components, bases, (*known, name))
            yield name


def _references(shape: object) -> list[str]:
    return sorted(set(re.findall(r"#/components/schemas/(\w+)", str(shape))))


def _bases(components: Mapping[str, Any]) -> dict[str, str]:
    """Return, by type, the longest one whose every field it has, too."""
    fields = {name: _fields(one) for name, one in components.items() if "properties" in one}
    found = {}
    for name, own in fields.items():
        held = [other for other, its in fields.items() if _FEWEST_INHERITED <= len(its) < len(own)]
        if inherited := [other for other in held if fields[other].items() <= own.items()]:
            found[name] = max(inherited, key=lambda other: len(fields[other]))
    return found


def _fields(one: Mapping[str, Any]) -> dict[str, str]:
    required = set(one.get("required", ()))
    kinds = {field: _type(shape) for field, shape in one["properties"].items()}
    return {field: kind if field in required else f"NotRequired[{kind}]" for field, kind in kinds.items()}


def _module(
    file: str,
    names: Collection[str],
    placed: Mapping[str, str],
    components: Mapping[str, Any],
    bases: Mapping[str, str],
) -> str:
    is_of_sets = file == _CLOSED_SETS
    definitions = [_definition(name, components, bases) for name in (sorted(names) if is_of_sets else names)]
    text = ("\n" if is_of_sets else "\n\n").join(definitions)
    typing = [name for name in _OF_TYPING if re.search(rf"\b{name}\b", text)]
    lines = [f"from typing import {', '.join(typing)}\n"]
    used = {name for name, home in placed.items() if home != file and re.search(rf"\b{name}\b", _code(text))}
    for home in sorted({placed[name] for name in used}):
        others = ", ".join(sorted(name for name in used if placed[name] == home))
        lines.append(f"from engram_client.types.{home} import {others}")
    return f'"""{_SAYS[file]}, {_WRITTEN}"""\n\n' + "\n".join(lines) + f"\n{text}\n"


def _code(text: str) -> str:
    return re.sub(r'""".*?"""', "", text, flags=re.DOTALL)


def _definition(name: str, components: Mapping[str, Any], bases: Mapping[str, str]) -> str:
    one = components[name]
    if "properties" not in one:
        return f"{name}: TypeAlias = {_type(one)}"
    base = bases.get(name)
    inherited = _fields(components[base]) if base else {}
    lines = [f"class {name}({base or 'TypedDict'}):"]
    if told := str(one.get("description", "")).split("\n")[0]:
        lines.append(f'    """{told}"""\n')
    lines += [f"    {field}: {kind}" for field, kind in _fields(one).items() if field not in inherited]
    return "\n".join(lines)


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


def sources_in_form() -> dict[Path, str]:
    """Return what each file of the types has to hold."""
    files = {FOLDER / f"{name}.py": source for name, source in render(schema()["components"]["schemas"]).items()}
    return {file: in_form(source, at=file) for file, source in files.items()}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
    import django

    django.setup()
    FOLDER.mkdir(exist_ok=True)
    for file, source in sources_in_form().items():
        file.write_text(source)
