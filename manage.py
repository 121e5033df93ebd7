#!/usr/bin/env python
"""Run a management command, with the embedded services up where the command needs them."""

import os
import signal
import sys

NEEDS_NO_SERVICES = {"help", "check", "makemigrations", "collectstatic", "--help", "spectacular"}


def main() -> None:
    if sys.argv[1:] in (["--version"], ["version"]):
        from memory import VERSION  # ours: Django would tell its own

        sys.stdout.write(f"{VERSION}\n")
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
    # Ending by SystemExit lets the last user of an embedded server stop it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        bool(settings.DEBUG)  # reads all of them
        if len(sys.argv) > 1 and not NEEDS_NO_SERVICES & set(sys.argv[1:]):
            _start_services()
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Engram: {error}")


def _start_services() -> None:
    from beliefsite.embedded_server import EmbeddedServiceError
    from beliefsite.services import ServiceUnusable, ensure_services

    try:
        ensure_services()
    except (EmbeddedServiceError, ServiceUnusable) as error:
        sys.exit(f"Engram: {error}")


if __name__ == "__main__":
    main()
