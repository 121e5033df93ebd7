"""The web process's entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
application = get_wsgi_application()

from beliefsite.services import ensure_services  # noqa: E402  (settings must be configured first)

ensure_services()
