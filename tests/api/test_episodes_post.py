"""POST /episodes."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memory.models import Episode, Project, Workspace
from tests import factories

pytestmark = pytest.mark.django_db

URL = "/api/v1/episodes"


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def writer(workspace: Workspace) -> str:
    return factories.key("write", workspace=workspace)[1]


def post(key: str, body: object, **headers: str) -> Any:
    text = body if isinstance(body, (str, bytes)) else json.dumps(body)
    headers.setdefault("Authorization", f"Bearer {key}")
    return Client().post(URL, text, content_type="application/json", headers=headers)


def test_one_episode_is_stored(workspace: Workspace, writer: str) -> None:
    response = post(writer, {"text": "Mara likes tabs.", "user": "mara", "source": "human"})
    assert response.status_code == 201
    (answer,) = response.json()["episodes"]
    episode = Episode.objects.get(pk=answer["id"])
    assert answer["deduplicated"] is False
    assert (episode.workspace, episode.text, episode.user, episode.source, episode.language, episode.state) == (
        workspace, "Mara likes tabs.", "mara", "human", "en", "new",
    )  # fmt: skip


def test_same_words_answer_with_the_first_episode(writer: str) -> None:
    """L4: a duplicate answers with the existing id."""
    first = post(writer, {"text": "Mara likes tabs.", "session": "s"}).json()["episodes"][0]
    again = post(writer, {"text": "mara  likes TABS", "session": "s"})
    assert again.status_code == 201
    assert again.json()["episodes"] == [{"id": first["id"], "deduplicated": True}]
    assert Episode.objects.count() == 1


def test_forgotten_words_say_so(writer: str) -> None:
    """L4, B19: whoever sends them again is not led to believe that they can be recalled."""
    first = post(writer, {"text": "Mara likes tabs.", "session": "s"}).json()["episodes"][0]["id"]
    Client().delete(f"/api/v1/memories/{first}", headers={"Authorization": f"Bearer {writer}"})
    again = post(writer, {"text": "mara  likes TABS", "session": "s"})
    assert again.json()["episodes"] == [{"id": first, "deduplicated": True, "forgotten": True}]
    assert Episode.objects.get().status == "forgotten"


def test_bulk_keeps_the_good_lines(writer: str) -> None:
    """Bad input: errors per item, with index and reason; the good items are kept."""
    response = post(writer, {"episodes": [{"text": "One."}, {"text": "Two.", "importance": 2}, 3, {"text": "Four."}]})
    assert response.status_code == 201
    first, second, third, fourth = response.json()["episodes"]
    assert second["error"]["index"] == 1
    assert second["error"]["status"] == 422
    assert list(second["error"]["errors"]) == ["importance"]
    assert third["error"]["detail"] == "An episode is a JSON object."
    assert set(Episode.objects.values_list("pk", "text")) == {(first["id"], "One."), (fourth["id"], "Four.")}


def test_bulk_of_nothing_good_is_a_problem(writer: str) -> None:
    response = post(writer, {"episodes": [{"text": ""}, {"text": "x" * 40_000}]})
    assert response.status_code == 422
    assert response.headers["Content-Type"] == "application/problem+json"
    assert [answer["error"]["status"] for answer in response.json()["episodes"]] == [422, 413]


def test_empty_bulk_is_answered_with_nothing(writer: str) -> None:
    response = post(writer, {"episodes": []})
    assert (response.status_code, response.json()) == (201, {"episodes": []})


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ({}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 5}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"text": "half \ud83d"}, "text"),
        ({"text": "x", "user": "a\0"}, "user"),
        ({"text": "x", "importance": float("nan")}, "importance"),
        ({"text": "x", "importance": float("inf")}, "importance"),
        ({"text": "x", "importance": -0.1}, "importance"),
        ({"text": "x", "importance": "0.5"}, "importance"),
        ({"text": "x", "occurred_at": "2026-01-01T00:00:00"}, "occurred_at"),
        ({"text": "x", "occurred_at": "yesterday"}, "occurred_at"),
        ({"text": "x", "occurred_at": "2026-02-30T00:00:00Z"}, "occurred_at"),
        ({"text": "x", "occurred_at": "0001-01-01T00:00:00+14:00"}, "occurred_at"),
        ({"text": "x", "valid_until": 17}, "valid_until"),
        ({"text": "x", "entities": ["a"] * 33}, "entities"),
        ({"text": "x", "tags": ["a"] * 33}, "tags"),
        ({"text": "x", "tags": [""]}, "tags.0"),
        ({"text": "x", "source": "dream"}, "source"),
        ({"text": "x", "category": "gossip"}, "category"),
        ({"text": "x", "project": "no spaces"}, "project"),
        ({"text": "x", "session": "s" * 201}, "session"),
        ({"text": "x", "colour": "blue"}, "colour"),
        ({"text": "x", "id": "ep_000000000000"}, "id"),
    ],
)
def test_bad_line_is_refused_by_field(writer: str, line: dict[str, object], field: str) -> None:
    """Bad input: 422 with the field's name and the reason."""
    response = post(writer, line)
    assert response.status_code == 422
    assert response.headers["Content-Type"] == "application/problem+json"
    assert list(response.json()["errors"]) == [field]
    assert not Episode.objects.exists()


def test_more_than_a_day_ahead_is_refused(writer: str) -> None:
    """Bad input: occurred more than a day in the future."""
    ahead = timezone.now() + timedelta(days=1)
    assert post(writer, {"text": "x", "occurred_at": (ahead + timedelta(hours=1)).isoformat()}).status_code == 422
    assert post(writer, {"text": "x", "occurred_at": (ahead - timedelta(hours=1)).isoformat()}).status_code == 201


