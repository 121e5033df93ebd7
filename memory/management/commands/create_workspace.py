"""Create a workspace."""

import shlex
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandParser
from django.db import transaction
from django.utils import timezone

from memory.access import create_workspace
from memory.management.command_line import ServiceCommand, fail_on_invalid, usage_error
from memory.models import Membership, Role


class Command(ServiceCommand):
    help = "Create a workspace: a tenant with memories of its own."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--owner", metavar="USER", help="who signs in to the admin and owns it; else nobody sees it"
        )

    @transaction.atomic
    def handle(self, *, name: str, owner: str | None, **options: Any) -> None:
        person = _person(owner) if owner is not None else None
        with fail_on_invalid():
            workspace = create_workspace(name=name, now=timezone.now())
        if person:
            Membership.objects.create(workspace=workspace, user=person, role=Role.OWNER)
        self.stdout.write(f"Created workspace {workspace.name}{f', owned by {owner}' if person else ''}.")


def _person(name: str) -> Any:
    person = get_user_model().objects.filter(username=name, is_active=True, is_staff=True).first()
    if person is None:
        raise usage_error(
            f"--owner: nobody named {name!r} can sign in to the admin. "
            f"`manage.py createsuperuser --username {shlex.quote(name)}` makes such an account."
        )
    return person
