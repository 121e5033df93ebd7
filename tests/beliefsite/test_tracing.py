"""OpenTelemetry traces: off unless asked for, and then of requests, tasks, queries and calls."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.conf import settings as project
from django.db import connection
from django.test import Client
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from beliefsite import observability
from memory.models import Cycle, Trigger
from tests import factories
from tests.model_server import ModelServer
from workers import tasks


@pytest.fixture
def spans(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Trace into memory, and leave the libraries as they were."""
    monkeypatch.setattr(observability, "_is_tracing", False)
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    connection.close()  # one that is made from now on is traced
    observability.instrument(provider)
    yield exporter
    for instrumentor in (DjangoInstrumentor, CeleryInstrumentor, PsycopgInstrumentor, HTTPXClientInstrumentor):
        instrumentor().uninstrument()
    connection.close()


def _named(exporter: InMemorySpanExporter, start: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name.startswith(start)]


def test_a_request_and_its_queries_are_one_trace(spans: InMemorySpanExporter) -> None:
    Client().get("/readyz")
    [request] = _named(spans, "GET readyz")
    queries = _named(spans, "SELECT")
    assert queries
    assert {query.context.trace_id for query in queries} == {request.context.trace_id}


def test_a_statement_is_recorded_without_its_values(spans: InMemorySpanExporter) -> None:
    factories.workspace(name="a name that is nobody's business")
    [insert] = _named(spans, "INSERT")
    assert "business" not in str(dict(insert.attributes or {}))


def test_a_step_says_which_cycle_and_workspace_it_is_about(spans: InMemorySpanExporter) -> None:
    cycle = Cycle.objects.create(workspace=factories.workspace(), now=factories.NOW, trigger=Trigger.PERSON, attempt=2)
    tasks.extract.apply(args=(cycle.pk, 1))
    [step] = _named(spans, "run/workers.extract")
    attributes = dict(step.attributes or {})
    assert attributes["engram.cycle"] == cycle.pk
    assert attributes["engram.workspace"] == cycle.workspace_id


def test_a_call_to_a_model_server_is_a_span(spans: InMemorySpanExporter) -> None:
    with ModelServer() as server, httpx.Client() as client:
        client.get(f"{server.url}/models")
    assert [span.name for span in _named(spans, "GET")] == ["GET"]


def test_nothing_of_it_is_loaded_unless_it_is_asked_for(settings: Any) -> None:
    """The packages are an extra: a stack without them starts as it always did. (Redis's client loads some it finds.)"""
    program = "; ".join(
        [
            "import sys, beliefsite.wsgi, beliefsite.celery",
            "assert not [name for name in sys.modules if name.startswith('opentelemetry.instrumentation')]",
        ]
    )
    subprocess.run([sys.executable, "-c", program], cwd=project.BASE_DIR, check=True)


def test_an_address_without_the_packages_is_said_and_stops_nobody(
    settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:1"
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    observability.start_tracing(process="web")
    assert "tracing_unavailable" in caplog.text
