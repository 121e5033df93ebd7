"""Run the whole stack on this machine until Ctrl-C."""

import os
import secrets
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from beliefsite.services import describe_services
from memory.access.keys import create_key
from memory.access.workspaces import create_workspace
from memory.models import Membership, Permission, Role, Workspace
from workers.supervision import PID_FILE, start_supervisor, write_configuration

_PORTS = {"PORT": "8000", "FLOWER_PORT": "5555"}
_FIRST_WORKSPACE = "default"
_FIRST_ADMIN = "admin"


class Command(BaseCommand):
    help = "Run web, worker, beat and Flower until Ctrl-C, restarting what dies."

    def handle(self, *args: Any, **options: Any) -> None:
        _check_alone()
        environment = _ENVIRONMENT_DEFAULTS | _PORTS | dict(os.environ)
        for name in _PORTS:
            _check_port(name, environment[name])
        call_command("migrate", verbosity=0)
        environment["FLOWER_BASIC_AUTH"] = environment.get("FLOWER_BASIC_AUTH") or f"flower:{_flower_password()}"
        if not get_user_model().objects.exists():
            self._introduce()
        self._say_where(environment)
        self._run(environment)

    def _introduce(self) -> None:
        """Create the first workspace, admin and key, and show their secrets this once; the admin sees a demo, too."""
        now = timezone.now()
        workspace = Workspace.objects.filter(name=_FIRST_WORKSPACE).first()
        workspace = workspace or create_workspace(name=_FIRST_WORKSPACE, now=now)
        password = secrets.token_urlsafe(12)
        admin = get_user_model().objects.create_superuser(username=_FIRST_ADMIN, email="", password=password)
        for existing in Workspace.objects.all():
            Membership.objects.create(workspace=existing, user=admin, role=Role.OWNER)
        _, key = create_key(workspace=workspace, permissions=[Permission.OWNER], now=now, name="first key")
        self.stdout.write(self.style.SUCCESS("First start. These are shown once:"))
        self.stdout.write(
            f"  workspace  {workspace.name}\n  admin      {_FIRST_ADMIN} / {password}\n  API key    {key}"
        )

    def _say_where(self, environment: Mapping[str, str]) -> None:
        for line in describe_services():
            self.stdout.write(f"  {line}")
        self.stdout.write(f"  web        http://127.0.0.1:{environment['PORT']}/ (admin), /api/docs")
        self.stdout.write(
            f"  Flower     http://127.0.0.1:{environment['FLOWER_PORT']}/ ({environment['FLOWER_BASIC_AUTH']})"
        )
        self.stdout.write("Ctrl-C ends all of it.")
        self.stdout.flush()

    def _run(self, environment: Mapping[str, str]) -> None:
        """Run supervisord until it ends; whatever ends us ends it: SIGTERM, Ctrl-C, a terminal that closes."""
        configuration = write_configuration(procfile=settings.BASE_DIR / "Procfile", folder=settings.DATA_DIR)
        process = start_supervisor(configuration=configuration, environment=environment)
        for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(ending, lambda *_: process.terminate())
        status = process.wait()
        if status:
            raise CommandError(f"supervisord ended with status {status}.", returncode=1)


_ENVIRONMENT_DEFAULTS = {"TOKENIZERS_PARALLELISM": "false"}


def _check_alone() -> None:
    """Refuse to run a second stack on the same data."""
    noted = settings.DATA_DIR / PID_FILE
    if noted.exists() and psutil.pid_exists(int(noted.read_text())):
        process = psutil.Process(int(noted.read_text()))
        if "supervisord" in " ".join(process.cmdline()):
            message = f"The stack runs here already: supervisord, process {process.pid}. Ending it ends the stack."
            raise CommandError(message, returncode=1)


def _check_port(name: str, port: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except (OSError, ValueError, OverflowError) as error:
            raise CommandError(f"Port {port} cannot be used ({error}); set {name} to another.", returncode=1) from error


def _flower_password() -> str:
    """Make Flower's password once and keep it beside the data; its pages show task arguments to whoever enters."""
    path: Path = settings.DATA_DIR / "flower-password"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(12))
    return path.read_text()
