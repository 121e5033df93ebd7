"""What the project shows of itself, as documents: schema, tools, commands, settings, metrics, tasks."""

import asyncio
import json
import os
import subprocess
import sys
from argparse import SUPPRESS, Action, ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from inspect import signature
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandParser
from drf_spectacular.generators import SchemaGenerator

from beliefsite.celery import app
from memory.domain.policy import FORMER_NAMES, iter_settings
from memory.environment import CLIENT_VARIABLES, iter_variables
from memory.metrics import RowCollector
from tests.contract.placeholders import hide_release, with_old_titles
from tests.docs.pages import ROOT
from workers.health import TASK_NAMES

OUR_APPS = ("memory", "workers")

# Read in a process of its own that the environment of whoever runs the suite does not reach.
_READ_DEFAULTS = """
import environ, json, sys
environ.Env.read_env = lambda *words, **more: None
from beliefsite import settings
known = {name: getattr(settings, name) for name in sys.argv[1:] if hasattr(settings, name)}
print(json.dumps(known, default=str))
"""
_OF_THIS_PLACE = {"SECRET_KEY", "ENGRAM_DATA_DIR"}


def describe_schema() -> Any:
    """Return the OpenAPI schema as it is served."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    schema["info"]["version"] = hide_release(schema["info"]["version"])
    return with_old_titles(schema)


def describe_tools() -> Any:
    """Return the tools for agents as a client lists them, and the instructions that come with them."""
    from memory.mcp.server import build_server  # the SDK takes seconds to import

    server = build_server()
    listed = asyncio.run(server.list_tools())
    tools = {tool.name: tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed}
    return {"instructions": server.instructions, "order": list(tools), "tools": tools}


def describe_commands() -> dict[str, Any]:
    """Return what each of our commands takes, read from its parser: how help is laid out differs between Pythons."""
    of_django = _arguments_of(CommandParser())
    of_django |= _arguments_of(BaseCommand().create_parser("manage.py", "none"))
    described = {}
    for name, owner in sorted(get_commands().items()):
        if name == "migrate":  # Django's own, which we only hasten: it changes with Django
            continue
        if owner in OUR_APPS:
            command = load_command_class(owner, name)
            taken = _arguments_of(command.create_parser("manage.py", name))
            own = {key: argument for key, argument in taken.items() if of_django.get(key) != argument}
            described[name] = {"help": command.help, "arguments": own}
    return described


def _arguments_of(parser: ArgumentParser) -> dict[str, Any]:
    described = {" ".join(action.option_strings) or action.dest: _describe(action) for action in parser._actions}
    for group in parser._mutually_exclusive_groups:
        for action in group._group_actions:
            others = [" ".join(other.option_strings) for other in group._group_actions if other is not action]
            described[" ".join(action.option_strings) or action.dest]["not_with"] = others
    return described


def _describe(action: Action) -> dict[str, Any]:
    """Describe an argument by what its parser keeps of it."""
    if isinstance(action, _SubParsersAction):
        return {"commands": {name: _arguments_of(parser) for name, parser in action.choices.items()}}
    kind = getattr(action.type, "__name__", None)
    kept = {
        "help": action.help if action.help != SUPPRESS else None,
        "metavar": action.metavar,
        "takes": action.nargs if action.nargs is not None else 1,
        "type": kind,
        "choices": list(map(str, action.choices)) if action.choices is not None else None,
        "default": _told(action.default) if action.default not in (None, SUPPRESS) else None,
        "is_required": action.required or None,
        "action": type(action).__name__.strip("_"),
    }
    return {name: value for name, value in kept.items() if value is not None}


def _told(default: object) -> str:
    """Return a default as text that is the same wherever the project lies."""
    return str(default).replace(str(settings.DATA_DIR), "<data>").replace(str(ROOT), "<project>")


def describe_settings() -> dict[str, Any]:
    """Return every variable of the environment, with its default where nothing is set, and its bounds."""
    named = {variable.name: variable for variable in iter_variables()}
    defaults = _defaults_of(sorted(named.keys() - _OF_THIS_PLACE))
    of_place = {
        name: {"default": defaults.get(name), "example": variable.example, "says": variable.description}
        for name, variable in named.items()
    }
    numbers = {
        setting.name: {
            "default": setting.default,
            "kind": setting.kind.__name__,
            "range": f"{setting.range.low:g} to {setting.range.high:g}" if setting.range else "",
            "says": setting.description,
        }
        for setting in iter_settings()
    }
    numbers |= {former: numbers[name] for former, name in FORMER_NAMES.items()}
    callers = sorted(CLIENT_VARIABLES)
    return {"variables": of_place, "numbers": numbers, "former_names": FORMER_NAMES, "of_callers": callers}


def _defaults_of(names: list[str]) -> dict[str, Any]:
    """Read the settings where no variable says otherwise."""
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "ENGRAM_DATA_DIR") if name in os.environ}
    command = [sys.executable, "-W", "ignore", "-c", _READ_DEFAULTS, *names]
    said = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True, check=True).stdout
    read: dict[str, Any] = json.loads(said.splitlines()[-1])
    return read


def describe_metrics() -> dict[str, Any]:
    """Return each family that is scraped: its type, its text, and the labels and names of its samples."""
    described = {}
    for family in RowCollector(tasks=[f"workers.{name}" for name in TASK_NAMES]).collect():
        labels = {label for sample in family.samples for label in sample.labels}
        described[family.name] = {
            "type": family.type,
            "says": family.documentation,
            "labels": sorted(labels),
            "samples": sorted({sample.name for sample in family.samples}),
        }
    return described


def describe_tasks() -> dict[str, Any]:
    """Return our tasks with what their messages carry and where they go, and what beat sends."""
    app.loader.import_default_modules()
    tasks = {
        name: {"queue": _queue_of(name), "arguments": list(signature(task.run).parameters)}
        for name, task in sorted(app.tasks.items())
        if name.startswith(tuple(f"{owner}." for owner in _labels()))
    }
    beat = {
        name: {"task": entry["task"], "seconds": entry["schedule"], **entry.get("options", {})}
        for name, entry in app.conf.beat_schedule.items()
    }
    return {"tasks": tasks, "beat": beat}


def _labels() -> Iterator[str]:
    for owner in OUR_APPS:
        yield apps.get_app_config(owner).label


def _queue_of(name: str) -> str:
    queue: str = app.amqp.router.route({}, name)["queue"].name
    return queue
