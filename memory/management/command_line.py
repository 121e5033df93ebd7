"""What commands share: their body, how they report and fail (1 for what failed, 2 for bad usage), rows that the command
line names, who acts, how they show progress and wait for workers.

A command names its options and gives back a `Report` of one service call. The rule is R15.
"""

import getpass
import json
import re
import signal
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone
from tqdm import tqdm

from memory.access import AmbiguousId, find_by_prefix, find_workspace
from memory.domain.errors import EngramError
from memory.domain.identity import Actor, ActorKind, IdKind, beginning_pattern, is_episode_id
from memory.domain.lifecycle import CycleState
from memory.ingest.schemas import is_slug
from memory.models import Belief, Cycle, Episode, Project, Workspace
from memory.redaction.service import redact_name


class ServiceCommand(BaseCommand):
    """A command that fails with the message and the exit status of an EngramError, instead of a traceback."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except EngramError as error:
            raise CommandError(str(error), returncode=error.exit_status) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a command did: `values` for --json, else `lines`.

    Then it fails if something was left undone: with `failure`, or without a word more where the lines say it.
    """

    values: Any
    lines: Iterable[str]
    failure: str = ""
    has_failed: bool = False


class ReportCommand(ServiceCommand):
    """A command that reports in lines or, with --json, in one JSON document; `run` does its work."""

    json_help: str | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_options(parser)
        parser.add_argument("--json", action="store_true", dest="as_json", help=self.json_help)

    def add_options(self, parser: CommandParser) -> None:
        """Add what this command takes besides."""

    def handle(self, *args: Any, as_json: bool, **options: Any) -> None:
        report = self.run(now=timezone.now(), as_json=as_json, **options)
        for line in [json.dumps(report.values, cls=DjangoJSONEncoder)] if as_json else report.lines:
            self.stdout.write(line)
        if report.failure:
            raise CommandError(report.failure, returncode=1)
        if report.has_failed:
            sys.exit(1)

    def run(self, *args: Any, **options: Any) -> Report:
        """Do what is asked, at the time `now`, in one service call."""
        raise NotImplementedError


class WorkspaceCommand(ReportCommand):
    """A command about the workspace that --workspace names; `run` gets it."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True)
        super().add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        options["workspace"] = find_workspace(name=options["workspace"])
        super().handle(*args, **options)


@contextmanager
def fail_on(*errors: type[Exception], then: str = "") -> Iterator[None]:
    """Turn what stops the work into a failed command, and say what to do then."""
    try:
        yield
    except errors as error:
        raise CommandError(f"{error}{then}", returncode=1) from error


def progress_bar(*, of: str, unit: str, as_json: bool, **looks: Any) -> "tqdm[Any]":
    """Make a bar for whoever watches: on a terminal, where the report is in lines, until the work is done."""
    return tqdm(desc=of, unit=unit, disable=as_json or not sys.stderr.isatty(), leave=False, **looks)


def advance(bar: "tqdm[Any]", done: int, left: int) -> None:
    """Move a bar on by what was done, of what is left."""
    bar.update(done)
    bar.total = bar.n + left


def add_limit(parser: CommandParser, *, help: str) -> None:
    """Add --limit: most of something, one at least."""
    parser.add_argument("--limit", type=_at_least_one, help=help)


def _at_least_one(given: str) -> int:
    if not given.isdecimal() or int(given) < 1:
        raise ArgumentTypeError("a whole number of 1 or more")
    return int(given)


def usage_error(message: str) -> CommandError:
    """Make an error that says that the command line names something that is not there."""
    return CommandError(message, returncode=2)


@contextmanager
def fail_on_invalid() -> Iterator[None]:
    """Turn what a model refuses into a failed command."""
    try:
        yield
    except ValidationError as error:
        raise CommandError(_errors_by_field(error)) from None


def _errors_by_field(error: ValidationError) -> str:
    """Put the field's name before what is wrong with it."""
    reasons = error.message_dict.items()
    named = [f"{field}: {text}" if field != NON_FIELD_ERRORS else text for field, texts in reasons for text in texts]
    return " ".join(named)


