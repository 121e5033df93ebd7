"""What all answers share: problems as RFC 9457 has them, rounded numbers, and how the OpenAPI schema says so."""

import math
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views import defaults
from drf_spectacular.contrib.pydantic import PydanticExtension
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import ResolvedComponent, list_hash
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, inline_serializer
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotAuthenticated, ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from memory.access import NO_KEY, CallKind, RateLimited, missing_permission
from memory.domain.errors import EngramError
from memory.domain.graph import EdgeKind
from memory.domain.lifecycle import BeliefStatus, ConsolidationState, CycleState, EpisodeStatus
from memory.domain.taxonomy import Category, Kind, Knowledge, Mode, RecallMode, Role, Tier
from memory.language.explicit_requests import Signal
from memory.models import FactType
from memory.models.fields import OUTAGE_MESSAGE, OUTAGE_RETRY_SECONDS, choices_of, is_outage
from memory.recall.query import MemoryType, RecallProfile
from memory.redaction.redact import redact

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
API_PREFIX = "/api/"
_FOREIGN_HOST = "The Host that was asked for is none of those that this server answers to (ALLOWED_HOSTS)."
INTERNAL_ERROR = "Something went wrong on our side; it has been noted."


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
        body = problem(status=500, detail=INTERNAL_ERROR)
    body = without_secrets(body)
    from rest_framework.views import set_rollback  # views import this module through the settings

    set_rollback()
    return Response(body, status=body["status"], headers=_problem_headers(error), content_type=CONTENT_TYPE)


