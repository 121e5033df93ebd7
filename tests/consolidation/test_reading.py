"""E1: a model reads what people said, within a cycle's budget, and what it could not read waits unread."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from memory.claims import read_episodes_into_claims, store_model_claims
from memory.consolidation.model_calls import SERVER_BUSY
from memory.llm.call_log import TOKENS_ARE_SPENT
from memory.models import Claim, ClusterMember, Episode, ModelCall, ModelCallEpisode
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.world import World
from tests.model_server_acts import Asked, claim, garbage, refuse

pytestmark = pytest.mark.usefixtures("hasty")


def tell(world: World, text: str, **given: Any) -> Episode:
    """Store what Mara said in a session, a minute after what she said before."""
    world.now += timedelta(minutes=1)
    fields: dict[str, Any] = {"user": "mara", "session": "s1", "source": "human"}
    return world.say(text, about=text, **fields | given)


def tell_all(world: World, texts: Iterable[str], **given: Any) -> list[Episode]:
    """Store several messages of one session."""
    return [tell(world, text, **given) for text in texts]


def hives(count: int) -> list[str]:
    """Word messages that are all different."""
    return [f"I keep {n + 2} hives in garden {n}." for n in range(count)]


def sentences() -> list[str]:
    """List what is claimed, in the order of what was said."""
    rows = Claim.objects.order_by("episode__occurred_at", "number")
    return list(rows.values_list("sentence", flat=True))


def asked_of(world: World) -> list[Asked]:
    """Keep what the server is asked to read from now on."""
    seen: list[Asked] = []

    def answer(asked: Asked) -> Any:
        if asked.purpose == "read":
            seen.append(asked)
        return world.answer(asked)

    world.server.script = answer
    return seen


def unread(*episodes: Episode) -> bool:
    """Tell whether none of some episodes counts as read."""
    return not Episode.objects.filter(pk__in=[one.pk for one in episodes]).exclude(read_at=None).exists()


# --- What is asked


def test_messages_are_read_in_batches_in_their_order(world: World, decree: Decree) -> None:
    """E1: of one user, what was said first first; each becomes its claims, told of its speaker."""
    decree("reading", messages=4)
    decree("budget", calls_in_flight=1)
    seen = asked_of(world)
    said = tell_all(world, hives(9))

    world.cycle()

    texts = [one.text for one in said]
    asked = [[message["text"] for message in one.messages] for one in seen]
    assert asked == [texts[:4], texts[4:8], texts[8:]]
    assert sentences() == [f"Mara keeps {n + 2} hives in garden {n}." for n in range(9)]
    assert set(Claim.objects.values_list("reader", "mode", "is_told")) == {
        (f"{ModelCall.objects.filter(purpose='read')[0].model} read-2", "asserted", False)
    }
    assert not unread(*said)


def test_one_users_messages_are_not_shown_beside_anothers(world: World) -> None:
    """E1, E2: not even where both speak in one session."""
    seen = asked_of(world)
    tell(world, "I keep bees.", user="mara")
    tell(world, "I keep ducks.", user="ben")

    world.cycle()

    assert sorted([item["text"] for item in one.items] for one in seen) == [["I keep bees."], ["I keep ducks."]]
    assert sentences() == ["Mara keeps bees.", "Ben keeps ducks."]


def test_an_assistant_costs_nothing_and_stands_beside(world: World) -> None:
    """E2: it is shown with a letter, and its praise is nobody's claim."""
    seen = asked_of(world)
    tell(world, "Tabs or spaces?", source="ai")
    answer_ = tell(world, "Tabs, please.")
    tell(world, "A fine choice!", source="ai")

    world.cycle()

    [asked] = seen
    assert [(one.get("c") or one["n"], one.get("by") or one["role"]) for one in asked.items] == [
        ("a", "assistant"), (1, "Mara"), ("b", "assistant"),
    ]  # fmt: skip
    assert list(Claim.objects.filter(reader__startswith="rules").values_list("mode", flat=True)) == ["advised"] * 2
    assert list(Claim.objects.exclude(reader__startswith="rules").values_list("episode", flat=True)) == [answer_.pk]


def test_a_note_costs_no_call(world: World) -> None:
    """E1: one plain statement is its own claim, as it stands."""
    world.say("The shed is full.", about="shed", user="mara")

    world.cycle()

    assert world.calls("read") == 0
    assert sentences() == ["The shed is full."]


def test_company_is_of_the_same_session_and_what_is_there_already(world: World, decree: Decree) -> None:
    """E1: the nearest messages of before, and of after; nothing of another session."""
    decree("reading", before=2, after=1)
    tell_all(world, ["One.", "Two.", "Three."], source="ai")
    tell(world, "Elsewhere.", source="ai", session="s2")
    world.cycle(after=timedelta(hours=1))
    seen = asked_of(world)
    tell(world, "Yes, that one.")
    tell_all(world, ["Four.", "Five."], source="ai")

    world.cycle()

    [asked] = seen
    assert [one["text"] for one in asked.items] == ["Two.", "Three.", "Yes, that one.", "Four."]


