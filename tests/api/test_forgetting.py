"""DELETE /memories/{id}."""

import pytest

from memory.models import Belief, BeliefEvent, Episode, Evidence, Transition, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


@pytest.fixture
def episode(workspace: Workspace) -> Episode:
    """Return the one support of a belief."""
    told = remembered("Mara drinks tea.", workspace=workspace)
    factories.evidence(belief=believed("Mara prefers tea.", workspace=workspace), episode=told)
    return told


def test_an_episode_is_forgotten(episode: Episode, writer: Caller) -> None:
    """B19: the answer says what that meant for beliefs, not which to a key that may not read; its actor is the key."""
    response = writer.request("DELETE", f"/memories/{episode.pk}?reason=private")
    assert response.status_code == 200
    assert response.json() == {
        "id": episode.pk, "status": "forgotten", "beliefs": {"recomputed": 1, "archived": 1},
        "merged": 0, "summaries": 0,
    }  # fmt: skip
    change = Transition.objects.get(episode=episode)
    assert (change.new, change.reason, change.actor[:10]) == ("forgotten", "private", "key engram")
    assert Belief.objects.get().status == "archived"


def test_who_may_read_is_told_which_beliefs_it_meant(workspace: Workspace, episode: Episode) -> None:
    """B19, B21: of those that the key may see."""
    project = factories.project(workspace=workspace)
    inside = remembered("Tabs.", workspace=workspace, project=project)
    shown = believed("Mara likes tabs.", workspace=workspace, project=project)
    for belief in (shown, Belief.objects.get(statement="Mara prefers tea.")):
        factories.evidence(belief=belief, episode=inside)
    limited = caller("read", "write", workspace=workspace, projects=(project,))
    answer = limited.request("DELETE", f"/memories/{inside.pk}").json()
    assert answer["beliefs"] == {"recomputed": 2, "archived": 1}
    assert answer["belief_ids"] == {"recomputed": [shown.pk], "archived": [shown.pk]}


def test_nobody_is_shown_it_afterwards(episode: Episode, workspace: Workspace) -> None:
    """B19: neither recalled, nor listed in any status, nor on a belief's card."""
    owner = caller(workspace=workspace)
    belief = Belief.objects.get()
    Belief.objects.update(is_pinned=True)
    owner.request("DELETE", f"/memories/{episode.pk}")
    recalled = owner.post("/recall", {"query": "Mara drinks tea", "types": ["episode"]}).json()
    assert recalled["results"] == []
    for status in ("active", "forgotten"):
        assert owner.get("/episodes", status=status).json()["results"] == []
    assert owner.get(f"/beliefs/{belief.pk}").json()["evidence"] == []
    assert owner.get("/status").json()["episodes"] == {"forgotten": 1}


def test_a_belief_is_forgotten(episode: Episode, writer: Caller, reader: Caller) -> None:
    """B22: its row stays as a tombstone that nobody is shown."""
    belief = Belief.objects.get()
    response = writer.request("DELETE", f"/memories/{belief.pk}")
    assert (response.status_code, response.json()["beliefs"]) == (200, {"recomputed": 0, "archived": 0})
    belief.refresh_from_db()
    assert (belief.status, belief.status_reason) == ("forgotten", "forgotten")
    assert BeliefEvent.objects.filter(status="forgotten").count() == 1
    assert reader.get("/beliefs", status="forgotten").json()["results"] == []
    for path in ("", "/history", "/lineage"):
        assert is_problem(reader.get(f"/beliefs/{belief.pk}{path}"), 404)


def test_what_is_forgotten_is_not_there_to_be_forgotten(episode: Episode, writer: Caller) -> None:
    for memory in (episode.pk, Belief.objects.get().pk):
        writer.request("DELETE", f"/memories/{memory}")
        assert is_problem(writer.request("DELETE", f"/memories/{memory}"), 404)


def test_a_pinned_belief_asks_for_a_curator(workspace: Workspace, episode: Episode, writer: Caller) -> None:
    """D9, B19: and the answer says so."""
    belief = Belief.objects.get()
    Belief.objects.update(is_pinned=True)
    refused = writer.request("DELETE", f"/memories/{belief.pk}")
    assert is_problem(refused, 403)
    assert "is pinned" in refused.json()["detail"]
    assert caller("curate", workspace=workspace).request("DELETE", f"/memories/{belief.pk}").status_code == 200


@pytest.mark.parametrize("memory", ["ep_000000000000", "bl_000000000000", "cy_000000000000", "ep_1"])
def test_what_is_not_there_is_a_404(writer: Caller, memory: str) -> None:
    assert is_problem(writer.request("DELETE", f"/memories/{memory}"), 404)


def test_a_memory_is_forgotten_by_the_beginning_of_its_id(episode: Episode, owner: Caller) -> None:
    """R7: but never erased by it."""
    assert is_problem(owner.request("DELETE", f"/memories/{episode.pk[:10]}?erase=true"), 422)
    told = owner.request("DELETE", f"/memories/{episode.pk[:10]}").json()
    assert (told["id"], told["status"]) == (episode.pk, "forgotten")
    assert is_problem(owner.request("DELETE", f"/memories/{episode.pk[:10]}"), 404)