def named_project(*, workspace: Workspace, slug: str) -> Project:
    """Find the project that the command line names."""
    project = Project.objects.for_workspace(workspace).filter(slug=slug).first()
    if project is None:
        raise usage_error(f"There is no project {slug!r} in workspace {workspace.name}; make one with create_project.")
    found: Project = project
    return found


def checked_slug(slug: str | None) -> str | None:
    """Return what --project says, if it can name a project."""
    if slug is not None and not is_slug(slug):
        raise usage_error(f"--project: {slug!r} cannot name a project; letters, digits, - and _ can, no key.")
    return slug


def named_user(name: str | None) -> str | None:
    """Return what --user says, redacted as in the memories that are theirs; none without."""
    if name == "":
        raise usage_error("--user: what belongs to nobody in particular is not one user's.")
    return None if name is None else redact_name(name).text


def named_cycle(cycle_id: str) -> Cycle:
    """Find the cycle of this id."""
    cycle: Cycle | None = Cycle.objects.filter(pk=cycle_id).first()
    if cycle is None:
        raise usage_error(f"There is no cycle {cycle_id}.")
    return cycle


_ID_OR_BEGINNING = re.compile(beginning_pattern(IdKind.EPISODE, IdKind.BELIEF, fewest=0))
_MAX_IDS_SHOWN = 5  # that an ambiguous beginning is told to fit


def named_memory(text: str) -> Episode | Belief:
    """Find the one memory whose id begins so."""
    if not _ID_OR_BEGINNING.fullmatch(text):
        raise usage_error(f"{text!r} names no memory: ep_… or bl_… is expected.")
    try:
        memory = _find_by_beginning(text)
    except AmbiguousId as several:
        more = " and more" if len(several.ids) > _MAX_IDS_SHOWN else ""
        raise usage_error(f"{text} fits several: {', '.join(several.ids[:_MAX_IDS_SHOWN])}{more}.") from None
    if memory is None:
        raise usage_error(f"There is no {text}.")
    return memory


def _find_by_beginning(text: str) -> Episode | Belief | None:
    if is_episode_id(text):
        return find_by_prefix(among=Episode._default_manager.all(), beginning=text)
    return find_by_prefix(among=Belief._default_manager.all(), beginning=text)


def command_actor(name: str) -> Actor:
    """Name a command, and who runs it, as the one who acts."""
    return Actor(kind=ActorKind.COMMAND, name=f"{name} of {getpass.getuser()}")


IMPORT_STOPPED = "Stopped. What was imported stays, and the same command goes on where this one stopped."
_HINT_SECONDS = 10.0

_HINT = (
    "No worker has taken cycle {cycle} up for {seconds:.0f} s; it waits for one. "
    "`make up` in another terminal starts the workers."
)


class NoWorkerHint:
    """Looks at a cycle again and again, and says once that no worker takes it up."""

    def __init__(self, *, out: OutputWrapper) -> None:
        self._out = out
        self._waiting_for = ""
        self._since = 0.0
        self._is_said = False

    def __call__(self, cycle: Cycle) -> None:
        if cycle.pk != self._waiting_for:
            self._waiting_for, self._since = cycle.pk, time.monotonic()
        has_waited = time.monotonic() - self._since > _HINT_SECONDS
        if cycle.state == CycleState.QUEUED and has_waited and not self._is_said:
            self._out.write(_HINT.format(cycle=cycle.pk, seconds=_HINT_SECONDS))
            self._is_said = True


@contextmanager
def exit_on_interrupt(*, out: OutputWrapper, message: Callable[[], str]) -> Iterator[None]:
    """Turn Ctrl-C into one line and the exit status that shells give to it (130)."""
    try:
        yield
    except KeyboardInterrupt:
        out.write(message())
        sys.exit(128 + signal.SIGINT)


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 episode`, `2 episodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
