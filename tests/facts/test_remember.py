"""How a text is remembered: stored before anything else, and followed by what is believed of it (R1)."""

from datetime import timedelta
from typing import Any

import pytest

from memory.facts.remember import actions_of, remember, run_remember_job
from memory.ingest.schemas import IngestContext, Rejected
from memory.models import (
    Belief,
    Episode,
    EpisodeEmbedding,
    Evidence,
    Lineage,
    Link,
    ModelCall,
    RememberJob,
    ShownMemory,
    Workspace,
)
from tests import factories
from tests.consolidation.world import World
from tests.export.files import exported, moved
from tests.facts.telling import SPACES, TABS, TELLER, actions, remembrance_of, tell, work_all
from tests.model_server_acts import garbage

pytestmark = pytest.mark.django_db


def test_rules_follow_by_a_worker(world: World, offline: None, sent: list[int]) -> None:
    """R1: without a model the answer says queued, and the belief follows."""
    told = tell(world, TABS)
    remembrance = remembrance_of(told)
    assert (told.state, told.beliefs, sent) == ("queued", (), [remembrance.pk])
    run_remember_job(remembrance_id=remembrance.pk, now=world.now)
    belief = world.only_belief()
    assert actions(tell(world, TABS)) == [(belief.pk, "created")]
    assert (belief.statement, belief.subject, belief.importance, belief.alpha) == (TABS, "ana", 5, 2.0)


def test_a_change_of_mind_is_understood_by_rules(world: World, offline: None, sent: list[int]) -> None:
    """R3, C3: offline, a belief of one episode is challenged."""
    for text in (TABS, SPACES):
        tell(world, text)
        work_all(world)
    statuses = dict(Belief.objects.values_list("statement", "status"))
    assert statuses == {TABS: "challenged", SPACES: "active"}


@pytest.mark.parametrize("is_late", [True, False])
def test_a_fact_of_the_time_of_what_was_closed_counts_there(world: World, is_late: bool) -> None:
    """R2, C2: and founds nothing; what is remembered of a later time founds a belief again."""
    closed = world.hold(TABS, about="tabs", status="invalidated", status_reason="changed")
    Belief.objects.filter(pk=closed.pk).update(valid_until=world.now)
    at = world.now - timedelta(minutes=1 if is_late else 0)
    told = tell(world, TABS, occurred_at=at.isoformat())

    [(key, action)] = actions(told)
    assert (key == closed.pk, action) == (is_late, "reinforced" if is_late else "created")
    assert world.now_of(closed).alpha == closed.alpha + is_late
    assert world.now_of(closed).status == "invalidated"


def test_the_same_words_again_change_nothing(world: World) -> None:
    """R1, L4: the answer says what came of them the first time."""
    first = tell(world, TABS)
    again = tell(world, TABS)
    assert (again.is_duplicate, again.beliefs) == (True, first.beliefs)
    assert (Episode.objects.count(), Evidence.objects.count(), world.calls("remember")) == (1, 1, 1)


def test_the_same_key_with_other_words_is_a_conflict(world: World) -> None:
    """R1, L4."""
    tell(world, TABS, idempotency_key="k")
    arrival = IngestContext(workspace=world.workspace, now=world.now, actor=TELLER)
    refused = remember(line={"text": SPACES, "idempotency_key": "k"}, arrival=arrival)
    assert isinstance(refused, Rejected)
    assert refused.status == 409


def test_what_was_stored_before_can_be_remembered(world: World) -> None:
    """R1: the same words of the same origin are one episode, whose facts are wanted now."""
    world.directions.place(TABS, {"tabs": 1.0})
    episode = world.say(TABS, about="tabs", session="s", origin="session:s")
    Episode.objects.filter(pk=episode.pk).update(content_hash=_hash_of(TABS))
    told = tell(world, TABS, session="s")
    assert (told.episode_id, [action for _, action in actions(told)]) == (episode.pk, ["created"])


def _hash_of(text: str) -> str:
    from memory.domain.identity import content_hash

    return content_hash(text)


def test_a_reply_that_nobody_can_read_leaves_the_text_itself(world: World, hasty: None) -> None:
    """R1: factual, 5, the owner's."""
    world.server.then(garbage(), garbage(), purpose="remember")
    tell(world, TABS)
    belief = world.only_belief()
    assert (belief.statement, belief.fact_type, belief.importance, belief.subject) == (TABS, "factual", 5, "owner")


@pytest.mark.parametrize("reply", ["```json\n{facts}\n```", "{facts}"])
def test_code_fences_and_excess_are_forgiven(world: World, reply: str) -> None:
    """R1: at most three facts, each clamped."""
    facts = ", ".join(f'{{"fact": "Ana owns mill number {n}.", "importance": {n * 9}}}' for n in range(5))
    text = reply.replace("{facts}", f'{{"facts": [{facts}]}}')
    world.server.script = lambda asked: _say(text) if asked.purpose == "remember" else None
    tell(world, TABS)
    found = Belief.objects.order_by("statement").values_list("statement", "importance", "subject", "fact_type")
    assert list(found) == [
        (f"Ana owns mill number {n}.", importance, "owner", "factual") for n, importance in enumerate([1, 9, 10])
    ]


def _say(text: str) -> Any:
    from tests.model_server_acts import answer

    return answer(text)