def test_a_claim_keeps_what_it_could_not_be_read_without(world: World) -> None:
    """E1: so that erasing one of them finds it; the call knows of all that it was shown."""
    question = tell(world, "Tabs or spaces?", source="ai")
    answer_ = tell(world, "The former.")
    told = {
        "claim": "Mara prefers tabs.", "slot": "editor", "value": "tabs", "told": True, "used": ["a"],
        "since": "2026-02-01", "ended": ["spaces"], "mode": "change", "words": "The former", "context": "at work",
    }  # fmt: skip
    world.server.script = lambda asked: (
        {"claims": [claim(asked.messages[0], **told)]} if asked.purpose == "read" else world.answer(asked)
    )

    world.cycle()

    one = Claim.objects.get(episode=answer_)
    assert (one.sentence, one.slot, one.value, one.context, one.mode) == (
        "Mara prefers tabs.", "editor", "tabs", "at work", "change",
    )  # fmt: skip
    assert (one.is_told, one.ended, str(one.holds_from), one.words, one.drew_on) == (
        True, ["spaces"], "2026-02-01", "The former", [question.pk],
    )  # fmt: skip
    call = ModelCall.objects.get(purpose="read")
    assert set(ModelCallEpisode.objects.filter(call=call).values_list("episode", flat=True)) == {
        question.pk, answer_.pk,
    }  # fmt: skip


def test_names_and_slots_are_shown_and_values_never(world: World) -> None:
    """E1: what is known of the speaker from cycles before, and of nobody else."""
    tell(world, "I'm a vegan.", session="s0")
    told = {"slot": "diet", "value": "vegan", "told": True}
    world.server.script = lambda asked: (
        {"claims": [claim(asked.messages[0], **told)]} if asked.purpose == "read" else world.answer(asked)
    )
    world.cycle(after=timedelta(hours=1))
    seen = asked_of(world)
    tell(world, "I keep bees.")
    tell(world, "I keep ducks.", user="ben")

    world.cycle()

    shown = {one.messages[0]["by"]: one for one in seen}
    assert shown["Mara"].items[0] == {"known": "Mara", "slots": ["diet"]}
    assert "vegan" not in str(shown["Mara"].items)
    assert [item["text"] for item in shown["Ben"].items] == ["I keep ducks."]


def test_a_message_that_asserts_nothing_is_read_and_takes_part_in_nothing(world: World) -> None:
    """E1: an empty answer is an answer."""
    world.server.script = lambda asked: {"claims": []} if asked.purpose == "read" else world.answer(asked)
    [said] = tell_all(world, ["Thanks!"])

    world.cycle()
    world.cycle()

    assert not unread(said)
    assert world.calls("read") == 1
    assert world.states(said) == ["pooled"]
    assert not ClusterMember.objects.exists()


def test_what_was_forgotten_since_it_was_leased_is_shown_to_nobody(world: World, monkeypatch: Any) -> None:
    """E1, B19: neither to be read nor beside others."""
    seen = asked_of(world)
    secret = tell(world, "I keep a panther.")
    tell(world, "I keep bees.")

    def forget_first(**given: Any) -> dict[str, str]:
        Episode.objects.filter(pk=secret.pk).update(status="forgotten")
        return read_episodes_into_claims(**given)

    monkeypatch.setattr("memory.consolidation.extract.read_episodes_into_claims", forget_first)
    world.cycle()

    assert [item["text"] for one in seen for item in one.items] == ["I keep bees."]
    assert sentences() == ["Mara keeps bees."]


# --- What goes wrong


def test_a_malformed_reply_is_asked_for_again_then_halved(world: World) -> None:
    """E1, B11: two bad answers, and two halves that are read."""
    world.server.then(garbage(), garbage(), purpose="read")
    seen = asked_of(world)
    said = tell_all(world, hives(6))

    world.cycle()

    assert sorted(len(one.messages) for one in seen) == [3, 3]
    assert len(sentences()) == 6
    assert not unread(*said)


def choke(world: World) -> None:
    """Let the server speak nonsense where it is to read what says poison."""

    def answer(asked: Asked) -> Any:
        is_spoilt = asked.purpose == "read" and any("poison" in one["text"] for one in asked.items)
        return garbage() if is_spoilt else world.answer(asked)

    world.server.script = answer


def test_a_poison_message_is_set_aside_alone_and_dies_in_the_end(world: World) -> None:
    """E1, B11: with its reason; the others of its batch are read, and it costs none of them a later call."""
    choke(world)
    said = tell_all(world, hives(7))
    poison = tell(world, "I sell poison.")

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
    assert world.calls("read") == 2
    assert not Claim.objects.filter(episode=poison).exists()


def test_a_rate_limit_is_waited_for_as_long_as_it_says(world: World) -> None:
    """B9: a short one within the step."""
    world.server.then(refuse(429, retry_after=0.2), purpose="read")
    said = tell_all(world, hives(2))

    world.cycle()

    assert world.calls("read") == 2
    assert not unread(*said)
    first, second = world.server.calls("read")
    assert second.came_at - first.came_at >= 0.2


