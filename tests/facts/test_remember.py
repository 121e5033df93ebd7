"""How a text is remembered: stored before anything else, and read at once against what is believed (R1, F5)."""

from datetime import timedelta
from typing import Any

import pytest

from memory.domain.identity import content_hash
from memory.facts.remember import actions_of, remember, run_remember_job
from memory.ingest.schemas import IngestContext, Rejected
from memory.models import (
    Belief,
    Claim,
    Episode,
    EpisodeEmbedding,
    Evidence,
    Lineage,
    Link,
    ModelCall,
    ReadingStream,
    RememberJob,
    ShownMemory,
    Workspace,
)
from tests import factories
from tests.consolidation.world import World
from tests.export.files import exported, moved
from tests.facts.telling import SPACES, TABS, TELLER, actions, judges, remembrance_of, states, tell, work_all
from tests.model_server_acts import answer, garbage

pytestmark = pytest.mark.django_db


def test_offline_the_belief_follows_by_a_worker(world: World, offline: None, sent: list[int]) -> None:
    """R1: without a model the answer says queued, and the belief follows."""
    told = tell(world, TABS)
    remembrance = remembrance_of(told)
    assert (told.state, told.beliefs, sent) == ("queued", (), [remembrance.pk])
    run_remember_job(remembrance_id=remembrance.pk, now=world.now)
    belief = world.only_belief()
    assert actions(tell(world, TABS)) == [(belief.pk, "created")]
    assert TABS in belief.statement
    assert (belief.importance, belief.alpha, belief.is_told) == (5, 2.0, True)


def test_offline_a_change_of_mind_ends_what_was_believed(world: World, offline: None, sent: list[int]) -> None:
    """F1, F6: the old one is closed, and the new one takes its place."""
    old, new = "I live in Porto.", "I moved to Bergen last week."
    for text in (old, new):
        tell(world, text, user="mara")
        work_all(world)
    closed = Belief.objects.get(statement="Mara: “I live in Porto.”")
    assert (closed.status, closed.status_reason) == ("invalidated", "changed")
    assert Belief.objects.get(statement="Mara: “I moved to Bergen last week.”").status == "active"


@pytest.mark.parametrize("is_earlier", [True, False])
def test_a_text_of_the_time_of_what_was_closed_counts_there(world: World, is_earlier: bool) -> None:
    """F1, C2: and founds nothing; what holds again later is a belief of its own, which came of the closed one."""
    closed = world.hold(TABS, about="tabs", status="invalidated", status_reason="changed")
    Belief.objects.filter(pk=closed.pk).update(valid_until=world.now)
    judges(world, TABS, TABS, "SUPPORTS")
    at = world.now - timedelta(minutes=1 if is_earlier else 0)
    told = tell(world, TABS, occurred_at=at.isoformat())

    [(key, action)] = actions(told)
    assert (key == closed.pk, action) == (is_earlier, "reinforced" if is_earlier else "created")
    assert world.now_of(closed).alpha == closed.alpha + is_earlier
    assert world.now_of(closed).status == "invalidated"
    descent = Lineage.objects.filter(parent=closed, child=key).values_list("kind", flat=True)
    assert list(descent) == ([] if is_earlier else ["return"])


def test_the_same_words_again_change_nothing(world: World) -> None:
    """R1, L4: the answer says what came of them the first time."""
    first = tell(world, TABS)
    again = tell(world, TABS)
    assert (again.is_duplicate, again.beliefs) == (True, first.beliefs)
    assert (Episode.objects.count(), Evidence.objects.count(), world.calls("read")) == (1, 1, 1)


def test_the_same_key_with_other_words_is_a_conflict(world: World) -> None:
    """R1, L4."""
    tell(world, TABS, idempotency_key="k")
    arrival = IngestContext(workspace=world.workspace, now=world.now, actor=TELLER)
    refused = remember(line={"text": SPACES, "idempotency_key": "k"}, arrival=arrival)
    assert isinstance(refused, Rejected)
    assert refused.status == 409


def stored(world: World, text: str, **given: Any) -> Episode:
    """Store an episode as somebody posts it, before it is remembered in the same words and session."""
    episode = world.say(text, about="tabs", session="s", origin="session:s", **given)
    Episode.objects.filter(pk=episode.pk).update(content_hash=content_hash(text))
    return episode


def test_what_was_stored_before_can_be_remembered(world: World) -> None:
    """R1: the same words of the same origin are one episode, which is read now."""
    episode = stored(world, TABS)
    told = tell(world, TABS, session="s")
    assert (told.episode_id, [action for _, action in actions(told)]) == (episode.pk, ["created"])
    episode.refresh_from_db()
    assert episode.read_at == world.now


