"""The benchmark of taking episodes in: who is acknowledged is found, and it would show if somebody was not."""

import http.client
from typing import Any

import pytest

from benchmarks.bars import Bar
from benchmarks.ingest import CLIENTS, find_kept, lines_of, post, put_under_load, run_at_once
from benchmarks.memories import draw
from benchmarks.recall_stage import Poster
from memory.models import Permission, Workspace
from tests import factories

LINE = {"text": "Mara likes tea.", "speaker": "Mara", "session": "s"}


def kept(workspace: Workspace, **acknowledged: str) -> list[tuple[float, bool]]:
    bars: list[Bar] = find_kept(workspace_id=workspace.pk, acknowledged=acknowledged)
    return [(bar.value, bar.is_met) for bar in bars]


class Falling(Poster):
    """A connection that breaks so many times before it answers."""

    def __init__(self, *errors: Exception, status: int = 201) -> None:
        self.errors, self.status, self.hung_up = list(errors), status, 0

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        if self.errors:
            raise self.errors.pop()
        return self.status, {"episodes": [{"id": "ep_000000000001"}]} if self.status == 201 else {"title": "no"}

    def close(self) -> None:
        self.hung_up += 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("size", [1, 3])
def test_every_line_of_every_client_is_stored_under_the_id_that_was_told(live_server: Any, size: int) -> None:
    workspace = factories.workspace()
    _, key = factories.key(Permission.WRITE, workspace=workspace)
    load = put_under_load(
        port=live_server.thread.port, key=key, drawn=draw(count=40), size=size, seconds=0.2, name="short"
    )

    assert load.rate > 0
    assert load.refused == 0
    assert len(load.acknowledged) >= CLIENTS * size
    assert kept(workspace, **load.acknowledged) == [(0, True), (0, True)]


@pytest.mark.django_db
def test_what_is_lost_and_what_is_there_twice_shows() -> None:
    workspace = factories.workspace()
    there = factories.episode(text="Mara likes tea.", workspace=workspace)
    factories.episode(text="Mara likes tea.", workspace=workspace)

    assert kept(workspace, **{"Mara likes tea.": there.pk}) == [(0, True), (1, False)]
    assert kept(workspace, **{"Mara likes tea.": "ep_000000000000", "gone": there.pk})[0] == (2, False)


def test_no_line_is_like_another() -> None:
    drawn = draw(count=10)
    clients = [lines_of(drawn=drawn, client=client, name="x") for client in (0, 1)]

    assert len({next(lines)["text"] for lines in clients for _ in range(30)}) == 60


def test_a_request_without_an_answer_is_sent_again() -> None:
    poster = Falling(ConnectionResetError(), http.client.RemoteDisconnected(""))

    assert post(poster, [LINE]) == ([{"id": "ep_000000000001"}], 2)
    assert poster.hung_up == 2


def test_a_refusal_acknowledges_nothing() -> None:
    assert post(Falling(status=503), [LINE, LINE]) == ([{}, {}], 0)


def test_what_a_client_raises_is_heard_of() -> None:
    def work(client: int) -> None:
        if client == 1:
            raise LookupError

    with pytest.raises(LookupError):
        run_at_once(work, clients=2)
