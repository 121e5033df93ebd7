"""F1, F2: what people said is read in order, within a cycle's budget, and what could not be read waits unread."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from memory.consolidation.cycle import begin_attempt, open_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.leases import leased_stream
from memory.consolidation.model_calls import SERVER_BUSY
from memory.consolidation.read import plan_readings, read_messages
from memory.consolidation.schedule import sweep
from memory.llm.call_log import TOKENS_ARE_SPENT
from memory.models import (
    Belief,
    Claim,
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    ModelCall,
    ReadingStream,
    Trigger,
)
from memory.models import ModelCallEpisode as CallEpisode
from memory.reading.apply import AppliedReading, apply_reading
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.world import World
from tests.model_server_acts import Asked, garbage, refuse

pytestmark = pytest.mark.usefixtures("hasty")


def tell(world: World, text: str, **given: Any) -> Episode:
    """Store what Mara said in a session, a minute after what she said before."""
    world.now += timedelta(minutes=1)
    fields: dict[str, Any] = {"user": "mara", "session": "s1", "source": "human"}
    return world.say(text, about=text, **fields | given)


def tell_hives(world: World, count: int, **given: Any) -> list[Episode]:
    """Store messages of one session, each of which founds a belief of its own."""
    said = []
    for n in range(count):
        text = f"I keep {n + 2} hives in garden {n}."
        world.readings[text] = {"new": [{"statement": f"Mara keeps {n + 2} hives in garden {n}."}]}
        said.append(tell(world, text, **given))
    return said


def asked_of(world: World) -> list[Asked]:
    """Keep what the server is asked to read from now on."""
    seen: list[Asked] = []

    def answer(asked: Asked) -> Any:
        if asked.purpose == "read":
            seen.append(asked)
        return world.answer(asked)

    world.server.script = answer
    return seen


def texts_of(items: Iterable[dict[str, Any]]) -> list[str]:
    """Return the messages that a prompt shows, those that only stand beside the others, too."""
    return [item.get("before") or item["text"] for item in items if item.keys() & {"before", "text"}]


def unread(*episodes: Episode) -> bool:
    """Tell whether none of some episodes counts as read."""
    return not Episode.objects.filter(pk__in=[one.pk for one in episodes]).exclude(read_at=None).exists()


def founded() -> list[str]:
    """List what is believed, in the order in which it was founded."""
    return list(
        Belief.objects.order_by("created_at", "evidence__episode__occurred_at").values_list("statement", flat=True)
    )


# --- What is asked


def test_messages_are_read_in_batches_in_their_order(world: World, decree: Decree) -> None:
    """F1: of one user, what was said first first; each batch sees what the ones before it founded."""
    decree("reading", messages=4)
    seen = asked_of(world)
    said = tell_hives(world, 9)

    world.cycle()

    texts = [one.text for one in said]
    assert [texts_of(one.messages) for one in seen] == [texts[:4], texts[4:8], texts[8:]]
    assert [len(one.held) for one in seen] == [0, 4, 8]
    assert len(founded()) == 9
    assert not unread(*said)


def test_a_long_message_shares_no_batch_with_what_finds_no_room_beside_it(world: World, decree: Decree) -> None:
    """F1: by characters."""
    decree("reading", characters=60)
    seen = asked_of(world)
    tell_hives(world, 4)

    world.cycle()

    assert [len(one.messages) for one in seen] == [2, 2]


def test_one_users_messages_are_not_shown_beside_anothers(world: World) -> None:
    """F2: not even where both speak in one session."""
    seen = asked_of(world)
    tell(world, "I keep bees.", user="mara")
    tell(world, "I keep ducks.", user="ben")

    world.cycle()

    assert sorted(texts_of(one.items) for one in seen) == [["I keep bees."], ["I keep ducks."]]


def test_another_users_beliefs_are_not_shown(world: World) -> None:
    """F1, B21."""
    tell_hives(world, 1)
    world.cycle()
    seen = asked_of(world)
    tell(world, "I keep ducks.", user="ben")

    world.cycle()

    assert [one.held for one in seen] == [{}]


def test_an_assistant_costs_nothing_and_stands_beside(world: World) -> None:
    """E2: it is shown for what the answer to it means; nothing of it is read."""
    seen = asked_of(world)
    question = tell(world, "Tabs or spaces?", source="ai")
    answer = tell(world, "Tabs, please.")
    praise = tell(world, "A fine choice!", source="ai")

    world.cycle()

    [asked] = seen
    assert texts_of(asked.items) == [question.text, answer.text]
    assert texts_of(asked.messages) == ["Tabs, please."]
    assert not unread(answer)
    assert unread(question, praise)


def test_documents_and_machines_tell_nothing(world: World) -> None:
    """E2, F2: what was ingested is not read as somebody's words."""
    tell(world, "The shed is full.", source="ingest", user="")

    world.cycle()

    assert world.calls("read") == 0


