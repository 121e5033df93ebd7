"""GET /export and POST /import: a workspace's memory as JSON Lines, out of one database and into another (R14)."""

from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.api.authentication import holder_of
from memory.api.parsers import BodyTooLarge
from memory.api.requests import StrictSerializer, name_field, read_query
from memory.api.schema import documented
from memory.export.exporter import ExportBlock, export_workspace
from memory.export.file_format import BrokenFile
from memory.export.importer import import_workspace
from memory.models import Permission

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


class AnyAccept(DefaultContentNegotiation):
    """Take callers for content with what they get: JSON Lines are streamed past all renderers, problems are JSON."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


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
    content_negotiation_class = AnyAccept

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
        response = StreamingHttpResponse(_data_of(first, blocks), content_type=JSON_LINES)
        response.headers["Content-Disposition"] = 'attachment; filename="engram.jsonl"'
        return response


def _data_of(first: ExportBlock, blocks: Iterator[ExportBlock]) -> Iterator[bytes]:
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
