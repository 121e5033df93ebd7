"""How a text is remembered: stored before anything else, and followed by its beliefs exactly once (R1)."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from memory.consolidation.verify import find_drift
from memory.domain.actor import Actor, ActorKind
from memory.forgetting.forget import forget_episode
from memory.ingest.arrival import Arrival, Rejected
from memory.llm import budget as budget_module
from memory.metrics import render_metrics
from memory.models import (
    Belief,
    BeliefEmbedding,
    Episode,
    EpisodeEmbedding,
    Evidence,
    Lineage,
    Link,
    ModelCall,
    Pause,
    Remembrance,
    Surfaced,
    Workspace,
)
from memory.remembering import working
from memory.remembering.reading import Reading, read_text
from memory.remembering.remember import Remembered, actions_of, remember
from memory.remembering.sweeping import wake_remembrances
from memory.remembering.working import work_remembrance
from tests import factories
from tests.consolidation.conftest import Decree
from tests.consolidation.world import World
from tests.model_server import garbage, refuse
from tests.remembering.telling import TELLER, actions, remembrance_of, tell
from tests.remembering.test_reflecting import run
from tests.transfer.files import exported, moved

pytestmark = pytest.mark.django_db

TABS = "Ana prefers tabs over spaces."
SPACES = "Ana prefers spaces over tabs."


@pytest.fixture
def offline(settings: Settings) -> None:
    settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "offline"


def make_due() -> None:
    """Let the time pass after which the sweeper looks again."""
    Remembrance.objects.update(due_at=Now() - timedelta(seconds=1))


def work_all(world: World) -> None:
    """Do what the sweeper would have workers do."""
    make_due()
    wake_remembrances()
    for key in Remembrance.objects.queued().values_list("pk", flat=True):
        work_remembrance(remembrance_id=key, now=world.now)


def test_rules_follow_by_a_worker(world: World, offline: None, sent: list[int]) -> None:
    """R1: without a model the answer says queued, and the belief follows."""
    told = tell(world, TABS)
    remembrance = remembrance_of(told)
    assert (told.state, told.beliefs, sent) == ("queued", (), [remembrance.pk])
    work_remembrance(remembrance_id=remembrance.pk, now=world.now)
    belief = world.only_belief()
    assert actions(tell(world, TABS)) == [(belief.pk, "created")]
    assert (belief.statement, belief.subject, belief.importance, belief.alpha) == (TABS, "owner", 5, 2.0)


def test_a_change_of_mind_is_understood_by_rules(world: World, offline: None, sent: list[int]) -> None:
    """R3: offline, a belief of one episode is superseded."""
    for text in (TABS, SPACES):
        tell(world, text)
        work_all(world)
    statuses = dict(Belief.objects.values_list("statement", "status"))
    assert statuses == {TABS: "invalidated", SPACES: "active"}


def test_the_same_words_again_change_nothing(world: World) -> None:
    """R1, L4: the answer says what came of them the first time."""
    first = tell(world, TABS)
    again = tell(world, TABS)
    assert (again.is_duplicate, again.beliefs) == (True, first.beliefs)
    assert (Episode.objects.count(), Evidence.objects.count(), world.calls("remember")) == (1, 1, 1)


def test_the_same_key_with_other_words_is_a_conflict(world: World) -> None:
    """R1, L4."""
    tell(world, TABS, idempotency_key="k")
    arrival = Arrival(workspace=world.workspace, now=world.now, actor=TELLER)
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
    from memory.domain.content_hash import content_hash

    return content_hash(text)


def test_forgotten_words_stay_forgotten(world: World) -> None:
    """R1, L4."""
    told = tell(world, TABS)
    person = Actor(kind=ActorKind.PERSON, name="lena")
    forget_episode(episode=Episode.objects.get(pk=told.episode_id), actor=person, now=world.now)
    again = tell(world, TABS)
    assert (again.state, again.beliefs, again.is_forgotten) == ("done", (), True)


def forget(told: Remembered, world: World) -> None:
    person = Actor(kind=ActorKind.PERSON, name="lena")
    forget_episode(episode=Episode.objects.get(pk=told.episode_id), actor=person, now=world.now)


def test_a_text_forgotten_while_it_waits_is_not_read(world: World, offline: None, sent: list[int]) -> None:
    """R1, B19: no model sees it, and nothing is believed of it."""
    told = tell(world, TABS)
    forget(told, world)
    work_all(world)
    row = remembrance_of(told)
    assert (row.state, row.state_reason, row.claims) == ("done", "forgotten", 0)
    assert (Belief.objects.count(), ModelCall.objects.count(), row.facts.count()) == (0, 0, 0)


def test_a_text_forgotten_while_it_is_read_founds_nothing(
    world: World, offline: None, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1, B19: between the model's reply and the gate, somebody forgets it."""
    told = tell(world, TABS)

    def read_and_forget(**asked: Any) -> Reading:
        reading = read_text(**asked)
        forget(told, world)
        return reading

    monkeypatch.setattr(working, "read_text", read_and_forget)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).state_reason) == ("done", "forgotten")
    assert (Belief.objects.count(), Evidence.objects.count()) == (0, 0)


