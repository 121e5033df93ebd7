"""What commands share: rows that the command line names, how commands fail (1 for what failed, 2 for bad usage),
who acts, and how they wait for workers.

The rule is R15.
"""

import getpass
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from memory.access import AmbiguousId, find_by_prefix
from memory.domain.errors import EngramError
from memory.domain.identity import Actor, ActorKind, IdKind, beginning_pattern, is_episode_id
from memory.domain.lifecycle import CycleState
from memory.models import Belief, Cycle, Episode, Project, Workspace


class ServiceCommand(BaseCommand):
    """A command that fails with the message and the exit status of an EngramError, instead of a traceback."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except EngramError as error:
            raise CommandError(str(error), returncode=error.exit_status) from None


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
