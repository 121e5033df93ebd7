"""The page of all settings: `python -m tests.docs.settings_table` writes docs/settings.md.

Numbers come from their annotations in memory/domain/, everything else from memory/environment.py.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby

from memory.domain.policy import FORMER_NAMES, Policy, Setting, iter_settings
from memory.environment import CLIENT_VARIABLES, GROUPS, RARE, Variable, default_of, iter_variables
from tests.docs.rule_index import ROOT, pages

PAGE = ROOT / "docs" / "settings.md"
_RULE = re.compile(r"^## ((\w+)\b.*)$", re.MULTILINE)

_INTRODUCTION = """# Settings

Written by `python -m tests.docs.settings_table` from `memory/environment.py` and the policies in `memory/domain/`.

Every variable there is. [.env.example](../.env.example) shows those that most people look for; the environment or a
file `.env` sets them ([how](operations/README.md)). An empty value counts as unset, and a value that does not parse
or lies outside its range stops the start with the variable's name. The first tables hold what says where and with what
Engram runs, the others the numbers of [the rules](rules/README.md), by stage.
"""
_NUMBERS = "\n| variable | default | range | what it does | rule |\n|---|---|---|---|---|\n"
_VARIABLES = "\n| variable | default | what it does |\n|---|---|---|\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(render())


def render() -> str:
    """Return the text of the page."""
    return _INTRODUCTION + "".join((*_variables(), *_numbers(), _former_names(), _of_clients()))


def _variables() -> Iterator[str]:
    """Yield a table for each purpose that has variables besides numbers."""
    for title, shown in (*GROUPS, ("Rarely set", RARE)):
        rows = [_variable_row(variable) for variable in shown if isinstance(variable, Variable)]
        if rows:
            yield f"\n## {title.partition(':')[0]}\n{_VARIABLES}" + "".join(rows)


def _variable_row(variable: Variable) -> str:
    default = variable.example if variable.default is None else variable.default
    return f"| `{variable.name}` | {_code(default)} | {variable.description} |\n"


def _numbers() -> Iterator[str]:
    """Yield a table for each stage of the policy."""
    links = _links_of_rules()
    purposes = {stage.name: type(getattr(Policy(), stage.name)).__doc__ for stage in fields(Policy)}
    for stage, settings in groupby(iter_settings(), key=lambda setting: setting.stage):
        rows = "".join(_number_row(setting, links) for setting in settings)
        yield f"\n## Numbers: {stage}\n\n{purposes[stage]}\n{_NUMBERS}{rows}"


def _number_row(setting: Setting, links: dict[str, str]) -> str:
    rules, _, does = setting.description.partition(": ")
    linked = ", ".join(links[rule.partition(".")[0]].format(rule) for rule in rules.split(", "))
    return f"| `{setting.name}` | {_code(default_of(setting))} | {_range_of(setting)} | {does} | {linked} |\n"


def _range_of(setting: Setting) -> str:
    """Say a range in words: 0 or more, over 0, 0 to 1."""
    if setting.kind is bool:
        return "1 or 0"
    if setting.range is None:
        return "any"
    low, high = setting.range.low, setting.range.high
    if high != float("inf"):
        return f"{low:g} to {high:g}"
    return "over 0" if 0 < low < 1 else f"{low:g} or more"


def _links_of_rules() -> dict[str, str]:
    """Return a link for each rule's id, with a place for how it is called."""
    links = {}
    for page in pages():
        for heading, rule in _RULE.findall(page.read_text()):
            anchor = re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-")
            links[rule] = f"[{{}}](rules/{page.name}#{anchor})"
    return links


def _former_names() -> str:
    rows = "".join(f"| `{former}` | `{name}` |\n" for former, name in FORMER_NAMES.items())
    return f"\n## Former names\n\nStill read; `manage.py check` warns of them.\n\n| was | is |\n|---|---|\n{rows}"


def _of_clients() -> str:
    ours = {variable.name for variable in iter_variables()}
    named = ", ".join(f"`{name}`" for name in sorted(CLIENT_VARIABLES - ours))
    return f"\n## Of clients\n\nRead by [plugins and clients](agents.md#claude-code), not by the server: {named}.\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else "unset"


if __name__ == "__main__":
    main()
