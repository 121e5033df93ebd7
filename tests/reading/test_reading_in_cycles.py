"""What people say is read against what is believed, and what the reader says of it is kept (E3, F1–F3)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Count

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.cycle import find_pause, open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.jobs import CLAIMED_TOO_OFTEN
from memory.consolidation.read import let_pooled_be_read, plan_readings
from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import undo_cycle
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import ConsolidationState, CycleState
from memory.llm.reader import Reader
from memory.models import (
    Belief,
    BeliefEmbedding,
    Claim,
    ClusterJob,
    Episode,
    Evidence,
    Lineage,
    MetricCounter,
    ModelCall,
    PauseReason,
    Trigger,
)
from memory.models.audit import DROPPED_LINES
from tests.consolidation.inline import run_cycle, run_steps
from tests.consolidation.world import Reply, World
from tests.model_server import Act, garbage, refuse, stall

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)
LEIPZIG, DRESDEN = "Ines lives in Leipzig.", "Ines lives in Dresden."


def tell(world: World, text: str, reply: Reply | None = None, **given: Any) -> Episode:
    """Store what Ines says, and what its reader is to make of it."""
    if reply is not None:
        world.readings[text] = reply
    return world.say(text, about=text, source="human", user="ines", **given)


def new(statement: str, **given: Any) -> dict[str, list[dict[str, Any]]]:
    return {"new": [{"statement": statement, **given}]}


def about(statement: str, verdict: str, **given: Any) -> dict[str, list[dict[str, Any]]]:
    return {"about": [{"b": statement, "verdict": verdict, **given}]}


def belief(statement: str) -> Belief:
    return Belief.objects.get(statement=statement)


def move(world: World, *, day: str = "") -> None:
    """Let Ines live in Leipzig, and move."""
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += DAY
    tell(world, "I moved to Dresden.", new(DRESDEN, replaces=LEIPZIG, **({"from": day} if day else {})))
    world.cycle()


def test_what_is_told_is_believed_at_once(world: World) -> None:
    episode = tell(world, "I live in Leipzig.", new(LEIPZIG, subject="Ines", category="fact"))

    world.cycle()

    told = belief(LEIPZIG)
    assert (told.alpha, told.beta, told.is_told, told.user) == (2.0, 1.0, True, "ines")
    claim = Claim.objects.get(episode=episode)
    assert (claim.sentence, claim.kind, claim.category) == (LEIPZIG, "lasting", "fact")
    assert Evidence.objects.get(belief=told).claim == claim
    assert world.states(episode) == ["settled"]


def test_what_holds_until_the_end_of_all_calendars_holds_on(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG, until="9999-12-31"))

    world.cycle()

    assert (belief(LEIPZIG).status, belief(LEIPZIG).valid_until) == ("active", None)


def test_a_second_message_bears_a_belief_out(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += DAY
    tell(world, "Leipzig is home.", about(LEIPZIG, "SUPPORTS"))

    world.cycle()

    assert belief(LEIPZIG).alpha == 3.0
    assert Belief.objects.count() == 1


def test_a_reading_sees_what_is_believed(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += DAY
    tell(world, "Leipzig is home.")

    world.cycle()

    assert world.server.calls("read")[-1].beliefs == [LEIPZIG]


def test_what_is_replaced_is_closed_on_its_day(world: World) -> None:
    move(world, day="2026-03-02")

    old, successor = belief(LEIPZIG), belief(DRESDEN)
    assert (old.status, old.status_reason) == ("invalidated", "changed")
    assert (old.alpha, old.beta) == (2.0, 1.0)
    assert successor.status == "active"
    assert successor.valid_from == old.valid_until == datetime(2026, 3, 2, tzinfo=UTC)
    assert Lineage.objects.get(child=successor).parent == old


def test_what_else_a_message_founds_takes_the_place_of_nothing_that_it_ends(world: World) -> None:
    choir, cat = "Ines sings in a choir.", "Ines has a cat called Pepper."
    tell(world, "I sing in a choir.", new(choir))
    world.cycle()
    world.now += DAY
    tell(world, "I've quit the choir, and we adopted a cat, Pepper.", {**new(cat), **about(choir, "ENDED")})

    world.cycle()

    assert belief(choir).status == "invalidated"
    assert (belief(cat).status, belief(cat).valid_from) == ("active", None)
    assert not Lineage.objects.exists()


def test_a_change_that_names_no_day_counts_from_when_it_was_said(world: World) -> None:
    move(world)

    said_at = Episode.objects.get(text="I moved to Dresden.").occurred_at
    assert belief(LEIPZIG).valid_until == said_at
    assert belief(DRESDEN).valid_from == said_at


def test_what_ends_later_holds_until_its_day(world: World) -> None:
    day = (world.now + 10 * DAY).date()
    move(world, day=day.isoformat())

    until = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert (belief(LEIPZIG).status, belief(LEIPZIG).valid_until) == ("active", until)
    assert (belief(DRESDEN).valid_from, belief(DRESDEN).alpha) == (until, 2.0)

    world.cycle(after=20 * DAY)

    assert belief(LEIPZIG).status == "invalidated"
    assert belief(DRESDEN).status == "active"


def test_an_end_that_is_taken_back_before_its_day_ends_nothing(world: World) -> None:
    comic, day = "Ines draws her comic on Fridays.", (world.now + 20 * DAY).date().isoformat()
    tell(world, "Fridays are for my comic.", new(comic))
    world.cycle()
    world.now += DAY
    tell(world, "No more comic on Fridays in a while.", about(comic, "ENDED", **{"from": day}))
    world.cycle()
    world.now += DAY
    tell(world, "I keep my Fridays after all.", about(comic, "SUPPORTS"))
    world.cycle()
    assert (belief(comic).valid_until, belief(comic).alpha, belief(comic).beta) == (None, 3.0, 1.0)
    world.now += DAY
    tell(world, "No comic today.", about(comic, "CONTRADICTS"))

    world.cycle(after=30 * DAY)

    assert (belief(comic).status, belief(comic).valid_until) == ("active", None)
    assert rebuild_beliefs(workspace=world.workspace, now=world.now).differences == []


def test_what_was_said_before_an_end_was_announced_takes_nothing_back(world: World) -> None:
    day = (world.now + 20 * DAY).date().isoformat()
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += 3 * DAY
    tell(world, "I leave Leipzig in a while.", about(LEIPZIG, "ENDED", **{"from": day}))
    world.cycle()
    tell(world, "Leipzig is home.", about(LEIPZIG, "SUPPORTS"), occurred_at=world.now - DAY)

    world.cycle(after=DAY)

    assert belief(LEIPZIG).valid_until is not None


def test_an_end_that_a_person_overruled_closes_nothing_again(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += DAY
    tell(world, "Leipzig is over.", about(LEIPZIG, "ENDED"))
    world.cycle()
    world.now += DAY
    lena = Actor(kind=ActorKind.PERSON, name="lena")
    key = belief(LEIPZIG).pk
    curate_belief(belief_id=key, act=CuratorAction.RESTORE, reason="a joke", actor=lena, now=world.now)
    world.now += DAY
    tell(world, "Am I in Leipzig? Not today.", about(LEIPZIG, "CONTRADICTS"))

    world.cycle()

    assert belief(LEIPZIG).status == "challenged"
    assert belief(LEIPZIG).valid_until is None


def test_an_end_that_somebody_else_tells_challenges(world: World) -> None:
    day = (world.now + 20 * DAY).date().isoformat()
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += DAY
    tell(world, "Ines leaves Leipzig.", about(LEIPZIG, "ENDED", **{"from": day}), speaker="Ben")
    world.cycle()
    assert (belief(LEIPZIG).status, belief(LEIPZIG).status_reason) == ("challenged", "announced")
    assert rebuild_beliefs(workspace=world.workspace, now=world.now).differences == []

    world.now += DAY
    tell(world, "Yes, I left.", about(LEIPZIG, "ENDED"), speaker="Ines Kraus")
    world.cycle()

    assert belief(LEIPZIG).status == "invalidated"


def test_a_change_that_comes_late_is_over_where_what_it_names_as_replaced_begins(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG, **{"from": "2025-12-20"}))
    world.cycle()
    world.now += DAY
    tell(world, "I moved to Dresden.", new(DRESDEN, replaces=LEIPZIG), occurred_at=datetime(2025, 11, 3, 9, tzinfo=UTC))

    world.cycle()

    assert belief(LEIPZIG).status == "active"
    assert (belief(DRESDEN).status, belief(DRESDEN).status_reason) == ("invalidated", "changed")
    assert belief(DRESDEN).valid_until == datetime(2025, 12, 20, tzinfo=UTC)
    assert not Lineage.objects.exists()
    assert rebuild_beliefs(workspace=world.workspace, now=world.now).differences == []


def test_what_comes_back_is_a_belief_of_its_own(world: World) -> None:
    move(world)
    world.now += DAY
    tell(world, "Back in Leipzig for good.", {"about": [
        {"b": LEIPZIG, "verdict": "SUPPORTS"}, {"b": DRESDEN, "verdict": "ENDED"},
    ]})  # fmt: skip

    world.cycle()

    again = Belief.objects.get(statement=LEIPZIG, status="active")
    assert Lineage.objects.get(child=again, kind="return").parent.statement == LEIPZIG
    assert belief(DRESDEN).status == "invalidated"


def test_what_comes_back_may_end_again_in_the_same_reading(world: World) -> None:
    move(world)
    world.now += DAY
    tell(world, "Back in Leipzig.", about(LEIPZIG, "SUPPORTS"))
    world.now += DAY
    tell(world, "Leipzig is over for the second time.", about(LEIPZIG, "ENDED"))

    world.cycle()

    again = Lineage.objects.get(kind="return").child
    assert (again.statement, again.status) == (LEIPZIG, "invalidated")
    assert not Belief.objects.filter(statement=LEIPZIG, status="active").exists()


def test_what_was_never_so_is_challenged(world: World) -> None:
    tell(world, "The flight is at seven.", new("Ines's flight leaves at 7:00."))
    world.cycle()
    world.now += DAY
    correction = {**new("Ines's flight leaves at 17:00."), **about("Ines's flight leaves at 7:00.", "CONTRADICTS")}
    tell(world, "Sorry, I meant 17:00.", correction)

    world.cycle()

    assert belief("Ines's flight leaves at 7:00.").status == "challenged"
    assert belief("Ines's flight leaves at 17:00.").status == "active"


def test_what_rests_on_a_reason_that_ends_is_challenged_until_it_is_said_again(world: World) -> None:
    reason, rule = "Ines runs on Tuesdays.", "Ines eats nothing heavy on Tuesdays."
    tell(world, "I run on Tuesdays, so nothing heavy then.", {"new": [
        {"statement": reason}, {"statement": rule, "because": reason},
    ]})  # fmt: skip
    world.cycle()
    world.now += DAY
    tell(world, "No more running.", about(reason, "ENDED"))
    world.cycle()
    assert (belief(rule).status, belief(rule).status_reason) == ("challenged", "reason_ended")

    world.now += DAY
    tell(world, "Still nothing heavy on Tuesdays.", about(rule, "SUPPORTS"))
    world.cycle()

    assert belief(rule).status == "active"


def test_an_old_word_that_comes_late_upholds_nothing_whose_reason_ended_since(world: World) -> None:
    reason, rule = "Ines runs on Tuesdays.", "Ines eats nothing heavy on Tuesdays."
    tell(world, "I run on Tuesdays, so nothing heavy then.", {"new": [
        {"statement": reason}, {"statement": rule, "because": reason},
    ]}, occurred_at=world.now - 60 * DAY)  # fmt: skip
    world.cycle()
    world.now += DAY
    tell(world, "No more running.", about(reason, "ENDED"))
    world.cycle()
    world.now += DAY
    tell(world, "Nothing heavy, it is Tuesday.", about(rule, "SUPPORTS"), occurred_at=world.now - 40 * DAY)

    world.cycle()

    assert (belief(rule).status, belief(rule).status_reason) == ("challenged", "reason_ended")
    assert belief(rule).alpha == 3.0


def test_an_event_is_a_claim_and_founds_nothing(world: World) -> None:
    episode = tell(world, "Dentist on Friday.", new("Ines sees the dentist.", kind="event", until="2026-01-09"))

    world.cycle()

    assert Belief.objects.count() == 0
    assert Claim.objects.get(episode=episode).kind == "event"
    assert world.states(episode) == ["pooled"]


def test_what_asserts_nothing_waits_in_the_pool(world: World) -> None:
    episode = tell(world, "What is the weather like?")

    world.cycle()

    assert Belief.objects.count() == 0
    assert world.states(episode) == ["pooled"]


def test_an_old_word_says_nothing_of_what_began_since(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    late = world.now - 30 * DAY
    tell(world, "I don't live in Leipzig.", about(LEIPZIG, "CONTRADICTS"), occurred_at=late)

    world.cycle(after=DAY)

    assert belief(LEIPZIG).beta == 1.0


def test_messages_of_one_person_are_read_one_batch_after_the_other(world: World, decree: Any) -> None:
    decree("reading", messages=1)
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    tell(world, "Leipzig is home.", about(LEIPZIG, "SUPPORTS"), occurred_at=world.now + timedelta(minutes=1))

    world.cycle()

    assert belief(LEIPZIG).alpha == 3.0
    assert world.calls("read") == 2


def test_streams_do_not_share_a_reading(world: World) -> None:
    tell(world, "I live in Leipzig.")
    world.say("I live in Bonn.", about="Bonn", source="human", user="otto")

    world.cycle()

    assert world.calls("read") == 2
    assert set(ClusterJob.objects.filter(kind="reading").values_list("stream", flat=True)) == {"user ines", "user otto"}


def test_a_line_that_names_nothing_known_is_dropped_and_the_rest_stands(world: World) -> None:
    world.server.script = lambda asked: {
        "new": [{"m": 1, "statement": LEIPZIG}, {"m": 7, "statement": "Nobody said so."}],
        "about": [{"m": 1, "b": "44", "verdict": "SUPPORTS"}],
    }
    tell(world, "I live in Leipzig.")

    world.cycle()

    assert list(Belief.objects.values_list("statement", flat=True)) == [LEIPZIG]
    assert list(MetricCounter.objects.filter(name=DROPPED_LINES).values_list("count", flat=True)) == [2]


@pytest.mark.usefixtures("hasty")
def test_a_message_that_cannot_be_read_spoils_nothing_beside_it(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    bad = tell(world, "Spoils every reply.", garbage(), occurred_at=world.now + timedelta(minutes=1))

    world.cycle()

    assert belief(LEIPZIG).status == "active"
    bad.refresh_from_db()
    assert (bad.state, bad.read_at) == (ConsolidationState.FAILED, None)


def test_a_batch_that_times_out_is_halved(world: World, decree: Any) -> None:
    decree("budget", call_seconds=1.5, margin_seconds=0.2, last_call_seconds=1.5)  # no time for a call after a late one
    decree("reading", seconds=1.5)
    texts = [f"I know song {number}." for number in range(4)]
    for number, text in enumerate(texts):
        told = new(f"Ines knows song {number}.", subject="Ines")
        tell(world, text, told, occurred_at=world.now + timedelta(minutes=number))
    reply = world.answer
    world.server.script = lambda asked: stall(2.0) if len(asked.messages) > 1 else reply(asked)

    cycle = run_cycle(world.workspace, world.now)
    for _ in range(6):
        run_steps(cycle=cycle)

    assert Belief.objects.filter(statement__startswith="Ines knows").count() == len(texts)
    late = ModelCall.objects.filter(purpose="read", outcome="timeout")
    assert list(late.values_list("input_hash").annotate(times=Count("pk")).values_list("times", flat=True)) == [1, 1, 1]


def test_messages_that_kill_their_workers_are_blamed_and_then_read_alone(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    tell(world, "Leipzig is home.", occurred_at=world.now + timedelta(minutes=1))
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    extract_episodes(cycle_id=cycle.pk, attempt=cycle.attempt)
    plan_readings(cycle_id=cycle.pk, attempt=cycle.attempt)
    ClusterJob.objects.filter(cycle=cycle).update(claims=settings.POLICY.budget.job_claims)

    run_steps(cycle=cycle)

    told = Episode.objects.values_list("state", "state_reason", "failures")
    assert list(told) == [(ConsolidationState.FAILED, CLAIMED_TOO_OFTEN, 1)] * 2

    world.cycle(after=DAY)

    assert world.calls("read") == 2
    assert belief(LEIPZIG).status == "active"


@pytest.mark.usefixtures("hasty")
def test_messages_stay_pending_while_no_model_answers(world: World) -> None:
    episode = tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.trouble.broken["read"] = refuse(500)

    world.cycle()

    episode.refresh_from_db()
    assert episode.read_at is None
    assert episode.state in (ConsolidationState.NEW, ConsolidationState.FAILED)

    world.trouble.mend()
    world.cycle(after=DAY)

    assert belief(LEIPZIG).status == "active"


def test_a_statement_that_cannot_be_embedded_is_kept_without_a_vector(world: World) -> None:
    tell(world, "We moved here long ago.", {"new": [{"statement": LEIPZIG}, {"statement": "Ines has a cat."}]})
    world.trouble.refused_word = LEIPZIG

    cycle = world.cycle()

    assert cycle.state == CycleState.FINISHED
    vectors = BeliefEmbedding.objects.values_list("belief__statement", flat=True)
    assert set(Belief.objects.values_list("statement", flat=True)) == {LEIPZIG, "Ines has a cat."}
    assert list(vectors) == ["Ines has a cat."]


def test_a_key_that_is_refused_for_the_vectors_of_a_reply_lets_the_workspace_rest(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.server.then(Act(), refuse(401), purpose="embed")  # the message's vector, then the statement's

    cycle = world.cycle()

    pause = find_pause(workspace=world.workspace)
    assert pause is not None
    assert (cycle.state, pause.reason) == (CycleState.OVER_BUDGET, PauseReason.AUTH)
    assert world.calls("embed") == 2

    world.cycle(after=DAY)

    assert belief(LEIPZIG).status == "active"
    assert world.calls("read") == 1


def test_pooled_messages_are_read_anew_once_by_another_reader(world: World) -> None:
    tell(world, "What is the weather like?")
    world.cycle()
    assert let_pooled_be_read(workspace_id=world.workspace.pk) == (0, 0)

    ModelCall.objects.filter(purpose="read").update(prompt_version="older")
    assert let_pooled_be_read(workspace_id=world.workspace.pk) == (1, 0)
    world.cycle(after=DAY)

    assert let_pooled_be_read(workspace_id=world.workspace.pk) == (0, 0)
    assert world.calls("read") == 2


def test_rebuilding_needs_no_call_and_finds_nothing(world: World) -> None:
    move(world)
    world.now += DAY
    tell(world, "Dresden is lovely.", about(DRESDEN, "SUPPORTS"))
    world.cycle()
    calls = len(world.server.log)

    found = rebuild_beliefs(workspace=world.workspace, now=world.now)

    assert found.differences == []
    assert len(world.server.log) == calls


@pytest.mark.usefixtures("hasty")
def test_rebuilding_keeps_what_half_a_batch_said_before_the_other_half_failed(world: World) -> None:
    tell(world, "I live in Leipzig.", new(LEIPZIG))
    world.cycle()
    world.now += DAY
    heard = tell(world, "Leipzig is home.", about(LEIPZIG, "SUPPORTS"))
    late = tell(world, "Nobody answers this.", refuse(500), occurred_at=world.now + timedelta(minutes=1))
    reply = world.answer
    world.server.script = lambda asked: garbage() if len(asked.messages) > 1 else reply(asked)
    cycle = world.cycle()
    assert ClusterJob.objects.filter(cycle=cycle, kind="reading", state="failed").exists()
    assert world.states(heard, late) == ["settled", "failed"]

    found = rebuild_beliefs(workspace=world.workspace, now=world.now)

    assert found.differences == []
    assert belief(LEIPZIG).alpha == 3.0


def test_undoing_a_cycle_takes_its_readings_out(world: World) -> None:
    move(world)
    last = ClusterJob.objects.filter(kind="reading").order_by("-cycle__opened_at").first()
    assert last is not None

    undo_cycle(cycle_id=last.cycle_id, actor=Actor(kind=ActorKind.PERSON, name="lena"), now=world.now + DAY)

    assert belief(LEIPZIG).status == "active"
    assert belief(LEIPZIG).valid_until is None
    assert belief(DRESDEN).status == "invalidated"
    assert Episode.objects.get(text="I moved to Dresden.").state == "held"


def test_statements_are_compared_before_the_lock_is_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3: nobody waits for the reader of this machine, and for its being loaded, under a workspace's lock."""
    runs: list[bool] = []

    class Watched(Reader):
        def _run(self, outputs: list[str], ids: Any) -> Any:
            runs.append(connection.in_atomic_block)
            return super()._run(outputs, ids)

    watched = Watched()
    monkeypatch.setattr("memory.ledger.beliefs.reader", lambda: watched)
    put_away: dict[str, Any] = {"status": "archived", "archived_by_person_at": world.now, "user": "ines"}
    world.hold("Ines has her home in Leipzig.", about="home", subject="Ines", **put_away)
    world.directions.place(LEIPZIG, {"home": 0.99})
    tell(world, "I live in Leipzig.", new(LEIPZIG, subject="Ines"))

    world.cycle()

    assert len(runs) == 2  # the pair both ways
    assert not any(runs)


def test_a_claim_names_all_that_its_reader_was_shown_before_it_in_its_conversation(world: World) -> None:
    """E1: of another conversation a message tells nothing."""
    tell(world, "Hello!", session="other")
    earlier = [tell(world, f"Now {number}.", session="s") for number in range(6)]
    last = tell(world, "I live in Leipzig.", new(LEIPZIG), session="s")
    tell(world, "Bye.", session="s")

    world.cycle()

    assert Claim.objects.get(episode=last).drew_on == sorted(row.pk for row in earlier)
