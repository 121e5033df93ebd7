"""POST /recall, /recollections and /context, GET /memory.md; and what is done only after their answer was sent."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import find_project, visible_beliefs
from memory.answers.recall import Recalled, Recollection
from memory.api.requests import (
    MomentField,
    StrictSerializer,
    as_of_field,
    name_field,
    query_field,
    read_body,
    read_query,
    viewer_from,
)
from memory.api.responses import (
    MEMORY_TYPES,
    RECALL_MODES,
    RECALL_PROFILES,
    IgnoreAcceptHeader,
    documented,
)
from memory.domain.taxonomy import RecallMode
from memory.models import Permission
from memory.publishing.publish import render_section
from memory.recall.prompt_lines import gather_context, recollect
from memory.recall.query import LINKS_ARE_OF_NOW, WRONG_ORDER, MemoryType, RecallProfile, RecallQuery, RecallScope
from memory.recall.recall import recall

log = structlog.get_logger(__name__)
MARKDOWN = "text/markdown"

_NEAREST_ARE_ANSWERED = (
    "As long as there are memories, the best `limit` of them are the answer, however little they have to do with the "
    "query; `relevant` says of each whether it stands out. Scores order them and compare with no other query's."
)


class ScopeRequest(StrictSerializer):
    """What is on somebody's mind, and whose memories are to be looked through."""

    query = query_field()
    project = name_field(allow_null=True, help_text="Slug: that project's memories and those of none.")
    user = name_field(allow_null=True, allow_blank=True, help_text="That user's memories and those of nobody.")
    session = name_field(
        allow_null=True,
        allow_blank=True,
        help_text="The conversation that asks. It narrows nothing; what it is shown is remembered, so that its echo "
        "counts as no evidence.",
    )