def test_what_stands_beside_is_of_the_same_session_and_was_said_before(world: World, decree: Decree) -> None:
    """F1: the nearest messages of before; nothing of another session, nothing that came later."""
    decree("reading", before=2)
    for text in ("One.", "Two.", "Three."):
        tell(world, text, source="ai")
    tell(world, "Elsewhere.", source="ai", session="s2")
    seen = asked_of(world)
    tell(world, "Yes, that one.")
    tell(world, "Four.", source="ai")

    world.cycle()

    [asked] = seen
    assert texts_of(asked.items) == ["Two.", "Three.", "Yes, that one."]


def test_a_claim_keeps_what_it_could_not_be_read_without(world: World) -> None:
    """E1: so that erasing one of them finds it; the call knows of all that it was shown."""
    question = tell(world, "Tabs or spaces?", source="ai")
    answer = tell(world, "The former.")
    world.readings[answer.text] = {
        "new": [
            {
                "statement": "Mara prefers tabs.",
                "subject": "Mara",
                "category": "preference",
                "entities": ["tabs"],
                "from": "2026-02-01",
                "importance": 7,
            }
        ]
    }

    world.cycle()

    claim = Claim.objects.get()
    assert (claim.episode, claim.sentence, claim.subject, claim.category, claim.kind) == (
        answer, "Mara prefers tabs.", "Mara", "preference", "lasting",
    )  # fmt: skip
    assert (claim.entities, str(claim.holds_from), claim.importance, claim.drew_on) == (
        ["tabs"], "2026-02-01", 7, [question.pk],
    )  # fmt: skip
    call = ModelCall.objects.get(purpose="read")
    assert set(CallEpisode.objects.filter(call=call).values_list("episode", flat=True)) == {question.pk, answer.pk}


def test_a_message_that_asserts_nothing_is_read_once(world: World) -> None:
    """F1: an empty answer is an answer."""
    said = tell(world, "Thanks!")

    world.cycle()
    world.cycle()

    assert not unread(said)
    assert world.calls("read") == 1
    assert world.states(said) == ["pooled"]


def test_what_was_forgotten_since_it_was_leased_is_shown_to_nobody(world: World) -> None:
    """B19: neither to be read nor beside others."""
    seen = asked_of(world)
    secret = tell(world, "I keep a panther.")
    tell_hives(world, 1)
    cycle = opened(world)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    plan_readings(cycle_id=cycle.pk, attempt=1)
    Episode.objects.filter(pk=secret.pk).update(status="forgotten")

    run_steps(cycle=cycle)

    assert not any("panther" in str(one.items) for one in seen)
    assert founded() == ["Mara keeps 2 hives in garden 0."]


# --- What goes wrong


def test_a_malformed_reply_is_asked_for_again_then_halved(world: World) -> None:
    """F2, B11: two bad answers, and two halves that are read."""
    world.server.then(garbage(), garbage(), purpose="read")
    said = tell_hives(world, 6)

    world.cycle()

    assert [len(call.texts) for call in world.server.calls("read")][-2:] == [3, 3]
    assert len(founded()) == 6
    assert not unread(*said)


