"""Errors as application/problem+json (RFC 9457): one table from exception to status code."""

from http import HTTPStatus
from typing import Any

from django.http import Http404, JsonResponse
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response

CONTENT_TYPE = "application/problem+json"


def problem(*, status: int, detail: str, **members: Any) -> dict[str, Any]:
    """Build the body of a problem; extra members stand beside the standard ones."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **members,
    }


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """Translate an exception of a view; an unknown one goes on to become a 500 without a trace."""
    if isinstance(error, Http404):
        body = problem(status=404, detail="There is no such thing here.")
    elif isinstance(error, ValidationError):
        body = problem(status=422, detail="The request is not valid.", errors=error.detail)
    elif isinstance(error, APIException):
        body = problem(status=error.status_code, detail=str(error.detail))
    else:
        return None
    from rest_framework.views import set_rollback  # views import this module through the settings

    set_rollback()
    challenge = getattr(error, "auth_header", None)
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def plain_problem(*, status: int, detail: str) -> JsonResponse:
    """Answer outside the framework: probes and last-resort handlers."""
    return JsonResponse(problem(status=status, detail=detail), status=status, content_type=CONTENT_TYPE)
