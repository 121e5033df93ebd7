"""POST /beliefs, /beliefs/merge, /beliefs/{id}/split and /correct: R7, B12, B13 and B4 over HTTP."""

from typing import Any

import pytest
from pytest_django import Settings

from memory.models import ApiKey, Belief, BeliefEvent, Episode, Evidence, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db

TABS = "Mara prefers tabs over spaces."
SPACES = "Mara prefers spaces over tabs."


@pytest.fixture
def curator(workspace: Workspace) -> Caller:
    return caller("curate", workspace=workspace)


@pytest.fixture
def belief(workspace: Workspace) -> Belief:
    """A belief of two episodes."""
    belief = believed(TABS, workspace=workspace, subject="Mara", evidence_count=2)
    for number in (1, 2):
        factories.evidence(belief=belief, episode=remembered(f"{TABS} {number}", workspace=workspace))
    return belief


def episodes_of(belief: Belief) -> list[str]:
    return list(Evidence.objects.filter(belief=belief).order_by("pk").values_list("episode_id", flat=True))


def test_a_belief_is_stated(workspace: Workspace, curator: Caller) -> None:
    """Curators: with its evidence, without a model; the history names the key."""
    said = [remembered(f"{TABS} {number}", workspace=workspace) for number in (1, 2)]
    body = {"statement": TABS, "subject": "Mara", "fact_type": "preference", "timeframe": "always", "importance": 7}

    answer = curator.post("/beliefs", body | {"evidence": [{"episode": one.pk} for one in said]})

    told = answer.json()
    assert answer.status_code == 201
    assert {name: told[name] for name in body} == body
    assert (told["alpha"], told["confidence"], told["evidence_count"]) == (3.0, 0.75, 2)
    event = BeliefEvent.objects.filter(pgh_obj=told["id"]).latest("pgh_id")
    assert event.pgh_context == {"actor": f"key {ApiKey.objects.get().prefix}", "reason": "stated by a curator"}
    assert curator.post("/recall", {"query": TABS, "types": ["belief"]}).json()["results"][0]["id"] == told["id"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"statement": ""}, "statement"),
        ({"statement": "Who prefers tabs?"}, "statement"),
        ({"statement": "word " * 31}, "statement"),
        ({"evidence": []}, "evidence"),
        ({"evidence": [{"episode": "ep_000000000000"}]}, "evidence"),
        ({"evidence": [{"episode": "ep_1"}]}, "evidence"),
    ],
)
def test_what_cannot_be_stated_is_refused_by_field(
    workspace: Workspace, curator: Caller, change: dict[str, Any], field: str
) -> None:
    said = remembered(TABS, workspace=workspace)
    answer = curator.post("/beliefs", {"statement": TABS, "evidence": [{"episode": said.pk}]} | change)
    assert is_problem(answer, 422)
    assert set(answer.json()["errors"]) == {field}
    assert not Belief.objects.exists()


@pytest.mark.parametrize("verdict", ["CONTRADICTS", "PARTIAL"])
def test_something_must_support_it(workspace: Workspace, curator: Caller, verdict: str) -> None:
    said = remembered(TABS, workspace=workspace)
    body = {"statement": TABS, "evidence": [{"episode": said.pk, "verdict": verdict}]}
    assert is_problem(curator.post("/beliefs", body), 422)


def test_an_episode_is_named_once(workspace: Workspace, curator: Caller) -> None:
    said = remembered(TABS, workspace=workspace)
    body = {"statement": TABS, "evidence": [{"episode": said.pk}] * 2}
    assert is_problem(curator.post("/beliefs", body), 422)


def test_what_is_believed_already_is_a_conflict_that_names_it(curator: Caller, belief: Belief) -> None:
    """B8.5."""
    answer = curator.post("/beliefs", {"statement": TABS, "evidence": [{"episode": episodes_of(belief)[0]}]})
    assert is_problem(answer, 409)
    assert answer.json()["id"] == belief.pk


def test_a_word_against_a_belief(curator: Caller, belief: Belief) -> None:
    """B4: five times the weight of an episode."""
    answer = curator.post(f"/beliefs/{belief.pk}/correct", {"reason": "she changed her mind"})
    [told] = answer.json()["changed"]
    assert (told["id"], told["alpha"], told["beta"], told["status"]) == (belief.pk, 3.0, 6.0, "active")
    assert answer.json()["made"] == []
    assert Episode.objects.get(category="correction").text == "Correction: she changed her mind"


def test_what_is_right_instead(curator: Caller, belief: Belief) -> None:
    """R7: 6/7 for the new belief; the old one points to it."""
    answer = curator.post(f"/beliefs/{belief.pk}/correct", {"reason": "she told me", "statement": SPACES})
    [new], [old] = answer.json()["made"], answer.json()["changed"]
    assert (new["statement"], new["subject"], round(new["confidence"], 3)) == (SPACES, "Mara", 0.857)
    assert (old["id"], old["status"], old["status_reason"]) == (belief.pk, "revised", "she told me")
    line = curator.get(f"/beliefs/{new['id']}/lineage").json()
    assert {(change["parent"], change["child"], change["kind"]) for change in line["changes"]} == {
        (belief.pk, new["id"], "supersession")
    }