def test_a_belief_that_waits_for_a_vector_gets_it_from_a_forgotten_text(
    world: World, hasty: None, sent: list[int]
) -> None:
    """R2, B19: and no more: what the text would have borne out stays as it is."""
    belief = world.hold(TABS, about="tabs", supports=3)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    [(unmatched, _)] = actions(told)
    forget(told, world)
    world.trouble.broken.clear()
    work_all(world)
    assert (world.now_of(belief).alpha, Belief.objects.get(pk=unmatched).status) == (4.0, "archived")
    assert BeliefEmbedding.objects.filter(belief=unmatched).exists()
    assert not EpisodeEmbedding.objects.filter(episode=told.episode_id).exists()
    assert remembrance_of(told).state == "done"


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


@pytest.mark.parametrize("status", [503, 401, 429])
def test_a_server_that_fails_costs_no_belief(world: World, hasty: None, sent: list[int], status: int) -> None:
    """R1: the text is stored, and its beliefs follow when the server is back."""
    world.trouble.broken["remember"] = refuse(status)
    told = tell(world, TABS)
    assert (told.state, Episode.objects.count(), Belief.objects.count()) == ("queued", 1, 0)
    remembrance = remembrance_of(told)
    assert remembrance.state_reason
    assert remembrance.claims == 0
    world.trouble.broken.clear()
    work_all(world)
    assert remembrance_of(told).state == "done"
    assert world.only_belief().alpha == 2.0


def test_a_server_that_leaves_no_time_is_asked_ever_less_often(
    world: World, decree: Decree, settings: Settings, sent: list[int]
) -> None:
    """R1, B9: what ends an attempt for want of time is a failure like any other: 2 minutes, then 4."""
    budget = settings.POLICY.budget
    decree("remember", answer_seconds=budget.call_seconds + budget.margin_seconds + 0.3)  # one call, and no second
    world.trouble.broken["remember"] = refuse(503)
    told = tell(world, TABS)
    assert remembrance_of(told).failures == 1
    assert seconds_to_wait(told) == pytest.approx(120, abs=5)
    work_all(world)
    assert remembrance_of(told).failures == 2
    assert seconds_to_wait(told) == pytest.approx(240, abs=5)


