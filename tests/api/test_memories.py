"""GET /memories/{id}: the full card of an episode or a belief."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.graph.linking import link_memories
from memory.models import BeliefAccess, Edge, Episode, EpisodeAccess, Transition, TurnEpisode, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


def test_an_episode_is_shown_with_what_it_bears_witness_to(workspace: Workspace, reader: Caller) -> None:
    """B18: weighed among the other evidence of each belief."""
    project = factories.project(workspace=workspace, slug="mill")
    episode, other = (
        remembered(text, workspace=workspace, project=project, origin="session:1", category="preference")
        for text in ("I want tea.", "Tea, please.")
    )
    belief = believed("Mara prefers tea.", workspace=workspace)
    factories.evidence(belief=belief, episode=other, verdict="SUPPORTS")
    factories.evidence(belief=belief, episode=episode, verdict="SUPPORTS", reason="says so")
    card = reader.get(f"/memories/{episode.pk}").json()
    assert (card["type"], card["id"], card["text"], card["project"]) == ("episode", episode.pk, "I want tea.", "mill")
    assert (card["knowledge"], card["feedback"], card["hidden_beliefs"]) == ("fact", 0.0, 0)
    [word] = card["beliefs"]
    assert (word["belief"], word["verdict"], word["reason"]) == (belief.pk, "SUPPORTS", "says so")
    weights = [row["weight"] for row in reader.get(f"/beliefs/{belief.pk}").json()["evidence"]]
    assert sorted(weights) == [0.5, 1.0]
    assert word["weight"] in weights


def test_the_beginning_of_an_id_names_a_memory(workspace: Workspace, reader: Caller) -> None:
    """R7, R15: among what the key may see; four digits at least, and of one memory."""
    for ending in ("00", "01"):
        remembered("I want tea.", workspace=workspace, id=f"ep_abcd000000{ending}")
    project, hidden = (factories.project(workspace=workspace, slug=slug) for slug in ("mill", "barn"))
    of_mill = remembered("Of the mill.", workspace=workspace, project=project, id="ep_ccccc0000000")
    remembered("Of the barn.", workspace=workspace, project=hidden, id="ep_cccccc000000")
    assert reader.get("/memories/ep_abcd00000001").json()["id"] == "ep_abcd00000001"
    several = reader.get("/memories/ep_abcd")
    assert is_problem(several, 409)
    assert several.json()["detail"] == "More than one id begins with ep_abcd: give more of it."
    limited = caller("read", workspace=workspace, projects=(project,))
    assert limited.get("/memories/ep_cccc").json()["id"] == of_mill.pk
    assert [is_problem(reader.get(f"/memories/{name}"), 404) for name in ("ep_abc", "ep_dddd", "bl_abcd")] == [True] * 3


def test_a_fact_is_shown_with_what_its_extraction_knew(workspace: Workspace, reader: Caller) -> None:
    """L3, L5, L6, L15, D5: on the card; the list has its kind, confidence and tier."""
    known: dict[str, Any] = {
        "confidence": 0.75, "causes": ["The old one was slow"], "verbatim": "ok, postgres it is", "confirmations": 2,
        "confirmed_at": "2026-03-02T08:00:00Z", "distance": 0.35, "surprise": 0.5, "is_near_duplicate": False,
    }  # fmt: skip
    fact = remembered("The team chose Postgres.", workspace=workspace, category="decision", **known)
    card = reader.get(f"/memories/{fact.pk}").json()
    assert {name: card[name] for name in known} == known
    assert (card["kind"], card["tier"]) == ("note", "implied")
    [row] = reader.get("/episodes").json()["results"]
    assert (row["kind"], row["confidence"], row["tier"]) == ("note", 0.75, "implied")


def test_what_nobody_extracted_has_no_tier(workspace: Workspace, reader: Caller) -> None:
    """L3, L5."""
    card = reader.get(f"/memories/{remembered('I want tea.', workspace=workspace).pk}").json()
    assert (card["kind"], card["confidence"], card["tier"], card["verbatim"]) == ("episode", None, "", "")


def test_a_card_takes_no_more_queries_for_more_beliefs(workspace: Workspace, reader: Caller) -> None:
    """B18: however many beliefs an episode bears witness to, and whatever else those rest on."""
    episode, other = (remembered(text, workspace=workspace) for text in ("I want tea.", "Tea, please."))
    reader.get(f"/memories/{episode.pk}")  # the first use of a key is noted
    queries = set()
    for number in range(2, 7):
        belief = believed(f"Mara drinks {number} cups.", workspace=workspace)
        for witness in (episode, other):
            factories.evidence(belief=belief, episode=witness)
        with CaptureQueriesContext(connection) as captured:
            card = reader.get(f"/memories/{episode.pk}").json()
        queries.add(len(captured))
    assert (len(card["beliefs"]), len(queries)) == (5, 1)


def test_an_episode_tells_how_its_status_changed(workspace: Workspace, reader: Caller) -> None:
    """B18, R10."""
    episode = remembered("I want tea.", workspace=workspace, status="archived")
    Transition.objects.create(
        workspace=workspace, episode=episode, old="active", new="archived", reason="old", actor="command sweep",
        at=factories.NOW,
    )  # fmt: skip
    [change] = reader.get(f"/memories/{episode.pk}").json()["transitions"]
    assert (change["old"], change["new"], change["reason"]) == ("active", "archived", "old")


def test_an_episode_is_shown_with_the_turns_it_was_read_from(workspace: Workspace, reader: Caller) -> None:
    """B18, L2: as they were said, in their order."""
    ours = factories.project(workspace=workspace)
    episode = remembered("Mara wants tea.", workspace=workspace, project=ours)
    for content in ("Coffee?", "I want tea."):
        said = factories.turn(workspace=workspace, session="s", project=ours, content=content, turn_id=content)
        TurnEpisode.objects.create(workspace=workspace, turn=said, episode=episode)
    elsewhere = factories.turn(workspace=workspace, session="t", content="Tea, tea!")
    TurnEpisode.objects.create(workspace=workspace, turn=elsewhere, episode=episode)
    told = reader.get(f"/memories/{episode.pk}").json()["turns"]
    assert [turn["content"] for turn in told] == ["Coffee?", "I want tea.", "Tea, tea!"]
    assert told[1] == {
        "session": "s", "number": 2, "turn_id": "I want tea.", "role": "user", "speaker": "",
        "content": "I want tea.", "occurred_at": "2026-03-01T12:00:00Z",
    }  # fmt: skip
    limited = caller("read", workspace=workspace, projects=(ours,)).get(f"/memories/{episode.pk}").json()
    assert [turn["session"] for turn in limited["turns"]] == ["s", "s"]


def test_of_many_turns_the_latest_are_shown(workspace: Workspace, reader: Caller) -> None:
    """B18: and the others are counted."""
    episode = remembered("Mara wants tea.", workspace=workspace)
    for number in range(23):
        said = factories.turn(workspace=workspace, session="s", content=f"Tea {number}!")
        TurnEpisode.objects.create(workspace=workspace, turn=said, episode=episode)
    card = reader.get(f"/memories/{episode.pk}").json()
    assert [turn["content"] for turn in card["turns"]] == [f"Tea {number}!" for number in range(3, 23)]
    assert card["other_turns"] == 3


def test_a_belief_is_shown_with_its_evidence_and_its_use(workspace: Workspace, reader: Caller) -> None:
    """B18, B5."""
    belief = believed("Mara prefers tea.", workspace=workspace, fact_type="procedural")
    factories.evidence(belief=belief, episode=remembered("Tea!", workspace=workspace))
    reader.post("/recall", {"query": "tea", "types": ["belief"]})
    card = reader.get(f"/memories/{belief.pk}").json()
    assert (card["type"], card["id"], card["statement"]) == ("belief", belief.pk, "Mara prefers tea.")
    assert (card["knowledge"], card["access_count"], len(card["evidence"])) == ("procedure", 1, 1)
    assert card["stability"] > 1
    assert card["retrieval_strength"] == pytest.approx(1.0, abs=1e-3)
    assert set(reader.get(f"/beliefs/{belief.pk}").json()) <= set(card)


def test_looking_is_no_access(workspace: Workspace, reader: Caller) -> None:
    """B18."""
    episode, belief = remembered("Tea!", workspace=workspace), believed("Tea is good.", workspace=workspace)
    assert {reader.get(f"/memories/{memory.pk}").status_code for memory in (episode, belief)} == {200}
    assert not EpisodeAccess.objects.exists()
    assert not BeliefAccess.objects.exists()


def test_only_evidence_and_beliefs_in_sight_are_shown(workspace: Workspace) -> None:
    """B18, B21: the rest is counted."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    episode = remembered("tea here", workspace=workspace, project=ours)
    foreign = remembered("tea there", workspace=workspace, project=theirs)
    both, own = (
        believed("Tea is good.", workspace=workspace),
        believed("Tea is hot.", workspace=workspace, project=ours),
    )
    for belief in (both, own):
        for witness in (episode, foreign):
            factories.evidence(belief=belief, episode=witness)
    limited = caller("read", workspace=workspace, projects=(ours,))
    card = limited.get(f"/memories/{episode.pk}").json()
    assert [word["belief"] for word in card["beliefs"]] == [own.pk]
    assert card["hidden_beliefs"] == 1
    assert [row["episode"] for row in limited.get(f"/memories/{own.pk}").json()["evidence"]] == [episode.pk]
    assert is_problem(limited.get(f"/memories/{both.pk}"), 404)
    assert is_problem(limited.get(f"/memories/{foreign.pk}"), 404)


