"""What a recall leaves to be done once its answer has been sent."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from django.core.handlers.base import BaseHandler
from django.core.signals import request_finished
from django.db import close_old_connections, connection
from django.http import HttpResponseBase
from django.test import RequestFactory

from memory.api.recall import AnswerResponse, _run_deferred, run_after_response
from memory.api.responses import AnswerRenderer
from memory.models import Episode, EpisodeAccess, ShownMemory, Workspace
from tests import factories
from tests.recall.memories import remembered

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def tea(workspace: Workspace) -> Episode:
    return remembered("Mara drinks tea.", workspace=workspace)


@pytest.fixture
def ask(workspace: Workspace) -> Callable[..., HttpResponseBase]:
    """Return what answers as a web server would, but for sending it: nothing is closed yet."""
    _, key = factories.key("read", "write", workspace=workspace)
    handler = BaseHandler()
    handler.load_middleware()

    def answer(**more: Any) -> HttpResponseBase:
        body = json.dumps({"query": "tea", **more})
        headers = {"Authorization": f"Bearer {key}", "Host": "127.0.0.1"}
        request = RequestFactory().post("/api/v1/recall", body, content_type="application/json", headers=headers)
        return handler.get_response(request)

    return answer


def counted() -> list[int]:
    return list(EpisodeAccess.objects.values_list("access_count", flat=True))


def test_an_answer_is_there_before_it_is_counted(tea: Episode, ask: Callable[..., HttpResponseBase]) -> None:
    """B5: and the transaction of the search ends with the count."""
    response = ask()
    assert tea.pk in response.content.decode()  # type: ignore[attr-defined]
    assert (counted(), connection.in_atomic_block) == ([], True)
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        assert cursor.fetchone() == ("10s",)  # a client that reads nothing keeps a transaction open no longer
    response.close()
    assert (counted(), connection.in_atomic_block) == ([1], False)


@pytest.mark.parametrize("more", [{"explain": True}, {"as_of": "2100-01-01T00:00:00Z"}])
def test_where_nothing_is_counted_nothing_is_left_open(
    more: dict[str, Any], tea: Episode, ask: Callable[..., HttpResponseBase]
) -> None:
    """B5."""
    ask(**more).close()
    ask(**more)
    assert (counted(), connection.in_atomic_block) == ([], False)


def test_where_nothing_is_found_nothing_is_left_open(ask: Callable[..., HttpResponseBase]) -> None:
    """B5."""
    assert json.loads(ask().content)["results"] == []  # type: ignore[attr-defined]
    assert not connection.in_atomic_block


def test_what_a_session_was_shown_is_known_before_it_can_go_on(
    tea: Episode, ask: Callable[..., HttpResponseBase]
) -> None:
    """Echo."""
    ask(session="s-1")
    assert list(ShownMemory.objects.values_list("session", "episode")) == [("s-1", tea.pk)]
    assert (counted(), connection.in_atomic_block) == ([1], False)


@pytest.mark.parametrize(("second", "shown"), [(close_old_connections, 2), (_run_deferred, 1)])
def test_an_error_in_the_place_of_the_answer_leaves_no_transaction_open(
    second: Callable[..., None],
    shown: int,
    tea: Episode,
    ask: Callable[..., HttpResponseBase],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Django drops the connection if it comes first, as it does in a web server: the count is lost with it."""

    def fail(*_: Any, **__: Any) -> bytes:
        raise ArithmeticError("cannot be rendered")

    with monkeypatch.context() as patched:
        patched.setattr(AnswerRenderer, "render", fail)
        failed = ask()
    assert (failed.status_code, connection.in_atomic_block) == (500, True)
    request_finished.disconnect(second)
    request_finished.connect(second)
    failed.close()
    assert not connection.in_atomic_block
    response = ask()
    response.close()
    assert (response.status_code, counted()) == (200, [shown])


def test_what_fails_holds_nothing_else_up() -> None:
    done: list[str] = []

    def fail() -> None:
        raise ArithmeticError

    for act in (fail, lambda: done.append("second")):
        run_after_response(act)
    AnswerResponse().close()
    AnswerResponse().close()
    assert done == ["second"]


def test_the_log_of_what_fails_names_the_request(caplog: pytest.LogCaptureFixture) -> None:
    """What is bound to the log ends with the answer, before anything is done."""

    def fail() -> None:
        raise ArithmeticError

    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        run_after_response(fail)
    AnswerResponse().close()
    assert [record.msg["request_id"] for record in caplog.records if "afterwards_failed" in str(record.msg)] == ["r-1"]  # type: ignore[index]


def test_each_thread_does_its_own() -> None:
    done: list[str] = []
    run_after_response(lambda: done.append("ours"))
    other = threading.Thread(target=lambda: AnswerResponse().close())
    other.start()
    other.join()
    assert not done
    AnswerResponse().close()
    assert done == ["ours"]
