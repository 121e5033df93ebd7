"""The log of requests: whose address it names."""

from typing import Any

import pytest
import structlog
from django.http import HttpResponse
from django.test import RequestFactory, override_settings

from beliefsite.request_log import RequestLog


@pytest.mark.parametrize(("is_behind_proxy", "address"), [(False, "127.0.0.1"), (True, "198.51.100.7")])
def test_only_behind_a_proxy_a_header_names_the_caller(is_behind_proxy: bool, address: str) -> None:
    bound: list[dict[str, Any]] = []

    def answer(_: object) -> HttpResponse:
        bound.append(structlog.contextvars.get_contextvars())
        return HttpResponse()

    with override_settings(ENGRAM_BEHIND_PROXY=is_behind_proxy):
        RequestLog(answer)(RequestFactory().get("/healthz", headers={"X-Forwarded-For": "198.51.100.7"}))
    assert [one["ip"] for one in bound] == [address]
