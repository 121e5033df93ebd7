"""The application as workers see it whose models choke on some texts (`celery -A benchmarks.poisoned`)."""

from beliefsite.celery import app
from benchmarks.choking import spoil_models

__all__ = ["app"]

spoil_models()