def test_small_talk_founds_nothing(world: World) -> None:
    """R1: what a model takes for a fact all the same is refused."""
    told = tell(world, "How is the weather?")
    assert (told.state, told.beliefs) == ("done", ())
    assert world.states(Episode.objects.get(pk=told.episode_id)) == ["new"]  # left to consolidation


@pytest.mark.parametrize("text", ["Ana's password is [redacted: password].", '{"status": "Ana is on leave"}'])
def test_what_nobody_said_founds_nothing(world: World, text: str) -> None:
    """R1: markers in a frame, and what a program printed, though a model takes them for facts."""
    told = tell(world, text)
    assert (told.state, told.beliefs, Belief.objects.count()) == ("done", (), 0)


def test_a_wish_to_remember_is_no_part_of_what_is_believed(world: World, offline: None, sent: list[int]) -> None:
    """R1: offline, the request's words are left out."""
    tell(world, f"Could you remember that {TABS.removesuffix('.')}?")
    work_all(world)
    assert world.only_belief().statement == TABS


def test_nothing_but_echo_costs_no_call(world: World) -> None:
    """R1, B4: what we said ourselves is no news."""
    told = tell(world, "[Belief (0.85): Ana prefers tabs over spaces.]")
    assert (told.state, told.beliefs, world.calls("remember")) == ("done", (), 0)


def test_a_text_from_before_redaction_is_embedded_without_its_secrets(world: World, sent: list[int]) -> None:
    """R1, L2: nor does a model see them."""
    secret = "ghp_" + "Zq8r2TzLdKewJalrXUtn9aB3cD4eF5gH6iJ7"
    episode = world.say(f"{TABS} Her key is {secret}.", about="tabs")
    EpisodeEmbedding.objects.all().delete()
    RememberJob.objects.create(
        episode=episode, workspace=world.workspace, actor=str(TELLER), created_at=world.now
    )  # fmt: skip
    work_all(world)
    assert RememberJob.objects.get().state == "done"
    assert {"remember", "embed"} <= {call.purpose for call in world.server.log}
    assert [call for call in world.server.log if secret in str(call)] == []


def test_without_beliefs_a_text_is_only_stored(world: World) -> None:
    """R1, B22."""
    world.workspace.beliefs_enabled = False
    world.workspace.save()
    told = tell(world, TABS)
    assert (told.state, told.beliefs, Episode.objects.count(), RememberJob.objects.count()) == ("done", (), 1, 0)


def test_what_an_ai_says_of_what_it_was_shown_weighs_nothing(world: World) -> None:
    """R2, B4, Echo: kept for the record."""
    belief = world.hold(TABS, about="tabs", supports=3)
    ShownMemory.objects.create(workspace=world.workspace, session="s", belief=belief, surfaced_at=world.now)
    told = tell(world, TABS, session="s", source="ai")
    row = Evidence.objects.get(belief=belief, episode=told.episode_id)
    assert (row.kind, row.base_weight, world.now_of(belief).alpha) == ("echo", 0.0, 4.0)


def test_what_came_of_a_belief_that_was_shown_is_echoed_too(world: World) -> None:
    """R2, B4, Echo: as in cycles, along the lineage."""
    belief = world.hold(TABS, about="tabs", supports=3)
    shown = factories.belief(workspace=world.workspace, status="revised")
    Lineage.objects.create(workspace=world.workspace, parent=shown, child=belief, kind="revision", created_at=world.now)
    ShownMemory.objects.create(workspace=world.workspace, session="s", belief=shown, surfaced_at=world.now)
    told = tell(world, TABS, session="s", source="ai")
    assert Evidence.objects.get(belief=belief, episode=told.episode_id).kind == "echo"


def test_what_an_ai_said_before_it_was_shown_a_belief_counts(world: World) -> None:
    """R2, B4, Echo: nothing can be repeated that was not known."""
    belief = world.hold(TABS, about="tabs", supports=3)
    later = world.now + timedelta(hours=1)
    ShownMemory.objects.create(workspace=world.workspace, session="s", belief=belief, surfaced_at=later)
    told = tell(world, TABS, session="s", source="ai")
    row = Evidence.objects.get(belief=belief, episode=told.episode_id)
    assert (row.kind, row.base_weight, world.now_of(belief).alpha) == ("ordinary", 1.0, 5.0)


def test_project_and_user_are_the_episodes(world: World) -> None:
    """R1, B21."""
    tell(world, TABS, project="mill", user="mara")
    belief = world.only_belief()
    assert belief.project is not None
    assert (belief.scope, belief.project.slug, belief.user) == ("project", "mill", "mara")


def test_an_export_holds_what_became_of_facts(world: World) -> None:
    """R14: remembrances, their facts, and links."""
    world.hold("Ana never uses tabs.", about="tabs", likeness=0.6)
    world.directions.place(TABS, {"tabs": 0.99})
    tell(world, TABS)
    file, fresh = moved(world.workspace)
    assert exported(fresh) == file
    assert actions_again(fresh) == ["created"]
    assert Link.objects.filter(workspace=fresh).count() == 1


def actions_again(workspace: Workspace) -> list[str]:
    return [one.action for one in actions_of(remembrance=RememberJob.objects.get(workspace=workspace))]


def test_a_queued_text_makes_no_calls_of_its_own(world: World, offline: None, sent: list[int]) -> None:
    """R1: rules cost nothing; their word stands in the ledger."""
    tell(world, TABS)
    work_all(world)
    assert set(ModelCall.objects.values_list("purpose", "input_tokens")) == {("remember", 0)}
