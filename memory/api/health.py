"""Probes: is the process alive, and can it do its work."""

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse

from memory.api.problems import plain_problem


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process lives."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Answer whether the database can be reached."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Exception:  # noqa: BLE001  (whatever is wrong, the answer is "not ready")
        return plain_problem(status=503, detail="The database does not answer.")
    return JsonResponse({"status": "ok"})
