"""What the OpenAPI schema says beside the views: keys, problems, and the numbers that lists carry."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, inline_serializer
from rest_framework import serializers

from memory.access import NO_KEY, CallKind, RateLimited, missing_permission
from memory.api.problems import CONTENT_TYPE, problem
from memory.domain.category import Category
from memory.domain.conversation import Role
from memory.domain.edges import EdgeKind
from memory.domain.kinds import Kind
from memory.domain.knowledge import Knowledge, RecallMode
from memory.domain.lifecycle import BeliefStatus, ConsolidationState, CycleState, EpisodeStatus
from memory.domain.tiers import Tier
from memory.language.modes import Mode
from memory.models import FactType
from memory.models.fields import choices_of
from memory.recall.query import MemoryType, RecallProfile

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

MEMORY_NAME = OpenApiParameter(
    "memory_id",
    location=OpenApiParameter.PATH,
    description="`ep_…` or `bl_…`, or the beginning of such an id, of four digits at least, that no other memory has; "
    "for a key that may not read, a whole id. Or `tn_…`, whole, of a turn that waits to be read.",
)

_DETAILS = {
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

_EVERYWHERE = (401, 403, 429)
_WITH_RETRY_AFTER = ("429", "503")


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # registers itself when defined
    """A bearer key."""

    target_class = "memory.api.authentication.ApiKeyAuthentication"
    name = "ApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API key of the workspace."}


class ProblemSerializer(serializers.Serializer[Any]):
    """RFC 9457."""

    type = serializers.CharField(default="about:blank")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    errors = serializers.DictField(required=False, help_text="What is wrong, by field.")  # type: ignore[assignment]
    id = serializers.CharField(required=False, help_text="What stands in the way, such as the running cycle.")
    line = serializers.IntegerField(required=False, help_text="Of a file that is broken.")


def answers(ok: Mapping[Any, Any], *problems: int) -> dict[Any, Any]:
    """List a view's answers for the schema: the good ones, 401, 403 and 429, and the problems named."""
    return {**ok, **{(status, CONTENT_TYPE): ProblemSerializer for status in sorted({*_EVERYWHERE, *problems})}}


def problem_examples(*problems: int) -> list[OpenApiExample]:
    """Show each problem once."""
    return [
        OpenApiExample(
            f"problem {status}",
            value=problem(status=status, detail=_DETAILS[status]),
            response_only=True,
            status_codes=[str(status)],
            media_type=CONTENT_TYPE,
        )
        for status in sorted({*_EVERYWHERE, *problems})
    ]


def documented(ok: Mapping[Any, Any], *problems: int, **more: Any) -> dict[str, Any]:
    """Build the arguments of `extend_schema` that every view shares."""
    examples = [*more.pop("examples", ()), *problem_examples(*problems)]
    return {"responses": answers(ok, *problems), "examples": examples, **more}


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
            for status in _WITH_RETRY_AFTER:
                if status in operation["responses"]:
                    operation["responses"][status]["headers"] = {"Retry-After": header}
    return result