def test_a_long_rate_limit_leaves_all_as_it_was(world: World) -> None:
    """B9: nobody is blamed, and nothing that is unread takes part."""
    world.server.then(refuse(429, retry_after=600), purpose="read")
    said = tell_all(world, hives(4))

    cycle = world.cycle()

    assert cycle.budget_spent == SERVER_BUSY
    assert unread(*said)
    assert world.states(*said) == ["new"] * 4
    assert not ClusterMember.objects.exists()
    world.cycle(after=timedelta(hours=5))
    assert not unread(*said)


def test_a_refused_key_ends_the_calls_and_blames_nobody(world: World) -> None:
    """B9, B11: what waits keeps the reason to be seen."""
    world.trouble.broken["read"] = refuse(401)
    said = tell_all(world, hives(4))

    cycle = world.cycle()

    assert (cycle.state, cycle.budget_spent) == ("over_budget", "reading: auth")
    assert world.calls("read") == 1
    assert unread(*said)
    assert set(Episode.objects.values_list("state", "state_reason", "failures")) == {("failed", "reading: auth", 0)}
    world.trouble.broken.clear()
    world.cycle()
    assert not unread(*said)


def test_a_cap_that_is_spent_on_the_way_keeps_what_was_read(world: World, decree: Decree) -> None:
    """B9: the rest waits unread for another day."""
    decree("reading", messages=2)
    decree("budget", calls_in_flight=1)
    said = tell_all(world, hives(6))
    world.workspace.daily_token_cap = 3_600
    world.workspace.save()

    cycle = world.cycle()

    read = Episode.objects.exclude(read_at=None).count()
    assert cycle.budget_spent == TOKENS_ARE_SPENT
    assert 0 < read < 6
    assert Claim.objects.count() == read
    assert {one.state for one in Episode.objects.filter(read_at=None)} == {"new"}
    world.workspace.daily_token_cap = None
    world.workspace.save()
    world.cycle()
    assert not unread(*said)
    assert world.calls("read") == 3


def test_a_reply_is_paid_once_though_its_reader_dies(world: World, decree: Decree, monkeypatch: Any) -> None:
    """B9: it is in the ledger before anything comes of it, and whoever goes on finds it there."""
    decree("reading", messages=3)
    said = tell_all(world, hives(6))
    with monkeypatch.context() as patched:
        patched.setattr("memory.consolidation.extract.store_model_claims", lambda **_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            world.cycle()
    paid = ModelCall.objects.filter(purpose="read", outcome="ok").count()
    assert paid
    assert unread(*said)
    [cycle] = world.workspace.cycles.all()

    run_steps(cycle=cycle)

    assert world.calls("read") == 2
    assert ModelCall.objects.filter(purpose="read", outcome="ok").count() == 2
    assert len(sentences()) == 6


def test_what_is_forgotten_during_a_call_is_not_told_by_its_reply(world: World, monkeypatch: Any) -> None:
    """E1, B19: not even by what stands beside it; the others are read in the next cycle, without it."""
    secret = tell(world, "I keep a panther.", source="ai")
    said = tell(world, "Yes, that one.")

    def forget_first(**given: Any) -> list[Claim]:
        Episode.objects.filter(pk=secret.pk).update(status="forgotten")
        return store_model_claims(**given)

    with monkeypatch.context() as patched:
        patched.setattr("memory.consolidation.extract.store_model_claims", forget_first)
        world.cycle()
    assert unread(said)
    assert world.states(said) == ["new"]

    world.cycle()

    assert world.calls("read") == 2
    assert list(Claim.objects.filter(episode=said).values_list("sentence", flat=True)) == ["Yes, that one."]


# --- What it costs


def test_a_history_taken_up_whole_costs_little(world: World, record_property: Callable[[str, object], None]) -> None:
    """E1: of people and an assistant in turn, some 25 words each: calls and tokens of prompts for each episode."""
    words = "the boat in the harbour needs a new coat of paint before the season starts, so we meet on"
    for n in range(120):
        tell(world, f"Day {n}: I think {words} pier {n} around nine in the morning.", session=f"s{n // 20}")
        tell(world, f"Noted: {words} pier {n} then; shall I remind you of it?", source="ai", session=f"s{n // 20}")

    world.cycle()

    calls = ModelCall.objects.filter(purpose="read")
    sent = sum(calls.values_list("input_tokens", flat=True))
    received = sum(calls.values_list("output_tokens", flat=True))
    for name, figure in (("calls", calls.count()), ("tokens sent", sent), ("tokens received", received)):
        record_property(name, figure)  # 10, 18,038 and 11,945, in bytes / 4, when this was written
    assert Claim.objects.exclude(reader__startswith="rules").count() == 120
    assert calls.count() / 120 <= 0.1
    assert sent / 120 <= 250