@pytest.mark.parametrize("is_offline", [False, True])
def test_what_was_read_before_is_answered_from_its_evidence(
    world: World, is_offline: bool, request: pytest.FixtureRequest
) -> None:
    """F5: a cycle has read it, and nothing is asked again; also offline the answer comes at once."""
    episode = stored(world, TABS, read_at=world.now)
    founded = world.hold(TABS, about="tabs", supports=0)
    ended = world.hold(SPACES, about="tabs", likeness=0.9, status="invalidated", status_reason="changed")
    row = {"workspace": world.workspace, "episode": episode, "created_at": world.now, "base_weight": 1.0}
    Evidence.objects.create(belief=founded, verdict="SUPPORTS", is_founding=True, **row)
    Evidence.objects.create(belief=ended, verdict="CONTRADICTS", **row)
    if is_offline:
        request.getfixturevalue("offline")
    for _ in range(2):
        told = tell(world, TABS, session="s")
        assert (told.state, actions(told)) == ("done", [(founded.pk, "created"), (ended.pk, "superseded")])
    assert world.calls("read") == 0


def test_a_text_is_read_alone_of_its_stream(world: World, sent: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """F2: while a cycle reads messages of the same person, the text waits, and the caller not for ever."""
    monkeypatch.setattr("memory.facts.remember.room_for_a_call", lambda **_: 24.8)  # of 25 s
    tell(world, SPACES, user="mara")
    far = world.now + timedelta(days=36_500)
    ReadingStream.objects.filter(name="user mara").update(lease_owner="a cycle", leased_until=far)
    told = tell(world, TABS, user="mara")
    assert (told.state, told.reason) == ("queued", "other messages of the same person are being read")
    assert tell(world, TABS, user="ben").state == "done"
    ReadingStream.objects.update(leased_until=None)
    work_all(world)
    assert tell(world, TABS, user="mara").state == "done"


def test_a_reply_that_nobody_can_read_leaves_the_text_itself(world: World, hasty: None) -> None:
    """R1: factual, 5; a quotation where it speaks of its speaker."""
    world.server.then(garbage(), garbage(), purpose="read")
    told = tell(world, "I like tabs best.", user="mara")
    belief = world.only_belief()
    assert (told.state, actions(told)) == ("done", [(belief.pk, "created")])
    assert (belief.statement, belief.fact_type, belief.importance) == ("Mara: “I like tabs best.”", "factual", 5)
    assert Claim.objects.get().reader == "the text as it stands"


def test_a_text_that_nobody_can_read_bears_out_what_says_the_same(world: World, hasty: None) -> None:
    """R1: nobody has compared it with what is believed, so that vectors do."""
    said = "Mara: “I like tabs best.”"
    belief = world.hold(said, about="tabs", user="mara", subject="Mara")
    world.server.then(garbage(), garbage(), purpose="read")
    assert actions(tell(world, "I like tabs best.", user="mara")) == [(belief.pk, "reinforced")]


def test_no_question_stands_for_itself(world: World, hasty: None) -> None:
    """R1."""
    world.server.then(garbage(), garbage(), purpose="read")
    told = tell(world, "Does Ana like tabs?", session="s")
    assert (told.state, told.beliefs, Belief.objects.count()) == ("done", (), 0)


def test_a_long_text_that_nobody_can_read_is_left_to_consolidation(world: World, hasty: None) -> None:
    """R1: more than 30 words are no statement; a cycle reads them."""
    text = "Ana " + "really " * 30 + "likes tabs."
    world.server.then(garbage(), garbage(), purpose="read")
    told = tell(world, text, session="s", source="human", user="ana")
    assert (told.state, told.beliefs, remembrance_of(told).state) == ("queued", (), "failed")
    assert Episode.objects.get(pk=told.episode_id).read_at is None

    states(world, text, TABS)
    world.cycle()

    assert world.only_belief().statement == TABS


@pytest.mark.parametrize("reply", ["```json\n{lines}\n```", "{lines}"])
def test_code_fences_and_excess_are_forgiven(world: World, reply: str) -> None:
    """R1: importance is clamped, and what cannot be read of a reply spoils no other line."""
    lines = [f'{{"m": 1, "statement": "Ana owns mill number {n}.", "importance": {n * 9}}}' for n in range(3)]
    lines.append('{"m": 7, "statement": "Ana owns mill number 7."}')
    text = reply.replace("{lines}", f'{{"new": [{", ".join(lines)}], "about": [{{"m": 1, "b": 9, "verdict": "X"}}]}}')
    world.server.script = lambda asked: answer(text) if asked.purpose == "read" else None
    tell(world, TABS)
    found = Belief.objects.order_by("statement").values_list("statement", "importance")
    assert list(found) == [(f"Ana owns mill number {n}.", importance) for n, importance in enumerate([1, 9, 10])]


def test_small_talk_founds_nothing(world: World) -> None:
    """R1: the text is an episode all the same."""
    world.readings["How is the weather?"] = {}
    told = tell(world, "How is the weather?")
    assert (told.state, told.beliefs) == ("done", ())
    assert world.states(Episode.objects.get(pk=told.episode_id)) == ["new"]  # left to consolidation


def test_an_event_founds_nothing_and_is_a_claim_with_its_day(world: World) -> None:
    """F1."""
    text = "Ana flies to Oslo on 2 April."
    states(world, text, text, kind="event", until="2026-04-02")
    told = tell(world, text)
    assert (told.state, told.beliefs, Belief.objects.count()) == ("done", (), 0)
    assert str(Claim.objects.get(kind="event").holds_until) == "2026-04-02"
    assert remembrance_of(told).facts.get().outcome == "heard"


def test_nothing_but_echo_costs_no_call(world: World) -> None:
    """R1, B4: what we said ourselves is no news."""
    told = tell(world, "[Belief (0.85): Ana prefers tabs over spaces.]")
    assert (told.state, told.beliefs, world.calls("read")) == ("done", (), 0)


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
    assert {"read", "embed"} <= {call.purpose for call in world.server.log}
    assert [call for call in world.server.log if secret in str(call)] == []


def test_without_beliefs_a_text_is_only_stored(world: World) -> None:
    """R1, B22."""
    world.workspace.beliefs_enabled = False
    world.workspace.save()
    told = tell(world, TABS)
    assert (told.state, told.beliefs, Episode.objects.count(), RememberJob.objects.count()) == ("done", (), 1, 0)


def test_what_an_assistant_says_of_its_user_asserts_nothing(world: World) -> None:
    """E2: no model is asked, and the episode is stored."""
    told = tell(world, TABS, source="ai", user="ana")
    assert (told.state, told.beliefs, world.calls("read"), Belief.objects.count()) == ("done", (), 0, 0)
    assert Episode.objects.get(pk=told.episode_id).text == TABS


@pytest.mark.parametrize("source", ["human", "ai", "interaction", "ingest"])
def test_what_somebody_wants_remembered_is_told_whatever_it_came_from(world: World, source: str) -> None:
    """F5: an agent may tell what it did itself."""
    seen = []
    usual = world.answer
    world.server.script = lambda asked: seen.append(asked) or usual(asked)  # type: ignore[func-returns-value]
    told = tell(world, "Release 2.4 is deployed.", source=source, speaker="Ops")
    assert [action for _, action in actions(told)] == ["created"]
    assert [message["by"] for asked in seen if asked.purpose == "read" for message in asked.messages] == ["Ops"]


def test_what_an_ai_says_of_what_it_was_shown_weighs_nothing(world: World) -> None:
    """B4, Echo: kept for the record."""
    belief = world.hold(TABS, about="tabs", supports=3)
    ShownMemory.objects.create(workspace=world.workspace, session="s", belief=belief, surfaced_at=world.now)
    judges(world, TABS, TABS, "SUPPORTS")
    told = tell(world, TABS, session="s", source="ai")
    row = Evidence.objects.get(belief=belief, episode=told.episode_id)
    assert (row.kind, row.base_weight, world.now_of(belief).alpha) == ("echo", 0.0, 4.0)
    assert told.beliefs == ()


def test_what_came_of_a_belief_that_was_shown_is_echoed_too(world: World) -> None:
    """B4, Echo: as in cycles, along the lineage."""
    belief = world.hold(TABS, about="tabs", supports=3)
    shown = factories.belief(workspace=world.workspace, status="revised")
    Lineage.objects.create(workspace=world.workspace, parent=shown, child=belief, kind="revision", created_at=world.now)
    ShownMemory.objects.create(workspace=world.workspace, session="s", belief=shown, surfaced_at=world.now)
    judges(world, TABS, TABS, "SUPPORTS")
    told = tell(world, TABS, session="s", source="ai")
    assert Evidence.objects.get(belief=belief, episode=told.episode_id).kind == "echo"


def test_what_an_ai_said_before_it_was_shown_a_belief_counts(world: World) -> None:
    """B4, Echo: nothing can be repeated that was not known."""
    belief = world.hold(TABS, about="tabs", supports=3)
    later = world.now + timedelta(hours=1)
    ShownMemory.objects.create(workspace=world.workspace, session="s", belief=belief, surfaced_at=later)
    judges(world, TABS, TABS, "SUPPORTS")
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
    """R14: remembered texts, their facts, and links."""
    world.hold("Ana never uses tabs.", about="tabs", likeness=0.6)
    world.directions.place(TABS, {"tabs": 0.99})
    tell(world, TABS)
    file, fresh = moved(world.workspace)
    assert exported(fresh) == file
    assert actions_again(fresh) == ["created"]
    assert Link.objects.filter(workspace=fresh).count() == 1


def actions_again(workspace: Workspace) -> list[str]:
    return [one.action for one in actions_of(remembrance=RememberJob.objects.get(workspace=workspace))]


def test_a_queued_text_costs_no_tokens(world: World, offline: None, sent: list[int]) -> None:
    """R1: the offline reader's word stands in the ledger."""
    tell(world, TABS)
    work_all(world)
    assert set(ModelCall.objects.values_list("purpose", "input_tokens")) == {("read", 0)}
