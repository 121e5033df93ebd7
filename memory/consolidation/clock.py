"""The database's clock, as expressions: leases and deadlines must not depend on any worker's own."""

from datetime import timedelta
from typing import Any

from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.functions import Now


def database_now(*, plus: float = 0.0) -> ExpressionWrapper[Any]:
    """Name the moment `plus` seconds from now, by the database's clock."""
    return ExpressionWrapper(Now() + Value(timedelta(seconds=plus)), output_field=DateTimeField())
