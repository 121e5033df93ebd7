"""The web process's entry point."""

import os

from django.core.wsgi import get_wsgi_application

from beliefsite.observability import start_tracing

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
start_tracing(process="web")  # before the middleware is loaded, since it adds its own
application = get_wsgi_application()

from beliefsite.services import ensure_services  # noqa: E402  (settings must be configured first)
from memory.checks import refuse_unfit_limits  # noqa: E402

refuse_unfit_limits()
ensure_services()
