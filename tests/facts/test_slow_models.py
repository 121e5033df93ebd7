"""A model that is too slow has more time from a worker, and a person sees where that is not enough (E6)."""

import pytest
from django.test import Client
from django.urls import reverse

from memory.access import viewer_of
from memory.facts.remember import LONGER_THAN_ANSWERS
from memory.models import Belief, Episode, ModelCall, RememberJob, Role
from memory.status import read_status
from tests import factories
from tests.admin.scene import person
from tests.consolidation.conftest import Decree
from tests.consolidation.world import World
from tests.facts.telling import TABS, make_due, remembrance_of, tell, work_all
from tests.facts.test_reflecting import run
from tests.model_server_acts import refuse, stall

pytestmark = pytest.mark.django_db

SLOW = "the model is too slow: no answer within 0.3 s (ENGRAM_BUDGET_CALL_SECONDS), try"


@pytest.fixture
def impatient(decree: Decree) -> None:
    """Have calls end after 0.3 s, and attempts after two of them."""
    decree("budget", call_seconds=0.3, call_attempts=1)
    decree("reading", seconds=0.2)  # which is less, and so of no account
    decree("remember", slow_tries=3)


def test_a_call_longer_than_an_answer_is_a_workers(world: World, decree: Decree, sent: list[int]) -> None:
    """E6, R1: the caller waits for nothing that cannot come; the worker has a step's time, and no try is counted."""
    decree("remember", answer_seconds=5.0)  # and a call may take 10
    told = tell(world, TABS)
    assert (told.state, told.reason, world.calls("read")) == ("queued", LONGER_THAN_ANSWERS, 0)
    assert sent == [remembrance_of(told).pk]
    assert (remembrance_of(told).failures, remembrance_of(told).state_reason) == (0, LONGER_THAN_ANSWERS)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).state_reason) == ("done", "")
    assert world.only_belief().alpha == 2.0
    assert (tell(world, TABS).state, tell(world, TABS).reason) == ("done", "")


def test_an_answer_says_that_the_model_was_too_slow(
    world: World, impatient: None, hasty: None, sent: list[int]
) -> None:
    """E6, R1: in the answer as in the row; every call is closed."""
    world.trouble.broken["read"] = stall(1.0)
    told = tell(world, TABS)
    assert (told.state, told.reason) == ("queued", f"{SLOW} 1 of 3")
    assert remembrance_of(told).state_reason == f"{SLOW} 1 of 3"
    assert set(ModelCall.objects.filter(purpose="read").values_list("outcome", flat=True)) == {"timeout"}


def test_a_model_that_stays_too_slow_ends_where_a_person_sees_it(
    world: World, impatient: None, hasty: None, sent: list[int]
) -> None:
    """E6, R1: after three tries the text is left to consolidation, and says so wherever somebody looks."""
    world.trouble.broken["read"] = stall(1.0)
    told = tell(world, TABS)
    for _ in range(2):
        work_all(world)
    row = remembrance_of(told)
    assert (row.state, row.state_reason) == ("failed", f"{SLOW} 3 of 3")
    again = tell(world, TABS)
    assert (again.state, again.reason) == ("queued", f"left to consolidation: {SLOW} 3 of 3")
    key, _ = factories.key("read", workspace=world.workspace)
    assert read_status(viewer=viewer_of(key=key), now=world.now).remembering.failed == 1
    assert world.states(Episode.objects.get(pk=told.episode_id)) == ["new"]
    made = ModelCall.objects.filter(purpose="read")
    calls = made.count()
    make_due()
    work_all(world)
    assert made.count() == calls
    world.trouble.broken.clear()
    [listed] = run("dead_letters", "--remembered", "--workspace", world.workspace.name, "--retry")["dead_letters"]
    assert listed["reason"] == f"{SLOW} 3 of 3"
    work_all(world)
    assert remembrance_of(told).state == "done"
    assert Belief.objects.count() == 1


def test_a_caller_who_asks_again_and_again_ends_nothing(
    world: World, impatient: None, hasty: None, sent: list[int]
) -> None:
    """E6, R1: only a worker, which has more time, gives up."""
    world.trouble.broken["read"] = stall(1.0)
    states = [tell(world, TABS).state for _ in range(4)]
    assert states == ["queued"] * 4
    assert RememberJob.objects.get().state == "queued"
    work_all(world)
    assert RememberJob.objects.get().state == "failed"


def test_a_worker_has_the_time_that_a_caller_has_not(
    world: World, decree: Decree, hasty: None, sent: list[int]
) -> None:
    """E6, F2: what answers nobody who waits for a second and a half is a reading in its usual time."""
    decree("budget", call_seconds=1.0, margin_seconds=0.1, last_call_seconds=8.0)
    decree("remember", answer_seconds=1.5)
    decree("reading", seconds=3.0)
    world.server.then(stall(1.3), purpose="read")
    told = tell(world, TABS)
    assert (told.state, remembrance_of(told).failures) == ("queued", 1)
    world.server.then(stall(1.5), purpose="read")
    work_all(world)
    assert remembrance_of(told).state == "done"
    assert list(ModelCall.objects.filter(purpose="read").values_list("outcome", flat=True)).count("timeout") == 1


def test_a_worker_names_the_limit_of_readings(world: World, decree: Decree, hasty: None, sent: list[int]) -> None:
    """E6, F2: a person who reads it knows which setting to raise."""
    decree("budget", call_seconds=0.2, call_attempts=1)
    decree("reading", seconds=0.4)
    world.trouble.broken["read"] = stall(1.0)
    told = tell(world, TABS)
    assert told.reason == "the model is too slow: no answer within 0.2 s (ENGRAM_BUDGET_CALL_SECONDS), try 1 of 5"
    work_all(world)
    reason = "the model is too slow: no answer within 0.4 s (ENGRAM_READING_SECONDS), try 2 of 5"
    assert remembrance_of(told).state_reason == reason


def test_a_server_that_is_away_is_waited_for(world: World, impatient: None, hasty: None, sent: list[int]) -> None:
    """E6, R1: that is no slowness, and no text is given up for it."""
    world.trouble.broken["read"] = refuse(503)
    told = tell(world, TABS)
    for _ in range(4):
        work_all(world)
    assert remembrance_of(told).state == "queued"
    assert tell(world, TABS).reason == "no model answers (server)"


def test_the_admin_shows_why(world: World, impatient: None, hasty: None, sent: list[int], client: Client) -> None:
    """E6, R1: in the list of texts."""
    world.trouble.broken["read"] = stall(1.0)
    tell(world, TABS)
    client.force_login(person("ana", workspace=world.workspace, role=Role.READER))
    page = client.get(reverse("admin:memory_rememberjob_changelist"))
    assert f"{SLOW} 1 of 3" in page.content.decode()


def test_the_command_says_why(world: World, impatient: None, hasty: None, sent: list[int]) -> None:
    """E6, R1, R15."""
    world.trouble.broken["read"] = stall(1.0)
    told = run("remember", TABS, "--workspace", world.workspace.name)
    assert (told["state"], told["reason"]) == ("queued", f"{SLOW} 1 of 3")


def test_what_a_server_says_is_not_told_to_callers(world: World, hasty: None, sent: list[int]) -> None:
    """E6, R1: it may hold a key; the row has it, for those who run this."""
    world.trouble.broken["read"] = refuse(401, message="no such key: sk-1234")
    told = tell(world, TABS)
    assert "sk-1234" in remembrance_of(told).state_reason
    assert told.reason == "no model answers (auth)"
