"""OpenTelemetry traces: requests, tasks, queries and model calls, where an address to send them to is set.

The packages are an extra (requirements-otel.txt). None of them is imported unless traces are wanted.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = structlog.get_logger(__name__)

_is_tracing = False


def start_tracing(*, process: str) -> None:
    """Export spans of this process; do nothing where OTEL_EXPORTER_OTLP_ENDPOINT is not set.

    The other variables of OpenTelemetry count as they do elsewhere (OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER, …).
    """
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.error("tracing_unavailable", missing=error.name, install="requirements-otel.txt")
        return
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": f"engram-{process}"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace_with(provider)


def trace_with(provider: "TracerProvider") -> None:
    """Let the libraries that do the work make spans. Statements are recorded without their values."""
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.instrumentation.django import DjangoInstrumentor
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
    from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor

    global _is_tracing
    for instrumentor in (DjangoInstrumentor, CeleryInstrumentor, PsycopgInstrumentor, HTTPXClientInstrumentor):
        instrumentor().instrument(tracer_provider=provider)
    _is_tracing = True


def describe_span(fields: Mapping[str, str | int]) -> None:
    """Note on the span that is under way what it is about: cycle, workspace, job."""
    if _is_tracing:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes({f"engram.{name}": value for name, value in fields.items()})
