"""The entry point of the process that serves the tools for agents over HTTP."""

import os

import django

from beliefsite.observability import start_tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
start_tracing(process="mcp")
django.setup()

from beliefsite.services import ensure_services  # noqa: E402  (settings must be configured first)
from memory.checks import refuse_unfit_limits  # noqa: E402
from memory.mcp.server import (  # noqa: E402
    POOL,
    HttpGuard,
    build_server,
    http_application,
)

refuse_unfit_limits()
ensure_services()
application = HttpGuard(inner=http_application(server=build_server()), pool=POOL)
