"""A text whose beliefs cannot follow at once waits, is taken up again, and has them exactly once (R1, R2)."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from memory.facts import remember
from memory.facts.job import send_due_jobs
from memory.facts.remember import Remembered, run_remember_job
from memory.ledger.confidence import find_drift
from memory.llm import call_log
from memory.metrics import render_metrics
from memory.models import (
    Belief,
    ClaimEmbedding,
    Episode,
    EpisodeEmbedding,
    Evidence,
    Link,
    RememberJob,
    Workspace,
    WorkspacePause,
)
from tests.consolidation.conftest import Decree
from tests.consolidation.world import World
from tests.facts.telling import SPACES, TABS, actions, judges, make_due, remembrance_of, states, tell, work_all
from tests.facts.test_reflecting import run
from tests.model_server_acts import refuse

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", [503, 401, 429])
def test_a_server_that_fails_costs_no_belief(world: World, hasty: None, sent: list[int], status: int) -> None:
    """R1: the text is stored, and its beliefs follow when the server is back."""
    world.trouble.broken["read"] = refuse(status)
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
    world.trouble.broken["read"] = refuse(503)
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
    for module in (remember, call_log):
        monkeypatch.setattr(module, "is_shutting_down", lambda: True)
    told = tell(world, TABS)
    assert remembrance_of(told).failures == 0
    assert seconds_to_wait(told) == pytest.approx(0, abs=5)
    assert world.calls("read") == 0


def seconds_to_wait(told: Remembered) -> float:
    """Return how long the sweeper leaves a text alone."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT extract(epoch FROM due_at - now()) FROM memory_rememberjob WHERE episode_id = %s", [told.episode_id]
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


def test_a_resting_workspace_answers_at_once(world: World, sent: list[int]) -> None:
    """R1, B9: and is left alone until it has rested."""
    from memory.llm.registry import fingerprint_models

    WorkspacePause.objects.create(
        workspace=world.workspace, reason="failures", until=Now() + timedelta(hours=1),
        fingerprint=fingerprint_models(), since=Now(), failures=1,
    )  # fmt: skip
    told = tell(world, TABS)
    assert (told.state, len(world.server.log)) == ("queued", 0)
    make_due()
    assert send_due_jobs() == 0
    WorkspacePause.objects.all().delete()
    work_all(world)
    assert remembrance_of(told).state == "done"


def test_a_message_that_comes_twice_changes_nothing(world: World) -> None:
    """R1: exactly once."""
    remembrance = remembrance_of(tell(world, TABS))
    run_remember_job(remembrance_id=remembrance.pk, now=world.now)
    assert (Evidence.objects.count(), world.calls("read")) == (1, 1)


def test_a_held_remembrance_is_left_to_its_holder(world: World, offline: None, sent: list[int]) -> None:
    """R1: and taken over when its lease has run out."""
    remembrance = remembrance_of(tell(world, TABS))
    RememberJob.objects.update(lease_owner="another", leased_until=Now() + timedelta(seconds=20), claims=1)
    run_remember_job(remembrance_id=remembrance.pk, now=world.now)
    assert not Belief.objects.exists()
    RememberJob.objects.update(leased_until=Now() - timedelta(seconds=1))
    work_all(world)
    assert remembrance_of(tell(world, TABS)).state == "done"


def test_what_cost_five_workers_is_left_to_consolidation(world: World, offline: None, sent: list[int]) -> None:
    """R1: poison ends, and the episode waits like any other."""
    told = tell(world, TABS)
    RememberJob.objects.update(claims=5)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).state_reason) == ("failed", "claimed too often")
    assert world.states(Episode.objects.get(pk=told.episode_id)) == ["new"]


def test_what_failed_is_seen_and_can_be_tried_again(world: World, offline: None, sent: list[int]) -> None:
    """R1, B11: beside the dead letters."""
    told = tell(world, TABS)
    RememberJob.objects.update(claims=5)
    work_all(world)
    assert b"engram_failed_remembrances 1.0" in render_metrics(tasks=[])
    [row] = run("dead_letters", "--remembered", "--workspace", world.workspace.name, "--retry")["dead_letters"]
    assert (row["id"], row["reason"]) == (told.episode_id, "claimed too often")
    work_all(world)
    assert remembrance_of(told).state == "done"
    assert TABS in world.only_belief().statement


