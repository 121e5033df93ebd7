"""E1: episodes of before there were claims are read by a command, within a limit, and none twice."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.ingest.store import embed_episodes
from memory.models import Claim, ClaimEmbedding, Episode, Evidence, TurnEpisode, Workspace
from tests import factories
from tests.consolidation.telling import Teller

pytestmark = pytest.mark.django_db

HELD = {"source": "human", "user": "mara", "language": "en"}


@pytest.fixture
def workspace() -> Workspace:
    """Return an empty workspace."""
    return factories.workspace(name="old")


def pooled(workspace: Workspace, text: str, **given: Any) -> Episode:
    """Store what a cycle of before put into the pool."""
    fields = {**HELD, "state": "pooled", "pooled_at": factories.NOW, **given}
    episode = factories.episode(workspace=workspace, text=text, **fields)
    embed_episodes(workspace_id=workspace.pk, matters={episode.pk: text})
    return episode


def fact(workspace: Workspace, text: str, **given: Any) -> Episode:
    """Store what an extraction made of a turn."""
    episode = pooled(workspace, text, category="preference", confidence=0.95, **given)
    turn = factories.turn(workspace=workspace, content=text, state="extracted")
    TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=episode)
    return episode


def read(**given: Any) -> dict[str, Any]:
    out = StringIO()
    call_command("read_claims", workspace="old", json=True, stdout=out, **given)
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def test_the_pool_is_read_and_what_is_settled_is_not(workspace: Workspace) -> None:
    """E1: nor what waits for a cycle, which reads it itself, nor what was forgotten."""
    mine = pooled(workspace, "My manager is Dana. I always drink oat milk.")
    for given in ({"state": "settled"}, {"state": "new"}, {"status": "forgotten"}, {"is_derived": True}):
        pooled(workspace, f"My manager is Ravi, {given}.", **given)

    assert read() == {"workspace": "old", "episodes": 1, "facts": 0, "claims": 2, "left": 0}

    assert set(Claim.objects.values_list("episode", flat=True)) == {mine.pk}
    assert Episode.objects.exclude(read_at=None).get() == mine
    assert ClaimEmbedding.objects.filter(claim__episode=mine).count() == 2


def test_a_fact_is_one_claim_as_it_stands(workspace: Workspace) -> None:
    """E1: pooled or settled, whatever its words would be read as; its vector is its episode's."""
    texts = ["Mara prefers tea. She dislikes coffee.", "Mara likes rain."]
    facts = [fact(workspace, text, state=state) for text, state in zip(texts, ("settled", "pooled"), strict=True)]

    assert read() == {"workspace": "old", "episodes": 2, "facts": 2, "claims": 2, "left": 0}

    told = Claim.objects.order_by("pk").values_list("episode", "sentence", "is_whole", "confidence", "is_told")
    assert set(told) == {(one.pk, one.text, True, 0.95, False) for one in facts}
    assert not ClaimEmbedding.objects.exists()
    assert {one.state for one in Episode.objects.all()} == {"settled", "pooled"}


def test_a_turn_in_its_own_words_is_no_fact(workspace: Workspace) -> None:
    """E1: it waits for a cycle, and in the pool it is read like all speech."""
    words = "I prefer tea. My manager is Dana."
    turn = factories.turn(workspace=workspace, content=words, state="extracted")
    for state in ("settled", "new", "pooled"):
        episode = pooled(workspace, words, state=state, confidence=0.95, session=state)
        TurnEpisode.objects.create(workspace=workspace, turn=turn, episode=episode, is_verbatim=True)

    assert read() == {"workspace": "old", "episodes": 1, "facts": 0, "claims": 2, "left": 0}

    assert {claim.episode.state for claim in Claim.objects.all()} == {"pooled"}


def test_a_fact_whose_words_a_turn_repeats_stays_a_fact(workspace: Workspace) -> None:
    """E1: what was stored before is read as what it is, though a later turn is the same episode (L4)."""
    one = fact(workspace, "Tea is for the guests.", state="settled")
    later = factories.turn(workspace=workspace, content=one.text, state="extracted")
    TurnEpisode.objects.create(workspace=workspace, turn=later, episode=one, is_verbatim=True)

    assert read()["facts"] == 1


def test_it_goes_on_where_it_was(workspace: Workspace) -> None:
    """E1: within its limit, the oldest first; in the end there is nothing to do."""
    for number in range(5):
        pooled(workspace, f"My desk number is {number}.", occurred_at=factories.NOW.replace(day=5 - number))
    assert [read(limit=2)["left"], read(limit=2)["left"]] == [3, 1]
    assert not Claim.objects.filter(episode__text="My desk number is 0.").exists()
    assert (read()["episodes"], read()["episodes"]) == (1, 0)


def test_what_was_killed_before_it_had_vectors_gets_them(workspace: Workspace) -> None:
    """E1: claims without a vector would be found by no cycle."""
    pooled(workspace, "My manager is Dana.")
    read()
    ClaimEmbedding.objects.all().delete()

    assert read()["episodes"] == 0

    assert ClaimEmbedding.objects.count() == 1


def test_a_cycle_hears_what_was_read(workspace: Workspace) -> None:
    """E3: a claim of the pool bears out a belief that is there."""
    mara = Teller(workspace=workspace)
    mara.cycle("My manager is Dana.")
    old = pooled(workspace, "Dana is my manager.", pooled_at=mara.now, occurred_at=mara.now)
    read()

    mara.cycle()

    assert Evidence.objects.filter(episode=old, verdict="SUPPORTS").exists()


def test_an_unknown_workspace_is_bad_usage() -> None:
    with pytest.raises(CommandError) as raised:
        call_command("read_claims", workspace="nowhere")
    assert raised.value.returncode == 2