def test_text_over_32_kib_is_too_large(writer: str) -> None:
    """Bad input: 413, counted in bytes."""
    assert post(writer, {"text": "ä" * 16_385}).status_code == 413
    assert post(writer, {"text": "ä" * 16_384}).status_code == 201


def test_body_over_8_mib_is_too_large(writer: str) -> None:
    """Bad input: 413."""
    response = post(writer, b" " * (8 * 1024 * 1024 + 1))
    assert response.status_code == 413
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"text": "a" "b"}'])
def test_body_that_is_not_json_is_refused(writer: str, body: bytes) -> None:
    response = post(writer, body)
    assert response.status_code in {400, 422}
    assert response.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        [],
        17,
        {"episodes": "text"},
        {"episodes": [{"text": "x"}], "text": "x"},
        {"episodes": [{"text": "x"}] * 1001},
    ],
)
def test_body_of_another_shape_is_refused(writer: str, body: object) -> None:
    assert post(writer, body).status_code == 422
    assert not Episode.objects.exists()


def test_key_with_the_same_content_answers_with_the_first(writer: str) -> None:
    line = {"text": "Mara likes tabs.", "idempotency_key": "k1", "tags": None}
    first = post(writer, line).json()["episodes"][0]["id"]
    again = post(writer, {"idempotency_key": "k1", "text": "Mara likes tabs."})
    assert again.json()["episodes"] == [{"id": first, "deduplicated": True}]


def test_key_with_other_content_is_a_conflict(writer: str) -> None:
    """Bad input: 409, an idempotency key with other content."""
    post(writer, {"text": "Mara likes tabs.", "idempotency_key": "k1"})
    response = post(writer, {"text": "Mara likes spaces.", "idempotency_key": "k1"})
    assert response.status_code == 409
    assert Episode.objects.count() == 1


def test_unknown_project_is_created(workspace: Workspace, writer: str) -> None:
    response = post(writer, {"text": "x", "project": "new-one"})
    episode = Episode.objects.get(pk=response.json()["episodes"][0]["id"])
    assert episode.project == Project.objects.get(workspace=workspace, slug="new-one")


def test_limited_key_stays_in_its_projects(workspace: Workspace) -> None:
    own, other = factories.project(workspace=workspace), factories.project(workspace=workspace)
    key = factories.key("write", workspace=workspace, projects=(own,))[1]
    assert post(key, {"text": "x", "project": own.slug}).status_code == 201
    for line in ({"text": "y", "project": other.slug}, {"text": "y", "project": "unknown"}, {"text": "y"}):
        refused = post(key, line)
        assert (refused.status_code, list(refused.json()["errors"])) == (403, ["project"])
    assert Project.objects.count() == 2
    assert Episode.objects.get().project == own


@pytest.mark.parametrize("header", ["", "Bearer engram_wrong", "Basic abc", "Bearer"])
def test_without_a_good_key_nothing_happens(header: str) -> None:
    response = post("", {"text": "x"}, Authorization=header)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.headers["Content-Type"] == "application/problem+json"


def test_reading_alone_does_not_let_write(workspace: Workspace) -> None:
    assert post(factories.key("read", workspace=workspace)[1], {"text": "x"}).status_code == 403
    assert not Episode.objects.exists()


def test_workspaces_do_not_share_keys_words_or_projects(workspace: Workspace, writer: str) -> None:
    """Tenancy: the same line, key and project in another workspace is another episode."""
    line = {"text": "Tabs.", "session": "s", "idempotency_key": "k", "project": "p"}
    other = factories.key("write", workspace=factories.workspace())[1]
    answers = [post(key, line).json()["episodes"][0] for key in (writer, other)]
    assert [answer["deduplicated"] for answer in answers] == [False, False]
    assert Project.objects.filter(slug="p").count() == 2


def test_a_key_of_one_project_learns_nothing_of_another_ones_idempotency_keys(workspace: Workspace) -> None:
    """L4, B21: whether a name is taken elsewhere shows neither as a conflict nor as a duplicate."""
    apples = factories.project(workspace=workspace, slug="apples")
    limited = factories.key("write", workspace=workspace, projects=(apples,))[1]
    unlimited = factories.key("write", workspace=workspace)[1]
    line = {"text": "Tabs.", "idempotency_key": "k"}
    for elsewhere in ({"project": "pears"}, {}):
        assert post(unlimited, line | elsewhere).status_code == 201
    mine = line | {"text": "Mine.", "project": "apples"}
    first, again = post(limited, mine), post(limited, mine)
    assert [one.json()["episodes"][0]["deduplicated"] for one in (first, again)] == [False, True]
    assert post(limited, mine | {"text": "Other."}).status_code == 409
    assert Episode.objects.filter(idempotency_key="k").count() == 3


def test_one_idempotency_key_may_stand_for_a_line_of_each_project_in_a_batch(workspace: Workspace) -> None:
    """L4."""
    key = factories.key("write", workspace=workspace)[1]
    lines = [{"text": f"Tabs in {slug}.", "project": slug, "idempotency_key": "k"} for slug in ("apples", "pears")]
    assert [one["deduplicated"] for one in post(key, {"episodes": lines}).json()["episodes"]] == [False, False]
    assert [one["deduplicated"] for one in post(key, {"episodes": lines}).json()["episodes"]] == [True, True]