def _known_problem(error: Exception, named: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the body for an error that we know, None for one that we do not."""
    if isinstance(error, EngramError):
        return problem(status=error.status, detail=str(error), **error.members())
    if isinstance(error, Http404):
        return problem(status=404, detail=_not_found_detail(named))
    if isinstance(error, ValidationError):
        return problem(status=422, detail="The request is not valid.", errors=error.detail)
    if is_outage(error):
        log.warning("api.database_away", error=str(error))
        return problem(status=503, detail=OUTAGE_MESSAGE)
    if isinstance(error, NotAuthenticated):
        return problem(status=error.status_code, detail=NO_KEY)
    if isinstance(error, APIException):
        return problem(status=error.status_code, detail=str(error.detail))
    return None


_NOUN_OF_ARGUMENT = {
    "belief_id": "belief",
    "memory_id": "memory",
    "cycle_id": "consolidation",
    "pair_id": "pair of beliefs",
}


def _not_found_detail(named: Mapping[str, Any]) -> str:
    """Say of what an address names that it is not there, or not for the caller to see: which of the two is unsaid."""
    found = next(
        ((_NOUN_OF_ARGUMENT[name], key) for name, key in named.items() if name in _NOUN_OF_ARGUMENT), ("such", "thing")
    )
    return f"There is no {' '.join(map(str, found))} that this key may see."


def without_secrets(told: Any) -> Any:
    """Return what a problem tells, without secrets: it may repeat what was sent (L2)."""
    if isinstance(told, str):
        return redact(told).text
    if isinstance(told, Mapping):
        return {without_secrets(name): without_secrets(item) for name, item in told.items()}
    return [without_secrets(item) for item in told] if isinstance(told, list) else told


def _problem_headers(error: Exception) -> dict[str, str]:
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
        return plain_problem(status=500, detail=INTERNAL_ERROR)
    return defaults.server_error(request)


_LENGTH_REQUIRED = "The body came in chunks, which is not read here: send it with a Content-Length."


def require_length(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse calls of the API with 411 whose body has no length (a middleware)."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        has_length = "HTTP_TRANSFER_ENCODING" not in request.META or request.META.get("CONTENT_LENGTH")
        if has_length or not request.path.startswith(API_PREFIX):
            return get_response(request)
        return JsonResponse(problem(status=411, detail=_LENGTH_REQUIRED), status=411, content_type=CONTENT_TYPE)

    return answer


# Closed sets that stand in several places of the schema, named there once.
BELIEF_STATUSES = choices_of(BeliefStatus)
EPISODE_STATUSES = choices_of(EpisodeStatus)
EPISODE_STATES = choices_of(ConsolidationState)
CYCLE_STATES = choices_of(CycleState)
MEMORY_TYPES = choices_of(MemoryType)
KNOWLEDGE = choices_of(Knowledge)
KINDS = choices_of(Kind)
FACT_TYPES = FactType.choices
CATEGORIES = choices_of(Category)
RECALL_MODES = choices_of(RecallMode)
RECALL_PROFILES = choices_of(RecallProfile)
EDGE_KINDS = choices_of(EdgeKind)
ROLES = choices_of(Role)
CLAIM_MODES = choices_of(Mode)
TIERS = choices_of(Tier)
SIGNALS = choices_of(Signal)

MEMORY_NAME = OpenApiParameter(
    "memory_id",
    location=OpenApiParameter.PATH,
    description="`ep_…` or `bl_…`, or the beginning of such an id, of four digits at least, that no other memory has; "
    "for a key that may not read, a whole id. Or `tn_…`, whole, of a turn that waits to be read.",
)

_EXAMPLE_DETAILS = {
    400: "The body is not JSON.",
    401: NO_KEY,
    403: missing_permission("curate"),
    404: "There is no belief bl_3f9a1c0b77de that this key may see.",
    409: "What is there stands in the way, such as a running cycle.",
    413: "The body is too large.",
    415: 'Unsupported media type "text/plain" in request.',
    422: "The request is not valid.",
    429: str(RateLimited(usage=CallKind.RECALL, wait=2.0)),
    503: "The embedding model does not answer; try again after the time in Retry-After.",
}
_ON_EVERY_ROUTE = (401, 403, 429)
_STATUSES_WITH_RETRY_AFTER = ("429", "503")


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself when defined
    """A bearer key."""

    target_class = "memory.api.requests.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key of the workspace."}


class IgnoreAcceptHeader(DefaultContentNegotiation):
    """Take callers for content with what they get: text is sent past all renderers, problems are JSON."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class AnswerRenderer(JSONRenderer):
    """Render an answer straight from its model, and all else as the framework does."""

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        if isinstance(data, BaseModel):
            return data.model_dump_json(exclude_defaults=True).encode()
        return super().render(data, accepted_media_type, renderer_context)


class AnswerSchema(GenerateJsonSchema):
    """Describes an answer as HTTP sends it: what is None by default is left out, never null."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        inner = schema["schema"]
        if inner["type"] == "nullable" and schema.get("default", ...) is None:
            return self.generate_inner(inner["schema"])
        return super().default_schema(schema)

    def float_schema(self, schema: core_schema.FloatSchema) -> dict[str, Any]:
        return super().float_schema(schema) | {"format": "double"}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> dict[str, Any]:
        """Describe a set of one as a set, too."""
        described = super().literal_schema(schema)
        if isinstance(described.get("const"), str):
            described["enum"] = [described.pop("const")]
        return described

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class AnswerExtension(PydanticExtension):  # type: ignore[no-untyped-call]  # registers itself when defined
    """Answers in the schema; the hook for closed sets finds these where they stand, and names them."""

    target_class = "memory.answers.base.Answer"
    match_subclasses = True
    priority = 1

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        schema = self.target.model_json_schema(
            ref_template="#/components/schemas/{model}", mode="serialization", schema_generator=AnswerSchema
        )
        parts: dict[str, Any] = schema.pop("$defs", {})
        closed_sets = {name: part for name, part in parts.items() if "enum" in part}
        for name in parts.keys() - closed_sets.keys():
            part = _with_closed_sets(_untitled(parts[name]), closed_sets)
            auto_schema.registry.register_on_missing(_component(name, part))
        described: dict[str, Any] = _with_closed_sets(_untitled(schema), closed_sets)
        return described


def _component(name: str, schema: dict[str, Any]) -> ResolvedComponent:
    return ResolvedComponent(name=name, type=ResolvedComponent.SCHEMA, object=name, schema=schema)  # type: ignore[no-untyped-call]


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    rest = {name: item for name, item in schema.items() if name != "title"}
    return rest | {"required": sorted(rest.get("required", ()))}


def _with_closed_sets(schema: Any, closed_sets: Mapping[str, Any]) -> Any:
    """Put each closed set in the place that refers to it; one that may be null has null among its values."""
    if isinstance(schema, list):
        return [_with_closed_sets(item, closed_sets) for item in schema]
    if not isinstance(schema, dict):
        return schema
    put = {name: _with_closed_sets(item, closed_sets) for name, item in schema.items()}
    if (named := str(put.get("$ref", "")).rpartition("/")[2]) in closed_sets:
        values = closed_sets[named]["enum"]
        named_values = list_hash([(value, value.lower().replace("_", " ")) for value in values])
        put = {"type": "string", "enum": values, "x-spec-enum-id": named_values} | put
        del put["$ref"]
    match put.get("anyOf"):
        case [{"type": str(kind), **rest}, {"type": "null"}]:
            del put["anyOf"]
            put = {**rest, **put, "type": [kind, "null"]}
            if "enum" in put:
                put["enum"] = [*put["enum"], None]
    return put


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457."""

    type = serializers.CharField(default="about:blank")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = serializers.DictField(required=False, help_text="What is wrong, by field.")  # type: ignore[assignment]
    id = serializers.CharField(required=False, help_text="What stands in the way, such as the running cycle.")
    line = serializers.IntegerField(required=False, help_text="Of a file that is broken.")


def with_problems(ok: Mapping[Any, Any], *problems: int) -> dict[Any, Any]:
    """List a view's answers for the schema: the good ones, 401, 403 and 429, and the problems named."""
    return {**ok, **{(status, CONTENT_TYPE): ProblemSerializer for status in sorted({*_ON_EVERY_ROUTE, *problems})}}


def problem_examples(*problems: int) -> list[OpenApiExample]:
    """Show each problem once."""
    return [
        OpenApiExample(
            f"problem {status}",
            value=problem(status=status, detail=_EXAMPLE_DETAILS[status]),
            response_only=True,
            status_codes=[str(status)],
            media_type=CONTENT_TYPE,
        )
        for status in sorted({*_ON_EVERY_ROUTE, *problems})
    ]


def documented(ok: Mapping[Any, Any], *problems: int, **more: Any) -> dict[str, Any]:
    """Build the arguments of `extend_schema` that every view shares."""
    examples = [*more.pop("examples", ()), *problem_examples(*problems)]
    return {"responses": with_problems(ok, *problems), "examples": examples, **more}


def page_schema(name: str, item: type[serializers.BaseSerializer[Any]]) -> serializers.Serializer[Any]:
    """Describe a cursor page of `item`."""
    return inline_serializer(
        name, {"results": item(many=True), "next": serializers.URLField(allow_null=True, help_text="The next page.")}
    )


def declare_retry_after(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Declare in the schema which answers say when to come back."""
    header = {"description": "Seconds after which to try again.", "schema": {"type": "integer"}}
    for operations in result["paths"].values():
        for operation in operations.values():
            for status in _STATUSES_WITH_RETRY_AFTER:
                if status in operation["responses"]:
                    operation["responses"][status]["headers"] = {"Retry-After": header}
    return result


_SHOWN_DIGITS = 4


class RoundedField(serializers.FloatField):
    """A number as people read it: further digits say nothing."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), _SHOWN_DIGITS)
