"""POST /remember."""

import pytest

from memory.models import Belief, Episode, Remembrance, Workspace
from memory.remembering.working import work_remembrance
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
    for one in Remembrance.objects.filter(workspace=workspace):
        work_remembrance(remembrance_id=one.pk, now=factories.NOW)


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
    assert unheard == [Remembrance.objects.get().pk]


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
    writer.post("/remember", TABS)
    work(workspace)
    old = Belief.objects.get()
    line = {"text": "Mara prefers spaces over tabs.", "user": "mara"}
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
        ({}, 422),
        ({"text": "x", "importance": 0.5}, 422),
        ({"text": "x" * 40_000}, 413),
        ({"text": "\ud800"}, 422),
        ([], 422),
    ],
)
def test_a_bad_body_is_refused(writer: Caller, body: object, status: int) -> None:
    assert is_problem(writer.post("/remember", body), status)
    assert not Episode.objects.exists()


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
    assert Remembrance.objects.get().is_limited