def test_a_worker_that_ends_has_the_text_sent_again_at_once(
    world: World, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1: that is nobody's failure."""
    for module in (working, budget_module):
        monkeypatch.setattr(module, "is_ending", lambda: True)
    told = tell(world, TABS)
    assert remembrance_of(told).failures == 0
    assert seconds_to_wait(told) == pytest.approx(0, abs=5)
    assert world.calls("remember") == 0


def seconds_to_wait(told: Remembered) -> float:
    """Return how long the sweeper leaves a text alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM due_at - now()) FROM memory_remembrance WHERE episode_id = %s", [told.episode_id]
        )
        return float(cursor.fetchone()[0])


def test_a_capped_workspace_answers_at_once(world: World, sent: list[int]) -> None:
    """R1, B9: no call is made, and none is lost."""
    Workspace.objects.update(daily_token_cap=1)
    world.workspace.refresh_from_db()
    told = tell(world, TABS)
    assert (told.state, len(world.server.log)) == ("queued", 0)
    Workspace.objects.update(daily_token_cap=None)
    work_all(world)
    assert remembrance_of(told).state == "done"


def test_a_text_from_before_redaction_is_embedded_without_its_secrets(world: World, sent: list[int]) -> None:
    """R1, L2: nor does a model see them."""
    secret = "ghp_" + "Zq8r2TzLdKewJalrXUtn9aB3cD4eF5gH6iJ7"
    episode = world.say(f"{TABS} Her key is {secret}.", about="tabs")
    EpisodeEmbedding.objects.all().delete()
    Remembrance.objects.create(
        episode=episode, workspace=world.workspace, actor=str(TELLER), created_at=world.now
    )  # fmt: skip
    work_all(world)
    assert Remembrance.objects.get().state == "done"
    assert {"remember", "embed"} <= {call.purpose for call in world.server.log}
    assert [call for call in world.server.log if secret in str(call)] == []


def test_a_resting_workspace_answers_at_once(world: World, sent: list[int]) -> None:
    """R1, B9: and is left alone until it has rested."""
    from memory.llm.fingerprint import fingerprint_models

    Pause.objects.create(
        workspace=world.workspace, reason="failures", until=Now() + timedelta(hours=1),
        fingerprint=fingerprint_models(), since=Now(), failures=1,
    )  # fmt: skip
    told = tell(world, TABS)
    assert (told.state, len(world.server.log)) == ("queued", 0)
    make_due()
    assert wake_remembrances() == 0
    Pause.objects.all().delete()
    work_all(world)
    assert remembrance_of(told).state == "done"


def test_without_beliefs_a_text_is_only_stored(world: World) -> None:
    """R1, B22."""
    world.workspace.is_believing = False
    world.workspace.save()
    told = tell(world, TABS)
    assert (told.state, told.beliefs, Episode.objects.count(), Remembrance.objects.count()) == ("done", (), 1, 0)


def test_a_message_that_comes_twice_changes_nothing(world: World) -> None:
    """R1: exactly once."""
    remembrance = remembrance_of(tell(world, TABS))
    work_remembrance(remembrance_id=remembrance.pk, now=world.now)
    assert (Evidence.objects.count(), world.calls("remember")) == (1, 1)


def test_a_held_remembrance_is_left_to_its_holder(world: World, offline: None, sent: list[int]) -> None:
    """R1: and taken over when its lease has run out."""
    remembrance = remembrance_of(tell(world, TABS))
    Remembrance.objects.update(lease_owner="another", leased_until=Now() + timedelta(seconds=20), claims=1)
    work_remembrance(remembrance_id=remembrance.pk, now=world.now)
    assert not Belief.objects.exists()
    Remembrance.objects.update(leased_until=Now() - timedelta(seconds=1))
    work_all(world)
    assert remembrance_of(tell(world, TABS)).state == "done"


def test_what_cost_five_workers_is_left_to_consolidation(world: World, offline: None, sent: list[int]) -> None:
    """R1: poison ends, and the episode waits like any other."""
    told = tell(world, TABS)
    Remembrance.objects.update(claims=5)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).state_reason) == ("failed", "claimed too often")
    assert world.states(Episode.objects.get(pk=told.episode_id)) == ["new"]


def test_what_failed_is_seen_and_can_be_tried_again(world: World, offline: None, sent: list[int]) -> None:
    """R1, B11: beside the dead letters."""
    told = tell(world, TABS)
    Remembrance.objects.update(claims=5)
    work_all(world)
    assert b"engram_failed_remembrances 1.0" in render_metrics(tasks=[])
    [row] = run("dead_letters", "--remembered", "--workspace", world.workspace.name, "--retry")["dead_letters"]
    assert (row["id"], row["reason"]) == (told.episode_id, "claimed too often")
    work_all(world)
    assert remembrance_of(told).state == "done"
    assert world.only_belief().statement == TABS


def test_a_belief_without_a_vector_is_never_given_up(world: World, hasty: None, sent: list[int]) -> None:
    """R1, R2: what waits for a vector rests for 4 hours, and is compared then."""
    belief = world.hold(TABS, about="tabs", supports=3)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    world.trouble.broken.clear()
    Remembrance.objects.update(claims=5)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).claims) == ("queued", 0)
    assert seconds_to_wait(told) == pytest.approx(4 * 3600, abs=5)
    work_all(world)
    assert actions(tell(world, "Ana prefers tabs over spaces!")) == [(belief.pk, "reinforced")]


def test_an_error_of_ours_loses_nothing(
    world: World, sent: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """R1: the caller is told that it waits; the claim stays counted."""
    monkeypatch.setattr(working, "read_text", lambda **_: 1 / 0)
    told = tell(world, TABS)
    assert (told.state, remembrance_of(told).claims) == ("queued", 1)
    assert "remembering_failed" in caplog.text
    monkeypatch.undo()
    work_all(world)
    assert remembrance_of(told).state == "done"


def test_the_sweeper_sends_what_was_lost_once(world: World, offline: None, sent: list[int]) -> None:
    """R1: a message that got lost costs a minute."""
    remembrance = remembrance_of(tell(world, TABS))
    sent.clear()
    assert wake_remembrances() == 0
    make_due()
    assert [wake_remembrances(), wake_remembrances()] == [1, 0]
    assert sent == [remembrance.pk]


def test_without_a_vector_a_belief_is_made_and_matched_later(world: World, hasty: None, sent: list[int]) -> None:
    """R2: it joins what says the same, once an embedding can be had."""
    belief = world.hold(TABS, about="tabs", supports=3)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    [(unmatched, action)] = actions(told)
    assert (told.state, action) == ("queued", "created")
    assert unmatched != belief.pk
    world.trouble.broken.clear()
    work_all(world)
    assert actions(tell(world, "Ana prefers tabs over spaces!")) == [(belief.pk, "reinforced")]
    assert world.now_of(belief).alpha == 5.0
    assert Belief.objects.get(pk=unmatched).status == "merged"
    assert EpisodeEmbedding.objects.filter(episode=told.episode_id).exists()
    assert find_drift(workspace=world.workspace)[1] == []


def test_an_unmatched_belief_contradicts_later(world: World, hasty: None, sent: list[int]) -> None:
    """R2, R3."""
    belief = world.hold(TABS, about="tabs", supports=3)
    world.directions.place(SPACES, {"tabs": 0.95})
    world.contradictions[SPACES] = TABS
    world.trouble.broken["embed"] = refuse(500)
    tell(world, SPACES)
    assert world.now_of(belief).beta == 1.0
    world.trouble.broken.clear()
    work_all(world)
    assert [action for _, action in actions(tell(world, SPACES))] == ["created", "weakened"]
    assert world.now_of(belief).beta == 2.0


def test_what_an_ai_says_of_what_it_was_shown_weighs_nothing(world: World) -> None:
    """R2, B4, Echo: kept for the record."""
    belief = world.hold(TABS, about="tabs", supports=3)
    Surfaced.objects.create(workspace=world.workspace, session="s", belief=belief, surfaced_at=world.now)
    told = tell(world, TABS, session="s", source="ai")
    row = Evidence.objects.get(belief=belief, episode=told.episode_id)
    assert (row.kind, row.base_weight, world.now_of(belief).alpha) == ("echo", 0.0, 4.0)


def test_what_came_of_a_belief_that_was_shown_is_echoed_too(world: World) -> None:
    """R2, B4, Echo: as in cycles, along the lineage."""
    belief = world.hold(TABS, about="tabs", supports=3)
    shown = factories.belief(workspace=world.workspace, status="revised")
    Lineage.objects.create(workspace=world.workspace, parent=shown, child=belief, kind="revision", created_at=world.now)
    Surfaced.objects.create(workspace=world.workspace, session="s", belief=shown, surfaced_at=world.now)
    told = tell(world, TABS, session="s", source="ai")
    assert Evidence.objects.get(belief=belief, episode=told.episode_id).kind == "echo"


def test_what_an_ai_said_before_it_was_shown_a_belief_counts(world: World) -> None:
    """R2, B4, Echo: nothing can be repeated that was not known."""
    belief = world.hold(TABS, about="tabs", supports=3)
    later = world.now + timedelta(hours=1)
    Surfaced.objects.create(workspace=world.workspace, session="s", belief=belief, surfaced_at=later)
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
    return [one.action for one in actions_of(remembrance=Remembrance.objects.get(workspace=workspace))]


def test_a_queued_text_makes_no_calls_of_its_own(world: World, offline: None, sent: list[int]) -> None:
    """R1: rules cost nothing; their word stands in the ledger."""
    tell(world, TABS)
    work_all(world)
    assert set(ModelCall.objects.values_list("purpose", "input_tokens")) == {("remember", 0)}
