"""What Prometheus reads: /metrics, for this machine or for who has the token."""

import hmac

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from memory.api.problems import plain_problem
from memory.metrics import render_metrics

_LOOPBACK = {"127.0.0.1", "::1"}
TASKS = (
    "extract",
    "cluster",
    "synthesize",
    "classify",
    "apply",
    "gate",
    "restructure",
    "finish",
    "extract_turns",
    "remember",
    "sweep",
    "tick",
    "catch_up",
    "count_words",
    "keep_indexes",
    "link_memories",
    "maintain_memory",
)


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the metrics of all workspaces."""
    if not may_read(request):
        return plain_problem(status=403, detail="Metrics are for this machine, or for ENGRAM_METRICS_TOKEN.")
    rendered = render_metrics(tasks=[f"workers.{name}" for name in TASKS])
    return HttpResponse(rendered, content_type=CONTENT_TYPE_LATEST)


def may_read(request: HttpRequest) -> bool:
    """Tell whether the caller has the token; where none is set, whether it sits on this machine.

    Behind a proxy everybody seems to. A site that is reached by other names than this machine's own has one, or may
    have; so it needs the token.
    """
    if settings.ENGRAM_METRICS_TOKEN:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {settings.ENGRAM_METRICS_TOKEN}".encode())
    is_forwarded = settings.SECURE_PROXY_SSL_HEADER or {"X-Forwarded-For", "Forwarded", "Via"} & set(request.headers)
    return settings.IS_LOOPBACK and not is_forwarded and request.META.get("REMOTE_ADDR") in _LOOPBACK
