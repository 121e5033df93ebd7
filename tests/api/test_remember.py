"""POST /remember."""

from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from memory.facts.remember import run_remember_job
from memory.models import Belief, Episode, RememberJob, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db

TABS = {"text": "Mara prefers tabs over spaces.", "user": "mara"}


@pytest.fixture(autouse=True)
def unheard(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let no message reach the suite's broker."""
    heard: list[int] = []
    monkeypatch.setattr("workers.tasks.remember.delay", heard.append)
    return heard


def work(workspace: Workspace) -> None:
    for one in RememberJob.objects.filter(workspace=workspace):
        run_remember_job(remembrance_id=one.pk, now=timezone.now())


def test_without_a_model_the_answer_says_queued(
    writer: Caller, unheard: list[int], django_capture_on_commit_callbacks: object
) -> None:
    """R1: the text is stored by then, and a worker is told."""
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        response = writer.post("/remember", TABS)
    assert response.status_code == 201
    episode = Episode.objects.get()
    assert response.json() == {"episode_id": episode.pk, "state": "queued", "beliefs": [], "deduplicated": False}
    assert (episode.text, episode.user) == (TABS["text"], "mara")
    assert unheard == [RememberJob.objects.get().pk]


def test_the_same_call_tells_how_far_it_has_come(workspace: Workspace, writer: Caller) -> None:
    """R1."""
    first = writer.post("/remember", TABS | {"idempotency_key": "k"}).json()
    work(workspace)
    again = writer.post("/remember", TABS | {"idempotency_key": "k"}).json()
    assert again == {
        "episode_id": first["episode_id"],
        "state": "done",
        "beliefs": [{"id": Belief.objects.get().pk, "action": "created"}],
        "deduplicated": True,
    }


def test_a_change_of_mind_names_both_beliefs(workspace: Workspace, writer: Caller) -> None:
    """R3."""
    writer.post("/remember", {"text": "I work at Nordbank.", "user": "mara"})
    work(workspace)
    old = Belief.objects.get()
    line = {"text": "I quit my job at Nordbank and started at a bakery.", "user": "mara"}
    writer.post("/remember", line)
    work(workspace)
    new = Belief.objects.exclude(pk=old.pk).get()
    assert writer.post("/remember", line).json()["beliefs"] == [
        {"id": new.pk, "action": "created"},
        {"id": old.pk, "action": "superseded"},
    ]


def test_forgotten_words_say_so(workspace: Workspace, writer: Caller) -> None:
    """R1, L4."""
    told = writer.post("/remember", TABS).json()["episode_id"]
    writer.request("DELETE", f"/memories/{told}")
    again = writer.post("/remember", TABS).json()
    assert again == {"episode_id": told, "state": "done", "beliefs": [], "deduplicated": True, "forgotten": True}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"text": ""}, 422),
        ({"text": "x" * 40_000}, 413),
        ({"text": "\ud800"}, 422),
        ([], 422),
    ],
)
def test_a_bad_body_is_refused(writer: Caller, body: object, status: int) -> None:
    assert is_problem(writer.post("/remember", body), status)
    assert not Episode.objects.exists()


def test_a_text_of_another_day_is_dated_by_it(workspace: Workspace, writer: Caller) -> None:
    """R1: the episode happened then."""
    body = {"text": "Mara moves to Lyon tomorrow.", "user": "mara", "occurred_at": "2026-03-02T23:30:00+01:00"}
    told = writer.post("/remember", body).json()["episode_id"]
    work(workspace)
    assert Episode.objects.get(pk=told).occurred_at == datetime(2026, 3, 2, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "given",
    [
        "2026-01-01T00:00:00",
        "2026-01-01",
        "yesterday",
        "",
        "2026-02-30T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        1_772_366_400,
        True,
        ["2026-01-01T00:00:00Z"],
    ],
)
def test_a_time_that_is_none_is_refused(writer: Caller, given: object) -> None:
    """R1, B1: by the episode's own rules, naming the field."""
    response = writer.post("/remember", TABS | {"occurred_at": given})
    assert is_problem(response, 422)
    assert list(response.json()["errors"]) == ["occurred_at"]
    assert not Episode.objects.exists()


def test_a_text_is_of_tomorrow_at_the_latest(writer: Caller) -> None:
    """R1, B1: clocks differ by a day at most."""
    ahead = timezone.now() + timedelta(days=settings.POLICY.ingest.future_days)
    late, soon = ((ahead + timedelta(hours=hours)).isoformat() for hours in (1, -1))
    assert is_problem(writer.post("/remember", TABS | {"occurred_at": late}), 422)
    assert not Episode.objects.exists()
    assert writer.post("/remember", TABS | {"occurred_at": soon}).status_code == 201


def test_no_time_is_now(writer: Caller) -> None:
    """R1: left out or null."""
    began = timezone.now()
    told = writer.post("/remember", TABS | {"occurred_at": None}).json()["episode_id"]
    assert began <= Episode.objects.get(pk=told).occurred_at <= timezone.now()


def test_another_text_under_one_key_is_a_conflict(writer: Caller) -> None:
    """R1, L4."""
    writer.post("/remember", TABS | {"idempotency_key": "k"})
    assert is_problem(writer.post("/remember", {"text": "Mara left.", "idempotency_key": "k"}), 409)


def test_a_reader_remembers_nothing(reader: Caller) -> None:
    assert is_problem(reader.post("/remember", TABS), 403)


def test_a_limited_key_stays_in_its_projects(workspace: Workspace) -> None:
    """R1, B21: and what it remembers changes nothing that belongs to none."""
    mine = factories.project(workspace=workspace, slug="mine")
    limited = caller("write", workspace=workspace, projects=(mine,))
    assert is_problem(limited.post("/remember", TABS), 403)
    assert limited.post("/remember", TABS | {"project": "mine"}).status_code == 201
    assert RememberJob.objects.get().is_limited
