"""Addresses: the admin, the API with its schema, and what machines ask: probes and metrics."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from memory.api import operations, responses
from memory.api.urls import unknown_route
from workers.health import check_worker_seen, metrics

handler400 = responses.bad_request
handler500 = responses.server_error

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    re_path(r"^admin/r/", RedirectView.as_view()),  # gone: the admin's way to an object's page, and none has a page
    path("admin/", admin.site.urls),
    path("healthz", operations.healthz),
    path("readyz", operations.readyz, {"also": {"worker": check_worker_seen}}),
    path("metrics", metrics),
    path("api/v1/", include("memory.api.urls")),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    re_path(r"^api/", unknown_route),
]