def test_a_poison_message_is_set_aside_alone_and_dies_in_the_end(world: World) -> None:
    """F2, B11: with its reason; the others of its batch are read, and it costs none of them a later call."""
    said = tell_hives(world, 7)
    poison = tell(world, "I sell poison.")
    world.readings[poison.text] = garbage()

    world.cycle()

    assert not unread(*said)
    assert unread(poison)
    poison.refresh_from_db()
    assert (poison.state, poison.state_reason, poison.failures) == ("failed", "reading: malformed", 1)
    world.cycle(after=timedelta(hours=5))
    world.server.log.clear()
    world.cycle(after=timedelta(hours=5))
    poison.refresh_from_db()
    assert (poison.failures, poison.dead_at) == (3, world.now)
    assert {tuple(call.texts) for call in world.server.calls("read")} == {(poison.text,)}
    assert not Claim.objects.filter(episode=poison).exists()
    assert len(founded()) == 7


def test_a_rate_limit_is_waited_for_as_long_as_it_says(world: World) -> None:
    """B9: a short one within the step."""
    world.server.then(refuse(429, retry_after=0.2), purpose="read")
    said = tell_hives(world, 2)

    world.cycle()

    assert not unread(*said)
    first, second = world.server.calls("read")
    assert second.came_at - first.came_at >= 0.2


def test_a_long_rate_limit_leaves_all_as_it_was(world: World) -> None:
    """B9: nobody is blamed, and nothing that is unread takes part."""
    world.server.then(refuse(429, retry_after=600), purpose="read")
    said = tell_hives(world, 4)

    cycle = world.cycle()

    assert cycle.budget_spent == SERVER_BUSY
    assert unread(*said)
    assert world.states(*said) == ["new"] * 4
    assert not ClusterMember.objects.exclude(job__kind="reading").exists()
    world.cycle(after=timedelta(hours=5))
    assert not unread(*said)
    assert len(founded()) == 4


def test_a_refused_key_ends_the_calls_and_blames_nobody(world: World) -> None:
    """B9, B11: no other stream is asked for."""
    world.trouble.broken["read"] = refuse(401)
    said = [*tell_hives(world, 2), tell(world, "I keep ducks.", user="ben")]

    cycle = world.cycle()

    assert cycle.state == "over_budget"
    assert "auth" in cycle.budget_spent
    assert world.calls("read") == 1
    assert unread(*said)
    assert set(Episode.objects.values_list("failures", flat=True)) == {0}
    world.trouble.broken.clear()
    world.cycle()
    assert not unread(*said)


def test_a_cap_that_is_spent_on_the_way_keeps_what_was_read(world: World, decree: Decree) -> None:
    """B9: the rest waits unread for another day."""
    decree("reading", messages=2)
    said = tell_hives(world, 6)
    world.workspace.daily_token_cap = 3_000
    world.workspace.save()

    cycle = world.cycle()

    read = Episode.objects.exclude(read_at=None).count()
    assert cycle.budget_spent == TOKENS_ARE_SPENT
    assert 0 < read < 6
    assert len(founded()) == read
    assert {one.state for one in Episode.objects.filter(read_at=None)} == {"new"}
    world.workspace.daily_token_cap = None
    world.workspace.save()
    world.cycle()
    assert not unread(*said)
    assert world.calls("read") == 3


# --- Exactly once


def opened(world: World) -> Cycle:
    return open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)[0]


def lose_worker(cycle: Cycle) -> None:
    """Let a cycle and its readings look as a worker leaves them that was killed."""
    past = Now() - timedelta(seconds=1)
    ClusterJob.objects.filter(cycle=cycle).update(lease_owner="gone", leased_until=past)
    ReadingStream.objects.update(lease_owner="gone", leased_until=past)
    Cycle.objects.filter(pk=cycle.pk).update(leased_until=past)


