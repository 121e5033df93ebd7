"""The site: settings, addresses, the Celery application and the embedded services."""

from beliefsite.celery import app as celery_app

__all__ = ["celery_app"]
