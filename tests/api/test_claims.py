"""GET /memories/{id}/claims."""

from datetime import date

import pytest

from memory.models import Belief, Claim, Episode, Evidence, Project, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


def claim(episode: Episode, number: int = 1, **given: object) -> Claim:
    fields = {"sentence": f"Mara said {number} things.", "reader": "rules-1", "created_at": factories.NOW}
    return Claim.objects.create(workspace=episode.workspace, episode=episode, number=number, **{**fields, **given})


def bear(belief: Belief, said: Claim, verdict: str = "SUPPORTS") -> None:
    Evidence.objects.create(
        workspace=belief.workspace, belief=belief, episode=said.episode, claim=said, verdict=verdict, basis="slot",
        created_at=factories.NOW,
    )  # fmt: skip


@pytest.fixture
def episode(workspace: Workspace) -> Episode:
    """Store an episode that was read."""
    return factories.episode(workspace=workspace, text="Dana left. Ravi leads us now.", read_at=factories.NOW)


def test_an_episode_tells_what_it_asserts_and_what_became_of_it(
    reader: Caller, workspace: Workspace, episode: Episode
) -> None:
    """E1: how each is meant, what it names, from which words, and on which beliefs it counts."""
    said = claim(
        episode, 2, sentence="Mara's manager is Ravi now.", subject="Mara's manager", slot="manager", value="ravi",
        mode="change", kind="identity", confidence=0.95, is_told=True, ended=["Dana"], holds_from=date(2026, 3, 1),
        words="Ravi leads us now.", language="en",
    )  # fmt: skip
    claim(episode, 1, mode="asked", confidence=0.1)
    old = factories.belief(workspace=workspace, statement="Mara's manager is Dana.")
    bear(old, said, "CONTRADICTS")

    answer = reader.get(f"/memories/{episode.pk}/claims").json()

    assert (answer["id"], answer["read_at"], answer["other_claims"]) == (episode.pk, "2026-03-01T12:00:00Z", 0)
    assert [(one["number"], one["mode"], one["tier"]) for one in answer["claims"]] == [
        (1, "asked", "speculative"), (2, "change", "explicit"),
    ]  # fmt: skip
    assert answer["claims"][1] == {
        "episode": episode.pk, "number": 2, "sentence": "Mara's manager is Ravi now.", "subject": "Mara's manager",
        "slot": "manager", "value": "ravi", "context": "general", "mode": "change", "kind": "identity",
        "confidence": 0.95, "tier": "explicit", "is_told": True, "is_whole": False, "is_denial": False,
        "ended": ["Dana"], "holds_from": "2026-03-01", "holds_until": None, "words": "Ravi leads us now.",
        "language": "en", "reader": "rules-1",
        "beliefs": [{"id": old.pk, "verdict": "CONTRADICTS", "statement": "Mara's manager is Dana."}],
    }  # fmt: skip


def test_one_that_nobody_read_asserts_nothing_yet(reader: Caller, workspace: Workspace) -> None:
    """E1."""
    unread = factories.episode(workspace=workspace)
    assert reader.get(f"/memories/{unread.pk}/claims").json() == {
        "id": unread.pk, "read_at": None, "claims": [], "other_claims": 0,
    }  # fmt: skip


def test_a_belief_tells_the_claims_that_it_rests_on(reader: Caller, workspace: Workspace, episode: Episode) -> None:
    """E1: the newest first; what its episodes assert besides is not among them."""
    later = factories.episode(workspace=workspace, occurred_at=factories.NOW.replace(month=4))
    belief = factories.belief(workspace=workspace)
    bear(belief, claim(episode, 1, sentence="Earlier."))
    claim(episode, 2, sentence="Something else.")
    bear(belief, claim(later, 1, sentence="Later."), "PARTIAL")

    answer = reader.get(f"/memories/{belief.pk}/claims").json()

    assert (answer["id"], answer["read_at"]) == (belief.pk, None)
    told = [(one["episode"], one["sentence"], one["beliefs"][0]["verdict"]) for one in answer["claims"]]
    assert told == [(later.pk, "Later.", "PARTIAL"), (episode.pk, "Earlier.", "SUPPORTS")]


def test_a_belief_tells_at_most_two_hundred(reader: Caller, workspace: Workspace, episode: Episode) -> None:
    """E1: and how many more there are."""
    belief = factories.belief(workspace=workspace)
    for _ in range(201):
        bear(belief, claim(factories.episode(workspace=workspace)))

    answer = reader.get(f"/memories/{belief.pk}/claims").json()

    assert (len(answer["claims"]), answer["other_claims"]) == (200, 1)


def test_who_is_limited_to_projects_hears_of_theirs_alone(workspace: Workspace) -> None:
    """B21: neither a belief nor an episode of another project."""
    mine, other = (Project.objects.create(workspace=workspace, slug=s, created_at=factories.NOW) for s in "ab")
    limited = caller("read", workspace=workspace, projects=(mine,))
    said = claim(factories.episode(workspace=workspace, project=mine))
    hidden = claim(factories.episode(workspace=workspace, project=other))
    seen = factories.belief(workspace=workspace, project=mine, scope="project")
    unseen = factories.belief(workspace=workspace, project=other, scope="project", statement="Hidden.")
    bear(seen, said)
    bear(seen, hidden)
    bear(unseen, said)

    [shown] = limited.get(f"/memories/{said.episode_id}/claims").json()["claims"]
    assert [one["id"] for one in shown["beliefs"]] == [seen.pk]
    assert [one["episode"] for one in limited.get(f"/memories/{seen.pk}/claims").json()["claims"]] == [said.episode_id]
    for name in (hidden.episode_id, unseen.pk):
        assert is_problem(limited.get(f"/memories/{name}/claims"), 404)


@pytest.mark.parametrize("name", ["ep_000000000000", "bl_000000000000"])
def test_what_is_not_there_is_not_found(reader: Caller, name: str) -> None:
    assert is_problem(reader.get(f"/memories/{name}/claims"), 404)


def test_what_was_forgotten_asserts_nothing_any_more(reader: Caller, workspace: Workspace, episode: Episode) -> None:
    """B19: neither by its own id nor by a belief's."""
    belief = factories.belief(workspace=workspace)
    bear(belief, claim(episode))
    Episode.objects.filter(pk=episode.pk).update(status="forgotten")

    assert is_problem(reader.get(f"/memories/{episode.pk}/claims"), 404)
    assert reader.get(f"/memories/{belief.pk}/claims").json()["claims"] == []


def test_a_word_in_the_query_that_it_does_not_know_is_refused(reader: Caller, episode: Episode) -> None:
    assert is_problem(reader.get(f"/memories/{episode.pk}/claims", limit=3), 422)


def test_a_key_that_may_not_read_is_refused(workspace: Workspace, episode: Episode) -> None:
    assert is_problem(caller("write", workspace=workspace).get(f"/memories/{episode.pk}/claims"), 403)


def test_the_evidence_of_a_belief_names_the_sentence_that_counts(
    reader: Caller, workspace: Workspace, episode: Episode
) -> None:
    """E1, B18: beside the episode's whole text."""
    belief = factories.belief(workspace=workspace)
    bear(belief, claim(episode, sentence="Ravi leads the team now."))

    [line] = reader.get(f"/beliefs/{belief.pk}").json()["evidence"]

    assert (line["text"], line["claim"]) == (episode.text, "Ravi leads the team now.")
