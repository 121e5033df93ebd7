"""Operating a workspace: GET /status, /export, POST /import, and the probes of its server."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import IO, Any

import redis
import structlog
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from redis.backoff import NoBackoff
from redis.retry import Retry
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.answers.status import Status
from memory.api.requests import (
    BodyTooLarge,
    EmptyRequest,
    StrictSerializer,
    holder_of,
    name_field,
    read_query,
    viewer_from,
)
from memory.api.responses import IgnoreAcceptHeader, documented, plain_problem
from memory.consolidation.schedule import SWEEP_HEARTBEAT
from memory.export.exporter import ExportBlock, export_workspace
from memory.export.file_format import BrokenFile
from memory.export.importer import import_workspace
from memory.models import Heartbeat, Permission
from memory.status import read_status

log = structlog.get_logger(__name__)


class StatusView(APIView):
    """How a memory stands."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(operation_id="read_status", summary="Count memories by status", **documented({200: Status}, 422))
    def get(self, request: Request) -> Response:
        read_query(EmptyRequest, request)
        status = read_status(viewer=viewer_from(request), now=timezone.now())
        return Response(Status.model_validate(status))


_BROKER_SECONDS = 2.0
_SWEEP_AGE = timedelta(minutes=3)
ReadinessCheck = Callable[[], None]


class NotSeenLately(Exception):
    """Something that must keep running has not been seen for too long."""


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process lives."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest, also: Mapping[str, ReadinessCheck] = MappingProxyType({})) -> HttpResponse:
    """Answer whether database and broker answer and a sweep was done lately; `also` names what the site adds."""
    checks = READINESS_CHECKS | dict(also)
    failed = [name for name, check in checks.items() if not _passes(name, check)]
    if failed:
        return plain_problem(status=503, detail=f"Not ready: {', '.join(failed)}.")
    return JsonResponse({"status": "ok"})


def open_broker() -> redis.Redis:
    """Open a client of the broker that does not wait for long, nor try twice."""
    url = settings.BROKER_URL.replace("redis+socket://", "unix://", 1)
    timeouts = {"socket_timeout": _BROKER_SECONDS, "socket_connect_timeout": _BROKER_SECONDS}
    client: redis.Redis = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **timeouts)
    return client


def _passes(name: str, check: ReadinessCheck) -> bool:
    try:
        check()
    except Exception as error:  # noqa: BLE001  (whatever is wrong, the answer is "not ready")
        log.warning("readiness.failed", check=name, error=str(error))
        return False
    return True


def _check_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _check_broker() -> None:
    with open_broker() as broker:
        broker.ping()


def _check_sweep() -> None:
    """Look for a recent sweep: beat must have asked for it and a worker must have done it."""
    if not Heartbeat.objects.filter(name=SWEEP_HEARTBEAT, seen_at__gt=Now() - _SWEEP_AGE).exists():
        raise NotSeenLately(f"no sweep within {_SWEEP_AGE}")


READINESS_CHECKS: dict[str, ReadinessCheck] = {
    "database": _check_database,
    "broker": _check_broker,
    "sweep": _check_sweep,
}
JSON_LINES = "application/x-ndjson"

_EXPORT_EXAMPLE = OpenApiExample(
    "The first lines",
    response_only=True,
    status_codes=["200"],
    media_type=JSON_LINES,
    value='{"engram":{"format":"engram-workspace","rows":{"project":1,…},"settings":{…},"version":1,…}}\n'
    '{"project":{"created_at":"2026-03-01T12:00:00.000000Z","path":"","slug":"mill"}}\n',
)

_IMPORT_EXAMPLE = OpenApiExample(
    "What was read",
    response_only=True,
    status_codes=["201"],
    value={
        "episodes": 120,
        "beliefs": 14,
        "cycles": 6,
        "evidence": 61,
        "rows": 900,
        "recomputed": 0,
        "with_secrets": 0,
    },
)


class ExportQuery(StrictSerializer):
    """Whose memory is exported."""

    user = name_field(help_text="One user's data alone, which cannot be imported as a workspace's memory.")


class ImportedSerializer(serializers.Serializer[Any]):
    """How much was read."""

    episodes = serializers.IntegerField()
    beliefs = serializers.IntegerField()
    cycles = serializers.IntegerField()
    evidence = serializers.IntegerField()
    rows = serializers.IntegerField(help_text="Of all kinds.")
    recomputed = serializers.IntegerField(help_text="Beliefs whose numbers did not follow from their evidence.")
    with_secrets = serializers.IntegerField(help_text="Memories that seem to hold secrets, read in as they were.")


class BoundedStream:
    """A body that is read line by line, and not beyond its greatest size."""

    def __init__(self, stream: IO[Any], *, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def readline(self, size: int) -> bytes:
        """Read a line, or as much of it as `size` allows; raise BodyTooLarge beyond the limit."""
        line: bytes = self._stream.readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise BodyTooLarge(f"The body is longer than {self._most} bytes; manage.py import_workspace takes any.")
        return line


class JsonLinesParser(BaseParser):
    """Give the body as it comes."""

    media_type = JSON_LINES

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return BoundedStream(stream, most=settings.POLICY.ingest.import_bytes)


class ExportView(APIView):
    """A workspace's memory on its way out."""

    permission_for = {"GET": Permission.OWNER}
    is_for_whole_workspace = True
    content_negotiation_class = IgnoreAcceptHeader

    @extend_schema(
        operation_id="export_workspace",
        summary="Export the workspace's memory, or one user's data, as JSON Lines",
        description=(
            "A header, then a line for each row, vectors included, as of one moment. Members, keys, caps and the "
            "workspace's name are no part of it. The same memory gives the same bytes. 409 while a cycle is open."
        ),
        parameters=[ExportQuery],
        **documented({(200, JSON_LINES): OpenApiTypes.STR}, 409, 422, examples=[_EXPORT_EXAMPLE]),
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        asked, holder = read_query(ExportQuery, request), holder_of(request)
        blocks = export_workspace(workspace=holder.workspace, user=asked.get("user"))
        first = next(blocks)  # what stands in the way is told before the answer begins
        response = StreamingHttpResponse(_stream_blocks(first, blocks), content_type=JSON_LINES)
        response.headers["Content-Disposition"] = 'attachment; filename="engram.jsonl"'
        return response


def _stream_blocks(first: ExportBlock, blocks: Iterator[ExportBlock]) -> Iterator[bytes]:
    yield first.data
    for block in blocks:
        yield block.data


class ImportView(APIView):
    """A workspace's memory on its way in."""

    permission_for = {"POST": Permission.OWNER}
    is_for_whole_workspace = True
    parser_classes = (JsonLinesParser,)

    @extend_schema(
        operation_id="import_workspace",
        summary="Import an exported memory into this workspace, which must have none",
        description=(
            "All of it, or nothing: a broken file changes nothing, and the problem names its line. Ids stay as they "
            "are, so that a memory cannot be in one database twice: 409. Numbers of beliefs that do not follow from "
            "their evidence are computed anew."
        ),
        request={JSON_LINES: OpenApiTypes.STR},
        **documented({201: ImportedSerializer}, 409, 413, 415, 422, examples=[_IMPORT_EXAMPLE]),
    )
    def post(self, request: Request) -> Response:
        holder = holder_of(request)
        stream = request.data
        if not isinstance(stream, BoundedStream):  # without a body no parser is asked
            raise BrokenFile(line=1, reason="the file is empty")
        done = import_workspace(workspace=holder.workspace, stream=stream, actor=holder.actor, now=timezone.now())
        return Response(done.counts, status=201)
