"""Errors as application/problem+json (RFC 9457): one table from exception to status code."""

import math
import sys
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views import defaults
from rest_framework.exceptions import APIException, NotAuthenticated, ValidationError
from rest_framework.response import Response

from memory.access import NO_KEY, AmbiguousId, OutsideProjects, WholeIdRequired
from memory.api.requests import NoSuchProject, NothingThere
from memory.consolidation.by_hand import CannotTestify, NotOfOneScope, SaidAlready
from memory.consolidation.cancelling import CycleHasEnded
from memory.consolidation.cycle import BeliefsAreOff
from memory.consolidation.handmade import CannotStand
from memory.consolidation.held import NotUndone
from memory.consolidation.rebuild.service import CycleIsOpen
from memory.consolidation.undo import CannotBeUndone
from memory.domain.lifecycle import IllegalTransitionError
from memory.erasure.erase import TurnIsRead
from memory.export.file_format import BrokenFile
from memory.export.importer import IdTaken, WorkspaceNotEmpty
from memory.ingest.corrections import WasForgotten
from memory.ledger.beliefs import EmbeddingUnavailable
from memory.ledger.transactions import NotFound, WorkspaceBusy
from memory.models.fields import OUTAGE_MESSAGE, OUTAGE_RETRY_SECONDS, is_outage
from memory.recall.usage import NotACommitment
from memory.redaction.redact import redact

_CONFLICTS = (
    IllegalTransitionError, CycleHasEnded, CycleIsOpen, BeliefsAreOff, CannotBeUndone, NotUndone, NotOfOneScope,
    SaidAlready, NotACommitment, WorkspaceNotEmpty, IdTaken, WasForgotten, AmbiguousId, WorkspaceBusy,
    TurnIsRead,
)  # fmt: skip
# What services refuse of a body, by the field that it is about.
_INVALID: Mapping[type[Exception], str] = {CannotStand: "statement", CannotTestify: "evidence"}

CONTENT_TYPE = "application/problem+json"
API_PREFIX = "/api/"

_FOREIGN_HOST = "The Host that was asked for is none of those that this server answers to (ALLOWED_HOSTS)."
OUR_FAULT = "Something went wrong on our side; it has been noted."

log = structlog.get_logger(__name__)


def problem(*, status: int, detail: str, **members: Any) -> dict[str, Any]:
    """Build the body of a problem; extra members stand beside the standard ones."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **members,
    }


def problem_response(error: Exception, context: dict[str, Any]) -> Response:
    """Translate an exception of a view; an unknown one becomes a 500 without a trace, which goes to the log."""
    body = _known_problem(error, context.get("kwargs") or {})
    if body is None:
        log.error("api.failed", view=type(context.get("view")).__name__, exc_info=error)
        body = problem(status=500, detail=OUR_FAULT)
    body = without_secrets(body)
    from rest_framework.views import set_rollback  # views import this module through the settings

    set_rollback()
    return Response(body, status=body["status"], headers=_headers(error), content_type=CONTENT_TYPE)


def _known_problem(error: Exception, named: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the body for an error that we know, None for one that we do not."""
    if isinstance(error, NoSuchProject):
        return problem(status=404, detail=str(error), errors={"project": [str(error)]})
    if isinstance(error, (NothingThere, NotFound)):
        return problem(status=404, detail=str(error))
    if isinstance(error, Http404):
        return problem(status=404, detail=_missing(named))
    if isinstance(error, ValidationError):
        return problem(status=422, detail="The request is not valid.", errors=error.detail)
    if isinstance(error, _CONFLICTS):
        in_the_way = getattr(error, "id", None)
        return problem(status=409, detail=str(error), **({"id": in_the_way} if in_the_way else {}))
    if type(error) in _INVALID:
        return problem(status=422, detail=str(error), errors={_INVALID[type(error)]: [str(error)]})
    if isinstance(error, BrokenFile):
        return problem(status=422, detail=str(error), line=error.line)
    if isinstance(error, (OutsideProjects, WholeIdRequired)):
        return problem(status=403, detail=str(error))
    if isinstance(error, EmbeddingUnavailable):
        return problem(status=503, detail=str(error))
    if is_outage(error):
        log.warning("api.database_away", error=str(error))
        return problem(status=503, detail=OUTAGE_MESSAGE)
    if isinstance(error, NotAuthenticated):
        return problem(status=error.status_code, detail=NO_KEY)
    if isinstance(error, APIException):
        return problem(status=error.status_code, detail=str(error.detail))
    return None


_KINDS = {"belief_id": "belief", "memory_id": "memory", "cycle_id": "consolidation", "pair_id": "pair of beliefs"}


def _missing(named: Mapping[str, Any]) -> str:
    """Say of what an address names that it is not there, or not for the caller to see: which of the two is unsaid."""
    found = next(((_KINDS[name], key) for name, key in named.items() if name in _KINDS), ("such", "thing"))
    return f"There is no {' '.join(map(str, found))} that this key may see."


def without_secrets(told: Any) -> Any:
    """Return what a problem tells, without secrets: it may repeat what was sent (L2)."""
    if isinstance(told, str):
        return redact(told).text
    if isinstance(told, Mapping):
        return {without_secrets(name): without_secrets(item) for name, item in told.items()}
    return [without_secrets(item) for item in told] if isinstance(told, list) else told


def _headers(error: Exception) -> dict[str, str]:
    challenge = getattr(error, "auth_header", None)
    wait = OUTAGE_RETRY_SECONDS if is_outage(error) else getattr(error, "wait", None)
    headers = {"WWW-Authenticate": challenge, "Retry-After": str(math.ceil(wait)) if wait else None}
    return {name: value for name, value in headers.items() if value}


def plain_problem(*, status: int, detail: str, headers: Mapping[str, str] | None = None) -> JsonResponse:
    """Answer outside the framework: probes and last-resort handlers."""
    body = problem(status=status, detail=detail)
    return JsonResponse(body, status=status, headers=headers, content_type=CONTENT_TYPE)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer for a request that Django itself refuses, such as one for a foreign host."""
    if request.path.startswith(API_PREFIX):
        is_foreign = isinstance(exception, DisallowedHost)
        return plain_problem(status=400, detail=_FOREIGN_HOST if is_foreign else "The request is malformed.")
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer for a failure outside every view of the API."""
    is_api = request.path.startswith(API_PREFIX)
    if is_outage(sys.exception()):
        headers = {"Retry-After": str(OUTAGE_RETRY_SECONDS)}
        if is_api:
            return plain_problem(status=503, detail=OUTAGE_MESSAGE, headers=headers)
        return HttpResponse(OUTAGE_MESSAGE, status=503, headers=headers, content_type="text/plain")
    if is_api:
        return plain_problem(status=500, detail=OUR_FAULT)
    return defaults.server_error(request)
