"""Run the whole stack on this machine until Ctrl-C."""

import os
import secrets
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from beliefsite.environment import flower_login, read_count
from beliefsite.services import describe_services
from memory import VERSION
from memory.access import create_key, create_workspace
from memory.consolidation.schedule import SWEEP_HEARTBEAT
from memory.models import Heartbeat, Membership, Permission, Role, Workspace
from workers.supervision import LOG_FOLDER, running_stack, server_keeper, start_supervisor, write_configuration

_DEFAULT_PORTS = {"PORT": "8000", "FLOWER_PORT": "5555", "MCP_PORT": "8001"}
_FIRST_WORKSPACE = "default"
_FIRST_ADMIN = "admin"
_MANAGE = ".venv/bin/python manage.py"
_LOOK_SECONDS = 0.5
_LONG_SECONDS = 60.0


class Command(BaseCommand):
    help = "Run web, worker, beat, Flower and the tools for agents until Ctrl-C, restarting what dies."

    _is_ending = False

    def handle(self, *args: Any, **options: Any) -> None:
        _check_alone()
        environment = _ENVIRONMENT_DEFAULTS | dict(os.environ) | _read_ports()
        environment["ENGRAM_DATA_DIR"] = str(settings.DATA_DIR.resolve())
        environment["ENGRAM_WORKERS"] = str(read_count("ENGRAM_WORKERS", default=4, least=1))
        call_command("migrate", verbosity=0)
        environment["FLOWER_BASIC_AUTH"] = flower_login()
        ways_in = _create_first_access() or _describe_access()
        self._say(
            f"Starting Engram {VERSION}: web, worker, beat, Flower and the tools for agents; this takes some 20 s …"
        )
        self._run(environment, ways_in)

    def _run(self, environment: Mapping[str, str], ways_in: Mapping[str, str]) -> None:
        """Run supervisord until it ends; whatever ends us ends it: SIGTERM, Ctrl-C, a terminal that closes."""
        servers = server_keeper(database=settings.EMBEDDED_DATABASE, broker=settings.EMBEDDED_BROKER)
        configuration = write_configuration(
            procfile=settings.BASE_DIR / "Procfile", folder=settings.DATA_DIR, also=servers
        )
        swept_before = last_sweep()
        process = start_supervisor(configuration=configuration, environment=environment)
        for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ending, lambda *_: self._end(process))
        if self._await_ready(process, environment=environment, swept_before=swept_before):
            self._say(_describe(environment, ways_in))
        else:  # a first password and key are told all the same: nobody could ask for them again
            self._say("\n".join(["It ended before everything answered.", *_in_rows(ways_in)]))
        status = process.wait()
        if status:
            raise CommandError(f"supervisord ended with status {status}.", returncode=1)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Pass the wish to end on, and say once that it was heard."""
        if not self._is_ending:
            self._is_ending = True
            self._say("Stopping; what is being worked on is finished first …")
        process.terminate()

    def _await_ready(
        self, process: subprocess.Popen[bytes], *, environment: Mapping[str, str], swept_before: datetime | None
    ) -> bool:
        """Wait until everything answers; false if supervisord has ended before. Say it once if that takes long."""
        began, is_said = time.monotonic(), False
        while process.poll() is None:
            missing = find_missing(environment=environment, swept_before=swept_before)
            if not missing:
                return True
            if not is_said and time.monotonic() - began > _LONG_SECONDS:
                self._say(f"No answer yet from {', '.join(missing)}; the logs are in {_logs()}. Still waiting …")
                is_said = True
            time.sleep(_LOOK_SECONDS)
        return False

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _create_first_access() -> dict[str, str]:
    """Create the first workspace, admin and key where there is no user yet, and say how to come in.

    The admin is a member of every workspace there is, the demo's as well.
    """
    if get_user_model().objects.exists():
        return {}
    now = timezone.now()
    workspace = Workspace.objects.filter(name=_FIRST_WORKSPACE).first()
    workspace = workspace or create_workspace(name=_FIRST_WORKSPACE, now=now)
    password = secrets.token_urlsafe(12)
    admin = get_user_model().objects.create_superuser(username=_FIRST_ADMIN, email="", password=password)
    for existing in Workspace.objects.all():
        Membership.objects.create(workspace=existing, user=admin, role=Role.OWNER)
    _, key = create_key(workspace=workspace, permissions=[Permission.OWNER], now=now, name="first key")
    return {
        "sign in": f"user {_FIRST_ADMIN}, password {password}  (shown this once)",
        "API key": f"{key}  (workspace {workspace.name}, shown this once)",
    }


def _describe_access() -> dict[str, str]:
    """Say how to get a password and a key where the first ones were shown long ago."""
    admin = get_user_model().objects.filter(is_superuser=True).order_by("pk").first()
    workspace = Workspace.objects.filter(name=_FIRST_WORKSPACE).first() or Workspace.objects.order_by("pk").first()
    user = admin.get_username() if admin else "USER"
    name = workspace.name if workspace else "WORKSPACE"
    return {
        "sign in": f"user {user}; a new password: {_MANAGE} changepassword {user}",
        "API key": f"a new one: {_MANAGE} create_api_key {shlex.quote(name)} --permissions owner",
    }


def _describe(environment: Mapping[str, str], ways_in: Mapping[str, str]) -> str:
    """Say in one block where everything is and how to come in."""
    web = f"http://127.0.0.1:{environment['PORT']}"
    flower = environment["FLOWER_BASIC_AUTH"].replace(":", ", password ", 1)
    rows = {
        "admin": f"{web}/",
        **ways_in,
        "API": f"{web}/api/v1, described at {web}/api/docs",
        "MCP": f"http://127.0.0.1:{environment['MCP_PORT']}/mcp, with an API key",
        "Flower": f"http://127.0.0.1:{environment['FLOWER_PORT']}/  user {flower}",
        "logs": f"{_logs()}/: web.log, worker.log, beat.log, flower.log, mcp.log",
    }
    services = [f"  {line}" for line in describe_services()]
    return "\n".join(["", "Engram is ready.", *_in_rows(rows), *services, "Ctrl-C ends all of it."])


def _in_rows(named: Mapping[str, str]) -> list[str]:
    return [f"  {name:<9}  {text}" for name, text in named.items()]


def _logs() -> Path:
    folder: Path = settings.DATA_DIR / LOG_FOLDER
    return folder


_ENVIRONMENT_DEFAULTS = {"TOKENIZERS_PARALLELISM": "false"}


def _check_alone() -> None:
    """Refuse to run a second stack on the same data."""
    stack = running_stack(folder=settings.DATA_DIR)
    if stack is not None:
        message = f"The stack runs here already, under supervisord. This ends all of it: kill {stack}"
        raise CommandError(message, returncode=1)


def _read_ports() -> dict[str, str]:
    """Return the ports by variable; refuse one that is none, given twice or in use: it would only show in some log."""
    names: dict[int, str] = {}
    for name, usual in _DEFAULT_PORTS.items():
        port = read_count(name, default=int(usual), least=1, most=65_535)
        if (other := names.setdefault(port, name)) != name:
            raise CommandError(f"{other} and {name} are both {port}; set one of them to another.", returncode=1)
    for port, name in names.items():
        _check_free(name, port)
    return {name: str(port) for port, name in names.items()}


def _check_free(name: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(f"Port {port} cannot be used ({error}); set {name} to another.", returncode=1) from error


_ANSWER_SECONDS = 2.0


def last_sweep() -> datetime | None:
    """Return when a worker swept last, by the database's clock."""
    return Heartbeat.objects.filter(name=SWEEP_HEARTBEAT).values_list("seen_at", flat=True).first()


def find_missing(*, environment: Mapping[str, str], swept_before: datetime | None) -> list[str]:
    """Name what does not answer yet; `swept_before` is the last sweep before the processes were started.

    A later one means that beat has asked for it and a worker has done it.
    """
    pages = {
        "web": f"{environment['PORT']}/healthz",
        "Flower": f"{environment['FLOWER_PORT']}/healthcheck",
        "tools for agents": f"{environment['MCP_PORT']}/mcp",
    }
    missing = [name for name, page in pages.items() if not _server_answers(f"http://127.0.0.1:{page}")]
    missing += _missing_worker(swept_before)
    connection.close()
    return missing


def _missing_worker(swept_before: datetime | None) -> list[str]:
    try:
        return ["worker and beat"] if last_sweep() == swept_before else []
    except (OperationalError, InterfaceError):  # it may come back; who waits must go on to keep the stack in hand
        return ["database"]


def _server_answers(address: str) -> bool:
    """Tell whether a server answers; one that knows no `127.0.0.1`, or wants HTTPS, refuses us and is there.

    Asked past any proxy: one would answer in its place.
    """
    try:
        return not httpx.get(address, timeout=_ANSWER_SECONDS, trust_env=False).is_server_error
    except httpx.TransportError:
        return False