def test_what_stands_in_for_another_is_corrected_itself(curator: Caller, belief: Belief) -> None:
    """B22: a dead end says so."""
    address = f"/beliefs/{belief.pk}/correct"
    curator.post(address, {"reason": "she told me", "statement": SPACES})
    again = curator.post(address, {"reason": "she told me", "statement": SPACES})
    assert is_problem(again, 409)
    assert "is revised; only what is believed can be reshaped" in again.json()["detail"]


@pytest.mark.parametrize("body", [{"reason": ""}, {"reason": "x", "context": "at work"}])
def test_a_correction_needs_a_reason_and_a_whole_statement(
    curator: Caller, belief: Belief, body: dict[str, str]
) -> None:
    assert is_problem(curator.post(f"/beliefs/{belief.pk}/correct", body), 422)


def test_two_beliefs_become_one(workspace: Workspace, curator: Caller, belief: Belief) -> None:
    """B13: the better evidenced one's words, unless others are given."""
    other = believed("Mara likes tabs more than spaces.", workspace=workspace)
    answer = curator.post("/beliefs/merge", {"beliefs": [other.pk, belief.pk], "reason": "the same"})
    [made] = answer.json()["made"]
    assert (made["statement"], made["evidence_count"]) == (TABS, 2)
    assert [one["status"] for one in answer.json()["changed"]] == ["merged", "merged"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_two_different_beliefs_are_merged(curator: Caller, belief: Belief, count: int) -> None:
    body = {"beliefs": [belief.pk] * count, "reason": "the same"}
    assert is_problem(curator.post("/beliefs/merge", body), 422)
    assert is_problem(curator.post("/beliefs/merge", body | {"beliefs": [belief.pk, belief.pk]}), 422)


def test_beliefs_of_two_projects_stay_apart(workspace: Workspace, curator: Caller, belief: Belief) -> None:
    """B13, B21."""
    other = believed(SPACES, workspace=workspace, project=factories.project(workspace=workspace))
    answer = curator.post("/beliefs/merge", {"beliefs": [other.pk, belief.pk], "reason": "the same"})
    assert is_problem(answer, 409)


def test_one_belief_becomes_two(curator: Caller, belief: Belief) -> None:
    """B12."""
    one, two = episodes_of(belief)
    parts = [
        {"statement": "At work Mara prefers tabs.", "context": "at work", "evidence": [{"episode": one}]},
        {"statement": "At home Mara prefers spaces.", "context": "at home", "evidence": [{"episode": two}]},
    ]
    answer = curator.post(f"/beliefs/{belief.pk}/split", {"parts": parts, "reason": "two places"})
    assert [made["context"] for made in answer.json()["made"]] == ["at work", "at home"]
    assert answer.json()["changed"][0]["status"] == "split"


def test_a_split_has_two_parts_or_more(curator: Caller, belief: Belief) -> None:
    """B12."""
    part = {"statement": TABS, "evidence": [{"episode": episodes_of(belief)[0]}]}
    for parts in ([], [part], [part, part]):
        assert is_problem(curator.post(f"/beliefs/{belief.pk}/split", {"parts": parts, "reason": "x"}), 422)


def test_a_limited_key_leaves_global_beliefs_to_others(workspace: Workspace) -> None:
    """B21: its word would be an episode that it could not see itself, and hide the belief from it."""
    project = factories.project(workspace=workspace)
    belief = believed(TABS, workspace=workspace)
    factories.evidence(belief=belief, episode=remembered(TABS, workspace=workspace, project=project))
    limited = caller("curate", workspace=workspace, projects=(project,))
    assert limited.get(f"/beliefs/{belief.pk}").status_code == 200
    assert is_problem(limited.post(f"/beliefs/{belief.pk}/correct", {"reason": "x"}), 403)


def test_without_a_vector_nothing_is_stored(
    workspace: Workspace, curator: Caller, belief: Belief, settings: Settings
) -> None:
    """A server that does not answer is ours to say, with a time to come back."""
    settings.ENGRAM_EMBEDDINGS, settings.OPENAI_BASE_URL = "openai", "http://127.0.0.1:9"
    settings.ENGRAM_EMBEDDING_BASE_URL = "http://127.0.0.1:9"
    Workspace.objects.update(embedding_model="served")
    answer = curator.post(f"/beliefs/{belief.pk}/correct", {"reason": "she told me", "statement": SPACES})
    assert is_problem(answer, 503)
    assert answer.headers["Retry-After"] == "30"
    assert not Episode.objects.filter(category="correction").exists()