@pytest.mark.parametrize("kind", ["episode", "belief"])
def test_what_was_forgotten_is_gone(workspace: Workspace, reader: Caller, kind: str) -> None:
    """B18, B19."""
    store: Any = remembered if kind == "episode" else believed
    memory = store("Tea!", workspace=workspace, status="forgotten")
    assert is_problem(reader.get(f"/memories/{memory.pk}"), 404)


@pytest.mark.parametrize("key", ["ep_000000000000", "bl_000000000000", "cy_000000000000", "ep_1", "nonsense"])
def test_what_is_no_memory_is_not_there(reader: Caller, key: str) -> None:
    assert is_problem(reader.get(f"/memories/{key}"), 404)


def test_nothing_can_be_asked_beside_the_id(workspace: Workspace, reader: Caller) -> None:
    episode = remembered("Tea!", workspace=workspace)
    assert is_problem(reader.get(f"/memories/{episode.pk}", depth=2), 422)


def test_an_episodes_card_shows_whom_it_names_and_its_links_in_sight(workspace: Workspace) -> None:
    """B18, L19, B21: the strongest first; another project's are not told of."""
    mine, other = (factories.project(workspace=workspace) for _ in range(2))
    cause, effect = (factories.episode(workspace=workspace, project=mine, entities=["Zoe"]) for _ in range(2))
    hidden = factories.episode(workspace=workspace, project=other, entities=["Zoe"])
    gone = factories.episode(workspace=workspace, project=mine, entities=["Zoe"], status="active")
    link_memories(workspace_id=workspace.pk)
    Episode.objects.filter(pk=gone.pk).update(status="forgotten")
    Edge.objects.create(
        workspace=workspace, source=cause, target=effect, kind="causal", weight=1.0, confidence=None,
        created_at=factories.NOW, last_seen_at=factories.NOW, decays_at=factories.NOW,
    )  # fmt: skip
    card = caller("read", workspace=workspace, projects=(mine,)).get(f"/memories/{effect.pk}").json()
    assert card["names"] == ["zoe"]
    told = [(link["episode"], link["kind"], link["is_cause"], link["confidence"]) for link in card["links"]]
    assert told == [(cause.pk, "causal", True, 1.0), (cause.pk, "entity", False, 0.7)]
    assert card["links"][0]["text"] == cause.text
    all_of_it = caller("read", workspace=workspace).get(f"/memories/{effect.pk}").json()
    assert {link["episode"] for link in all_of_it["links"]} == {cause.pk, hidden.pk}
