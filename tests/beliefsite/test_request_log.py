"""The log of requests: whose address it names."""

from typing import Any

import pytest
import structlog
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory, override_settings

from beliefsite.observability import RequestLog


@pytest.mark.parametrize(
    ("is_behind_proxy", "told", "address"),
    [
        (False, "198.51.100.7", "127.0.0.1"),
        (True, "198.51.100.7", "198.51.100.7"),
        (True, "203.0.113.9, 198.51.100.7", "198.51.100.7"),  # the first is what the caller said of itself
        (True, "", "127.0.0.1"),
    ],
)
def test_only_behind_a_proxy_a_header_names_the_caller(is_behind_proxy: bool, told: str, address: str) -> None:
    bound: list[dict[str, Any]] = []

    def answer(_: object) -> HttpResponse:
        bound.append(structlog.contextvars.get_contextvars())
        return HttpResponse()

    with override_settings(ENGRAM_BEHIND_PROXY=is_behind_proxy):
        RequestLog(answer)(RequestFactory().get("/healthz", headers={"X-Forwarded-For": told}))
    assert [one["ip"] for one in bound] == [address]


@pytest.mark.django_db
def test_who_is_logged_in_is_named(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    user = User.objects.create_superuser("ada")
    for person in (None, user):
        if person:
            client.force_login(person)
        client.get("/admin/", headers={"Host": "127.0.0.1"})
    ended = [record.msg for record in caplog.records if "request_finished" in str(record.msg)]
    assert [line.get("user_id") for line in ended] == [None, user.pk]  # type: ignore[union-attr]


@pytest.mark.django_db
def test_who_logs_in_is_named_by_that_very_request(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    user = User.objects.create_superuser("ada", password="a long enough one")
    said = {"username": "ada", "password": "a long enough one", "next": "/admin/"}
    assert client.post("/admin/login/", said, headers={"Host": "127.0.0.1"}).status_code == 302
    ended = [record.msg for record in caplog.records if "request_finished" in str(record.msg)]
    assert [line.get("user_id") for line in ended] == [user.pk]  # type: ignore[union-attr]