def test_a_belief_without_a_vector_is_never_given_up(world: World, hasty: None, sent: list[int]) -> None:
    """R1, R2: what waits for a vector rests for 4 hours, and is compared then."""
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    world.trouble.broken.clear()
    belief = world.hold(TABS, about="tabs", supports=3)
    RememberJob.objects.update(claims=5)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).claims) == ("queued", 0)
    assert seconds_to_wait(told) == pytest.approx(4 * 3600, abs=5)
    work_all(world)
    assert actions(tell(world, "Ana prefers tabs over spaces!")) == [(belief.pk, "reinforced")]


def test_an_error_of_ours_loses_nothing(
    world: World, sent: list[int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """R1: the caller is told that it waits; the claim stays counted."""
    monkeypatch.setattr(remember, "ask_for_reading", lambda **_: 1 / 0)
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
    assert send_due_jobs() == 0
    make_due()
    assert [send_due_jobs(), send_due_jobs()] == [1, 0]
    assert sent == [remembrance.pk]


def test_without_a_vector_a_belief_is_made_and_matched_later(world: World, hasty: None, sent: list[int]) -> None:
    """R2: it joins what says the same by then, once an embedding can be had."""
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    [(unmatched, action)] = actions(told)
    assert (told.state, action) == ("queued", "created")
    world.trouble.broken.clear()
    belief = world.hold(TABS, about="tabs", supports=3)
    work_all(world)
    assert actions(tell(world, "Ana prefers tabs over spaces!")) == [(belief.pk, "reinforced")]
    assert world.now_of(belief).alpha == 5.0
    assert Belief.objects.get(pk=unmatched).status == "merged"
    assert EpisodeEmbedding.objects.filter(episode=told.episode_id).exists()
    assert ClaimEmbedding.objects.count() == 1
    assert find_drift(workspace=world.workspace)[1] == []


def test_what_its_reading_saw_is_another_thing_for_good(world: World, hasty: None, sent: list[int]) -> None:
    """R2, F3: however alike it is; a neighbour in the right distance is linked."""
    belief = world.hold(TABS, about="tabs", supports=3)
    near = world.hold("Ana never uses tabs.", about="tabs", likeness=0.7)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    [(unmatched, _)] = actions(tell(world, "Ana prefers tabs over spaces!"))
    world.trouble.broken.clear()
    work_all(world)
    assert (world.now_of(belief).alpha, Belief.objects.get(pk=unmatched).status) == (4.0, "active")
    assert list(Link.objects.filter(belief=unmatched).values_list("other", flat=True)) == [near.pk]


def test_what_a_person_put_away_is_known_once_there_is_a_vector(world: World, hasty: None, sent: list[int]) -> None:
    """R2, B22."""
    world.hold(TABS, about="tabs", status="archived", archived_by_person_at=world.now)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    [(unmatched, _)] = actions(tell(world, "Ana prefers tabs over spaces!"))
    world.trouble.broken.clear()
    work_all(world)
    assert Belief.objects.get(pk=unmatched).status == "invalidated"
    assert RememberJob.objects.get().facts.get().outcome == "suppressed"


def test_without_a_vector_a_belief_is_contradicted_at_once(world: World, hasty: None, sent: list[int]) -> None:
    """R2, F3: the reader saw it, whatever vectors there are."""
    belief = world.hold(TABS, about="tabs", supports=3)
    states(world, SPACES)
    judges(world, SPACES, TABS, "CONTRADICTS")
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, SPACES)
    assert [action for _, action in actions(told)] == ["created", "weakened"]
    assert world.now_of(belief).beta == 2.0
    world.trouble.broken.clear()
    work_all(world)
    assert [action for _, action in actions(tell(world, SPACES))] == ["created", "weakened"]
    assert world.now_of(belief).beta == 2.0