class RecallRequest(ScopeRequest):
    """A question to the memory."""

    agent = name_field(allow_null=True, allow_blank=True, help_text="That agent's episodes and those of none.")
    limit = serializers.IntegerField(
        default=settings.POLICY.recall.limit, min_value=1, max_value=settings.POLICY.recall.max_limit
    )
    mode = serializers.ChoiceField(
        RECALL_MODES, default=RecallMode.FULL_CONTEXT.value, help_text="Which kinds of knowledge answer."
    )
    profile = serializers.ChoiceField(
        RECALL_PROFILES, default=RecallProfile.DEFAULT.value, help_text="How memories are scored."
    )
    types = serializers.ListField(
        child=serializers.ChoiceField(MEMORY_TYPES),
        allow_empty=False,
        default=tuple(MemoryType),  # type: ignore[arg-type]  # a list would be everybody's, to be changed by anybody
        error_messages={"not_a_list": "A list is expected."},
    )
    occurred_after = MomentField(
        required=False, help_text="What occurred from then on, and beliefs that rest on something that did."
    )
    occurred_before = MomentField(
        required=False, help_text="What occurred before then, and beliefs that rest on something that did."
    )
    as_of = as_of_field()
    include_expired = serializers.BooleanField(default=False, help_text="Also what is past its `valid_until`.")
    graph = serializers.BooleanField(
        default=False,
        help_text="Follow links between episodes, too: names they share, neighbours in time, causes. Not with `as_of`: "
        "how links stood is not kept.",
    )
    explain = serializers.BooleanField(
        default=False, help_text="With every number that led to the answer, and what fell short; counts as no access."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        after, before = attrs.get("occurred_after"), attrs.get("occurred_before")
        if after and before and not after < before:
            raise serializers.ValidationError({"occurred_before": [WRONG_ORDER]})
        if attrs["graph"] and attrs.get("as_of"):
            raise serializers.ValidationError({"graph": [LINKS_ARE_OF_NOW]})
        return attrs


class RecollectionRequest(ScopeRequest):
    """What a conversation is about."""

    max_tokens = serializers.IntegerField(
        default=settings.POLICY.recollection.tokens,
        min_value=1,
        max_value=settings.POLICY.recollection.max_tokens,
        help_text="Most tokens of the text.",
    )


class ContextRequest(ScopeRequest):
    """What a task is about."""

    max_tokens = serializers.IntegerField(
        default=settings.POLICY.context.tokens,
        min_value=1,
        max_value=settings.POLICY.context.max_tokens,
        help_text="Most tokens of the text.",
    )


class RecallView(APIView):
    """What comes to mind for a query."""

    permission_for = {"POST": Permission.READ}

    @extend_schema(
        operation_id="recall",
        summary="Recall episodes and beliefs",
        description=_NEAREST_ARE_ANSWERED,
        request=RecallRequest,
        **documented(
            {200: Recalled}, 400, 404, 413, 415, 422,
            examples=[
                OpenApiExample("question", value={"query": "tabs or spaces?", "limit": 3}, request_only=True),
                OpenApiExample(
                    "rules, as they stood",
                    value={
                        "query": "how do we deploy?",
                        "project": "compiler",
                        "mode": "facts_plus_rules",
                        "as_of": "2026-03-01T00:00:00Z",
                    },
                    request_only=True,
                ),
                OpenApiExample(
                    "memories",
                    value={
                        "results": [
                            {
                                "type": "belief",
                                "id": "bl_0c4e1f6a92d3",
                                "text": "Mara prefers tabs over spaces.",
                                "knowledge": "fact",
                                "score": 0.71,
                                "relevant": True,
                                "confidence": 0.86,
                            }
                        ],
                        "degraded": [],
                    },
                    response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked = read_body(RecallRequest, request)
        recalled = recall(
            scope=_scope(request, asked),
            question=_question(asked),
            now=timezone.now(),
            later=run_after_response,
        )
        return AnswerResponse(Recalled.of(recalled))


class RecollectionView(APIView):
    """What comes up by itself, to be put before a conversation."""

    permission_for = {"POST": Permission.READ}

    @extend_schema(
        operation_id="recollect",
        summary="Recall a few memories as a text for a prompt",
        request=RecollectionRequest,
        **documented(
            {200: Recollection}, 400, 404, 413, 415, 422,
            examples=[
                OpenApiExample(
                    "conversation", value={"query": "Mara wants to format the code", "session": "s-31"},
                    request_only=True,
                ),
                OpenApiExample(
                    "recollection",
                    value={
                        "text": "[Memory flash: Mara: I set the editor to tabs again.]\n"
                        "[Belief (0.86): Mara prefers tabs over spaces.]",
                        "ids": ["ep_3f9a1c0b77de", "bl_0c4e1f6a92d3"],
                    },
                    response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked = read_body(RecollectionRequest, request)
        recollection = recollect(
            scope=_scope(request, asked),
            query=asked["query"],
            session=asked.get("session") or "",
            max_tokens=asked["max_tokens"],
            now=timezone.now(),
        )
        return Response(Recollection.model_validate(recollection))


class ContextView(APIView):
    """What bears on a task, to be put before it."""

    permission_for = {"POST": Permission.READ}

    @extend_schema(
        operation_id="context",
        summary="Recall beliefs, and what is near, as a text for a prompt",
        request=ContextRequest,
        **documented(
            {200: Recollection}, 400, 404, 413, 415, 422,
            examples=[
                OpenApiExample(
                    "task", value={"query": "format the compiler's code", "project": "compiler", "max_tokens": 800},
                    request_only=True,
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        asked = read_body(ContextRequest, request)
        context = gather_context(
            scope=_scope(request, asked),
            query=asked["query"],
            session=asked.get("session") or "",
            max_tokens=asked["max_tokens"],
            now=timezone.now(),
        )
        return Response(Recollection.model_validate(context))


class MemoryMdQuery(StrictSerializer):
    """Whose file it is."""

    user = name_field(allow_blank=True, help_text="Its beliefs and those of no user; without, the latter alone.")


_SECTION = documented({(200, MARKDOWN): OpenApiTypes.STR}, 404, 422) | {
    "summary": "Render the most trusted beliefs for an agent's MEMORY.md",
    "description": (
        "The section that a file of this scope has, or would have, between its markers; nothing where nothing is "
        "trusted. An `ETag` goes along: sent back as `If-None-Match`, it gets a 304 while nothing changed."
    ),
    "parameters": [MemoryMdQuery],
}


class MemoryMdView(APIView):
    """The most trusted beliefs of no project, as a section of an agent's MEMORY.md."""

    permission_for = {"GET": Permission.READ}
    content_negotiation_class = IgnoreAcceptHeader

    @extend_schema(operation_id="read_memory_md", **_SECTION)
    def get(self, request: Request) -> HttpResponseBase:
        return _answer_with_section(request, slug=None)


class ProjectMemoryMdView(APIView):
    """The most trusted beliefs of a project likewise."""

    permission_for = {"GET": Permission.READ}
    content_negotiation_class = IgnoreAcceptHeader

    @extend_schema(operation_id="read_project_memory_md", **_SECTION)
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        return _answer_with_section(request, slug=slug)


def _answer_with_section(request: Request, *, slug: str | None) -> HttpResponseBase:
    asked, viewer = read_query(MemoryMdQuery, request), viewer_from(request)
    section = render_section(
        beliefs=visible_beliefs(viewer=viewer),
        workspace=viewer.workspace,
        project=find_project(viewer=viewer, slug=slug),
        user=asked.get("user") or "",
        now=timezone.now(),
    )
    etag = quote_etag(hashlib.sha256(section.encode()).hexdigest()[:32])
    whole = HttpResponse(section, content_type=f"{MARKDOWN}; charset=utf-8", headers={"ETag": etag})
    answer: HttpResponseBase | None = get_conditional_response(request._request, etag=etag, response=whole)
    return answer or whole


def _scope(request: Request, asked: Mapping[str, Any]) -> RecallScope:
    viewer = viewer_from(request)
    project = find_project(viewer=viewer, slug=asked.get("project"))
    return RecallScope(
        viewer=viewer,
        project_id=project.pk if project else None,
        user=asked.get("user") or "",
        agent=asked.get("agent") or "",
    )


def _question(asked: Mapping[str, Any]) -> RecallQuery:
    return RecallQuery(
        query=asked["query"],
        limit=asked["limit"],
        types=[MemoryType(kind) for kind in asked["types"]],
        mode=RecallMode(asked["mode"]),
        profile=RecallProfile(asked["profile"]),
        occurred_from=asked.get("occurred_after"),
        occurred_before=asked.get("occurred_before"),
        as_of=asked.get("as_of"),
        with_expired=asked["include_expired"],
        is_explained=asked["explain"],
        follows_links=asked["graph"],
        session=asked.get("session") or "",
    )


class _Deferred(threading.local):
    """What waits for the answer that this thread makes."""

    def __init__(self) -> None:
        self.acts: list[Callable[[], None]] = []


_deferred = _Deferred()


def run_after_response(act: Callable[[], None]) -> None:
    """Do something once the `AnswerResponse` to the request in hand has been sent; what it raises is logged.

    Its log names that request, though what is bound to the log ends with the answer.
    """
    _deferred.acts.append(partial(copy_context().run, _run_logged, act))


class AnswerResponse(Response):
    """A response after which what waits for it is done, before Django looks after this thread's connections."""

    def close(self) -> None:
        _run_deferred()
        super().close()


def _run_deferred(**_: Any) -> None:
    acts, _deferred.acts = _deferred.acts, []
    for act in acts:
        act()


def _run_logged(act: Callable[[], None]) -> None:
    try:
        act()
    except Exception:
        log.exception("afterwards_failed")


# Where an error took the place of the answer, or its end was never told: nothing waits for another request.
request_finished.connect(_run_deferred)
request_started.connect(_run_deferred)