def test_who_may_not_read_gives_the_whole_id(episode: Episode, writer: Caller) -> None:
    """R7: else it would find by trying what it never saw, and forget it; it is told the same of what is not there."""
    for name in (episode.pk[:10], "ep_ffff"):
        told = writer.request("DELETE", f"/memories/{name}")
        assert is_problem(told, 403)
        assert told.json()["detail"] == "A key that may not read names a memory by its whole id."
    assert Episode.objects.get().status == "active"


def test_a_key_limited_to_projects_forgets_inside_them_only(workspace: Workspace, episode: Episode) -> None:
    """B19, B21."""
    project = factories.project(workspace=workspace)
    limited = caller("write", workspace=workspace, projects=(project,))
    inside = remembered("Tabs.", workspace=workspace, project=project)
    assert is_problem(limited.request("DELETE", f"/memories/{episode.pk}"), 404)
    assert limited.request("DELETE", f"/memories/{inside.pk}").status_code == 200
    assert dict(Episode.objects.values_list("pk", "status")) == {episode.pk: "active", inside.pk: "forgotten"}


def test_evidence_of_forgotten_words_stays_for_the_past(episode: Episode, writer: Caller) -> None:
    """R10: the row is kept, and not read."""
    writer.request("DELETE", f"/memories/{episode.pk}")
    assert Evidence.objects.count() == 1
    assert (Belief.objects.get().alpha, Belief.objects.get().evidence_count) == (1.0, 0)


@pytest.fixture
def owner(workspace: Workspace) -> Caller:
    return caller(workspace=workspace)


def test_an_episode_is_erased(episode: Episode, owner: Caller) -> None:
    """B19: the belief that it only supported is computed anew, and archived without support."""
    response, belief = owner.request("DELETE", f"/memories/{episode.pk}?erase=true"), Belief.objects.get()
    assert (response.status_code, response.json()) == (
        200,
        {
            "id": episode.pk, "status": "erased", "released": 0, "turns": 0,
            "beliefs": {"recomputed": 1, "archived": 1, "erased": 0},
            "belief_ids": {"recomputed": [belief.pk], "archived": [belief.pk], "erased": []},
        },
    )  # fmt: skip
    assert not Episode.objects.exists()
    assert (Belief.objects.get().status, Belief.objects.get().status_reason) == ("archived", "unsupported")


def test_what_is_forgotten_can_still_be_erased(episode: Episode, owner: Caller) -> None:
    """B19: of both kinds."""
    belief = Belief.objects.get()
    for memory in (episode.pk, belief.pk):
        owner.request("DELETE", f"/memories/{memory}")
        assert owner.request("DELETE", f"/memories/{memory}?erase=true").json()["status"] == "erased"
        assert is_problem(owner.request("DELETE", f"/memories/{memory}?erase=true"), 404)
    assert not BeliefEvent.objects.exists()


@pytest.mark.parametrize("permission", ["write", "curate"])
def test_only_an_owner_erases(workspace: Workspace, episode: Episode, permission: str) -> None:
    """B19: nor does one whose key is limited to projects."""
    project = factories.project(workspace=workspace)
    keys = [caller(permission, workspace=workspace), caller("owner", workspace=workspace, projects=(project,))]
    for who in keys:
        assert is_problem(who.request("DELETE", f"/memories/{episode.pk}?erase=true"), 403)
    assert is_problem(keys[0].post("/erase", {"user": "mara"}), 403)
    assert is_problem(keys[1].post("/erase", {"user": "mara"}), 403)
    assert Episode.objects.get().status == "active"


def test_an_open_cycle_keeps_from_erasing(episode: Episode, owner: Caller) -> None:
    """B19: the problem names it."""
    cycle = owner.post("/consolidations").json()["id"]
    calls = [owner.request("DELETE", f"/memories/{episode.pk}?erase=true"), owner.post("/erase", {"user": "mara"})]
    for response in calls:
        assert is_problem(response, 409)
        assert cycle in response.json()["detail"]
    assert Episode.objects.exists()


def test_a_user_is_erased(workspace: Workspace, episode: Episode, owner: Caller) -> None:
    """B19: and what is nobody's, or another's, stays."""
    remembered("Tabs.", workspace=workspace, user="mara")
    gone = believed("Mara likes tabs.", workspace=workspace, user="mara").pk
    response = owner.post("/erase", {"user": "mara"})
    assert response.json() == {
        "episodes": 1, "beliefs": 1, "turns": 0, "calls": 0, "released": 0, "recomputed": 0, "archived": 0,
        "belief_ids": {"recomputed": [], "archived": [], "erased": [gone]},
    }  # fmt: skip
    assert (Episode.objects.get().pk, Belief.objects.count()) == (episode.pk, 1)


def test_a_workspace_is_erased_by_its_name(workspace: Workspace, episode: Episode, owner: Caller) -> None:
    """B19: the key that asked for it lives on."""
    response = owner.post("/erase", {"workspace": workspace.name})
    assert (response.json()["episodes"], response.json()["beliefs"]) == (1, 1)
    assert not Episode.objects.exists()
    assert owner.get("/episodes").json()["results"] == []


@pytest.mark.parametrize("body", [{}, {"user": ""}, {"workspace": "another"}, {"user": "mara", "workspace": "x"}, [1]])
def test_a_bad_body_erases_nothing(episode: Episode, owner: Caller, body: object) -> None:
    assert is_problem(owner.post("/erase", body), 422)
    assert Episode.objects.exists()