def check_read_once(world: World, cycle: Cycle, said: list[Episode], *, calls: int) -> None:
    """Assert what an undisturbed history gives: nothing lost, nothing counted twice, nothing paid for twice."""
    cycle.refresh_from_db()
    world.check(cycle)
    assert not unread(*said)
    assert world.calls("read") == calls
    assert ModelCall.objects.filter(purpose="read", outcome="ok").count() == calls
    assert sorted(Belief.objects.values_list("alpha", "beta")) == [(2.0, 1.0)] * len(said)
    assert Claim.objects.count() == Evidence.objects.count() == len(said)


@pytest.mark.parametrize("place", ["before it is applied", "while it is applied", "before it is written down"])
def test_a_reply_is_paid_for_once_though_its_reader_dies(
    world: World, decree: Decree, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """F2, B9: it is in the ledger before anything comes of it, and whoever goes on finds it there."""
    decree("reading", messages=3)
    said = tell_hives(world, 6)

    def die_after_applying(**given: Any) -> AppliedReading:
        apply_reading(**given)
        raise ZeroDivisionError

    def die(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    names = {
        "before it is applied": ("memory.consolidation.read._embed_statements", die),
        "while it is applied": ("memory.consolidation.read.apply_reading", die_after_applying),
        "before it is written down": ("memory.consolidation.read._store_verdicts", die),
    }
    cycle = opened(world)
    with monkeypatch.context() as patched:
        patched.setattr(*names[place])
        with pytest.raises(ZeroDivisionError):
            run_steps(cycle=cycle)
    assert ModelCall.objects.filter(purpose="read", outcome="ok").count() == 1
    assert unread(*said)
    assert not Belief.objects.exists()
    lose_worker(cycle)
    assert begin_attempt(cycle_id=cycle.pk) == 2
    cycle.refresh_from_db()

    run_steps(cycle=cycle)

    check_read_once(world, cycle, said, calls=2)


def test_a_reading_that_was_applied_before_its_worker_died_is_not_applied_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2: its messages are read, and only the end of its job is missing."""
    said = tell_hives(world, 3)
    cycle = opened(world)
    with monkeypatch.context() as patched:
        patched.setattr("memory.consolidation.read._end", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_steps(cycle=cycle)
    assert not unread(*said)
    lose_worker(cycle)
    begin_attempt(cycle_id=cycle.pk)
    cycle.refresh_from_db()

    run_steps(cycle=cycle)

    check_read_once(world, cycle, said, calls=1)


def test_every_message_of_a_reading_twice_changes_nothing(world: World, decree: Decree) -> None:
    """F2: the broker may bring them again, at once or after the end."""
    decree("reading", messages=3)
    said = tell_hives(world, 6)
    cycle = opened(world)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    [jobs] = plan_readings(cycle_id=cycle.pk, attempt=1)
    assert plan_readings(cycle_id=cycle.pk, attempt=1) == [jobs]
    for job_id in (*jobs, *jobs):
        read_messages(job_id=job_id, attempt=1)
    before = world.rows()
    for job_id in jobs:
        read_messages(job_id=job_id, attempt=1)

    assert world.rows() == before
    run_steps(cycle=cycle)
    check_read_once(world, cycle, said, calls=2)


def test_an_older_attempt_reads_nothing(world: World) -> None:
    """The fence: a message of attempt 1 that comes when attempt 2 is at work changes no row and makes no call."""
    tell_hives(world, 2)
    cycle = opened(world)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    [[job_id]] = plan_readings(cycle_id=cycle.pk, attempt=1)
    lose_worker(cycle)
    begin_attempt(cycle_id=cycle.pk)
    before = world.rows()

    read_messages(job_id=job_id, attempt=1)

    assert world.rows() == before
    assert world.calls("read") == 0


def test_a_batch_waits_for_those_of_its_stream_before_it(world: World, decree: Decree) -> None:
    """F2: whatever order the messages of the broker come in."""
    decree("reading", messages=1)
    tell_hives(world, 2)
    cycle = opened(world)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    [[first, second]] = plan_readings(cycle_id=cycle.pk, attempt=1)

    read_messages(job_id=second, attempt=1)
    assert world.calls("read") == 0
    read_messages(job_id=first, attempt=1)
    read_messages(job_id=second, attempt=1)

    assert [call.texts for call in world.server.calls("read")] == [
        ["I keep 2 hives in garden 0."], ["I keep 3 hives in garden 1."],
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_stream_that_somebody_else_reads_is_waited_for(world: World) -> None:
    """F2: a turn, or what is remembered; other streams go on, and the sweeper comes back."""
    said = tell_hives(world, 1)
    ben = tell(world, "I keep ducks.", user="ben")
    cycle = opened(world)
    with leased_stream(workspace_id=world.workspace.pk, name="user mara") as is_ours:
        assert is_ours
        assert not run_steps(cycle=cycle)
        assert unread(*said)
        assert not unread(ben)
        cycle.refresh_from_db()
        assert cycle.state == "running"
    ClusterJob.objects.filter(cycle=cycle).update(not_before=None)
    sweep()
    cycle.refresh_from_db()

    assert run_steps(cycle=cycle)

    assert not unread(*said)
    assert founded() == ["Mara keeps 2 hives in garden 0."]


def test_what_is_forgotten_during_a_call_is_not_told_by_its_reply(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B19: not even by what stands beside it; the others are read without it."""
    seen = asked_of(world)
    secret = tell(world, "I keep a panther.", source="ai")
    said = tell(world, "Yes, that one.")
    world.readings[said.text] = {"new": [{"statement": "Mara keeps a panther."}]}

    def forget_first(**given: Any) -> AppliedReading:
        Episode.objects.filter(pk=secret.pk).update(status="forgotten")
        return apply_reading(**given)

    with monkeypatch.context() as patched:
        patched.setattr("memory.consolidation.read.apply_reading", forget_first)
        world.cycle()
    assert unread(said)
    assert world.states(said) == ["new"]
    assert (founded(), Claim.objects.count()) == ([], 0)
    del world.readings[said.text]

    world.cycle()

    assert [texts_of(one.items) for one in seen] == [[secret.text, said.text], [said.text]]
    assert not unread(said)


# --- What is there already


@pytest.mark.parametrize("is_shown", [True, False])
def test_what_is_stated_again_in_the_same_words_founds_no_second_belief(
    world: World, decree: Decree, is_shown: bool
) -> None:
    """F3: though the reading names no belief for it, or was not shown the one that says it."""
    decree("reading", all_beliefs=60 if is_shown else 1, nearest_beliefs=1)
    hives, harbour = "Mara keeps 2 hives in garden 0.", "Mara sails from the harbour at dawn."
    for statement in (hives, harbour):
        world.hold(statement, about=statement, user="mara", subject="Mara", supports=1)
    text = "From the harbour I sail at dawn."
    world.readings[text] = {"new": [{"statement": hives}]}
    seen = asked_of(world)
    tell(world, text)

    world.cycle()

    assert (hives in seen[0].held) == is_shown
    assert sorted(Belief.objects.values_list("statement", "alpha")) == [(hives, 3.0), (harbour, 2.0)]


# --- What it costs


def test_a_history_taken_up_whole_costs_little(world: World, record_property: Callable[[str, object], None]) -> None:
    """F2: of people and an assistant in turn, some 25 words each: calls and tokens of prompts for each episode."""
    words = "the boat in the harbour needs a new coat of paint before the season starts, so we meet on"
    for n in range(120):
        tell(world, f"Day {n}: I think {words} pier {n} around nine in the morning.", session=f"s{n // 20}")
        tell(world, f"Noted: {words} pier {n} then; shall I remind you of it?", source="ai", session=f"s{n // 20}")

    world.cycle()

    calls = ModelCall.objects.filter(purpose="read")
    sent = sum(calls.values_list("input_tokens", flat=True))
    for name, figure in (("calls", calls.count()), ("tokens sent", sent)):
        record_property(name, figure)
    assert not Episode.objects.filter(source="human", read_at=None).exists()
    assert calls.count() / 120 <= 0.1
    assert sent / 120 <= 250
