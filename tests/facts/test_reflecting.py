"""What a look at all beliefs finds, and what is done about it by command."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from memory.facts.reflection import Reflection, backfill_subjects, prune, reflect
from memory.ledger.transactions import WorkspaceBusy, scan_lock
from memory.models import Belief, BeliefAccess, Episode
from tests.consolidation.world import World
from tests.facts.telling import TELLER, states

pytestmark = pytest.mark.django_db

TABS = "Ana prefers tabs over spaces."
DAY = timedelta(days=1)


def run(command: str, *arguments: str) -> Any:
    """Run a command and read its answer as JSON."""
    out = io.StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def name(world: World) -> str:
    return world.workspace.name


def look(world: World, *, days: int = 0, most: int = 100) -> Reflection:
    return reflect(workspace=world.workspace, now=world.now + days * DAY, most=most)


def test_beliefs_that_may_say_the_same_are_reported(world: World) -> None:
    """R7: at 0.85 and more, with what the guard says; those of another project or user are not."""
    one = world.hold(TABS, about="tabs")
    same = world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.9)
    swapped = world.hold("Ana prefers spaces over tabs.", about="tabs", likeness=0.86)
    world.hold("Ana likes tabs over spaces.", about="tabs", likeness=0.84)
    world.hold("Ana prefers tabs over spaces.", about="tabs", user="mara")
    found = {frozenset(pair.ids): pair.passes_guard for pair in look(world).duplicates}
    assert found == {frozenset({one.pk, same.pk}): True, frozenset({one.pk, swapped.pk}): False}


def test_of_many_the_most_similar_are_told_and_all_are_counted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7: however few are compared at a time."""
    for number, likeness in enumerate((1.0, 0.94, 0.92, 0.96)):
        world.hold(f"{TABS}{'!' * number}", about="tabs", likeness=likeness)
    world.hold("The mill opens at eight.", about="mill")
    whole = look(world)
    told = [look(world, most=2)]
    monkeypatch.setattr("memory.facts.reflection._MAX_CELLS", 5)  # a row at a time
    told.append(look(world, most=2))
    assert (whole.duplicate_count, len(whole.duplicates)) == (6, 6)
    for one in told:
        assert (one.duplicate_count, one.duplicates) == (6, whole.duplicates[:2])


def test_faded_beliefs_are_reported_and_left_alone(world: World) -> None:
    """R7d: 4/5 after 90 days is 0.1, after 125 days below 0.05."""
    belief = world.hold(TABS, about="tabs")
    for days, expected in ((89, []), (91, [False]), (125, [True])):
        faded = look(world, days=days).faded
        assert [one.is_prunable for one in faded] == expected
    assert world.now_of(belief).status == "active"


@pytest.mark.parametrize(
    "given",
    [{"is_pinned": True}, {"published_confidence": 0.8}, {"supports": 5}],
    ids=["pinned", "published", "evidenced"],
)
def test_what_others_keep_is_never_pruned(world: World, given: dict[str, Any]) -> None:
    """R7d."""
    belief = world.hold(TABS, about="tabs", **given)
    assert prune(workspace=world.workspace, actor=TELLER, now=world.now + 400 * DAY) == []
    assert world.now_of(belief).status == "active"


def test_what_is_borne_out_while_others_are_pruned_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R7d: each few are looked at once more before they go."""
    kept, gone = world.hold(TABS, about="tabs"), world.hold("The mill opens at eight.", about="mill")
    later = world.now + 400 * DAY

    def bear_out(workspace_id: int) -> None:
        kept.evidence.update(created_at=later)

    monkeypatch.setattr("memory.facts.reflection.lock_workspace", bear_out)
    assert [one.id for one in prune(workspace=world.workspace, actor=TELLER, now=later)] == [gone.pk]
    assert (world.now_of(kept).status, world.now_of(gone).status) == ("active", "pruned")


def test_stability_slows_the_fading(world: World) -> None:
    """R7d, B5."""
    world.hold(TABS, about="tabs")
    BeliefAccess.objects.update(stability=5.0)
    assert not look(world, days=125).faded


def test_pruning_is_a_command_and_can_be_rehearsed(world: World, name: str) -> None:
    """R7d, R15: long ago is long ago."""
    belief = world.hold(TABS, about="tabs")
    Belief.objects.update(created_at=world.now - 400 * DAY)
    belief.evidence.update(created_at=world.now - 400 * DAY)
    rehearsed = run("prune", "--workspace", name, "--dry-run")
    assert ([one["id"] for one in rehearsed["pruned"]], rehearsed["dry_run"]) == ([belief.pk], True)
    assert world.now_of(belief).status == "active"
    pruned = run("prune", "--workspace", name)
    assert ([one["statement"] for one in pruned["pruned"]], pruned["dry_run"]) == ([TABS], False)
    assert world.now_of(belief).status == "pruned"
    assert belief.transitions.get().actor.startswith("command prune of ")


def test_a_proposed_merge_is_made_by_the_next_cycle(world: World, name: str) -> None:
    """R7, B13: nothing had changed in either belief, so that no cycle would have asked."""
    world.hold(TABS, about="tabs", supports=5)
    world.hold("Ana prefers tabs over spaces!", about="tabs", likeness=0.97)
    world.unions[TABS] = ""
    world.cycle()
    assert not Belief.objects.filter(status="merged").exists()
    world.now += DAY
    [proposed] = run("merge_duplicates", "--workspace", name)
    assert proposed["passes_guard"]
    from memory.models import Link

    Link.objects.update(created_at=world.now)
    world.cycle(after=DAY)
    assert Belief.objects.filter(status="merged").count() == 2
    assert Belief.objects.get(status="active").alpha == 9.0


def test_subjects_are_filled_in_once(world: World, name: str) -> None:
    """R13, R15."""
    belief = world.hold(TABS, about="tabs", subject="")
    kept = world.hold("Otis prefers spaces over tabs.", about="spaces", subject="otis")
    assert run("backfill_subjects", "--workspace", name) == {belief.pk: "ana"}
    assert run("backfill_subjects", "--workspace", name) == {}
    assert (world.now_of(belief).subject, world.now_of(kept).subject) == ("ana", "otis")


@pytest.mark.parametrize("blank", [".", "...", " ", " . "])
def test_a_statement_that_names_nobody_keeps_no_other_from_its_subject(world: World, name: str, blank: str) -> None:
    """R13."""
    nameless = world.hold("It says nothing.", about="nothing", subject="")
    Belief.objects.update(statement=blank)
    belief = world.hold(TABS, about="tabs", subject="")
    assert run("backfill_subjects", "--workspace", name) == {belief.pk: "ana"}
    assert world.now_of(nameless).subject == ""


@pytest.mark.django_db(transaction=True)
def test_subjects_are_filled_in_a_few_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """R13: what was filled in before a fault stays, gates come in between, and the next run does the rest."""
    beliefs = [world.hold(f"Ana prefers tabs in file {n}.", about="tabs", subject="") for n in range(5)]
    monkeypatch.setattr("memory.facts.reflection._FILLED_AT_ONCE", 2)
    held: list[int] = []

    def lock_or_fall(workspace_id: int) -> None:
        held.append(workspace_id)
        if len(held) == 3:
            raise ConnectionResetError

    with monkeypatch.context() as patched:
        patched.setattr("memory.facts.reflection.lock_workspace", lock_or_fall)
        with pytest.raises(ConnectionResetError):
            backfill_subjects(workspace=world.workspace, actor=TELLER, now=world.now)
    named = Belief.objects.filter(subject="ana")
    assert named.count() == 4
    assert len(backfill_subjects(workspace=world.workspace, actor=TELLER, now=world.now)) == 1
    assert set(named.values_list("pk", flat=True)) == {belief.pk for belief in beliefs}


def test_a_belief_is_corrected_by_command(world: World) -> None:
    """R7, R15: by the beginning of its id, which names one belief."""
    belief = world.hold(TABS, about="tabs")
    told = run("correct", belief.pk[:9], "--reason", "she told me", "--statement", "Ana prefers spaces over tabs.")
    assert told["changed"] == [belief.pk]
    assert Belief.objects.get(pk=told["made"][0]).statement == "Ana prefers spaces over tabs."
    with pytest.raises(CommandError) as refused:
        run("correct", belief.pk, "--reason", "again")
    assert refused.value.returncode == 1


def test_a_text_is_remembered_by_command(world: World, name: str) -> None:
    """R1, R15."""
    states(world, TABS)
    told = run("remember", TABS, "--workspace", name, "--user", "mara")
    assert (told["state"], [one["action"] for one in told["beliefs"]]) == ("done", ["created"])
    assert Episode.objects.get(pk=told["episode_id"]).user == "mara"
    with pytest.raises(CommandError) as refused:
        run("remember", " ", "--workspace", name)
    assert refused.value.returncode == 1


def test_a_text_of_another_day_is_remembered_by_command(world: World, name: str) -> None:
    """R1, R15: a time without an offset, or of the day after tomorrow, is refused."""
    told = run("remember", TABS, "--workspace", name, "--occurred-at", "2026-02-01T09:00:00+01:00")
    assert Episode.objects.get(pk=told["episode_id"]).occurred_at == datetime(2026, 2, 1, 8, tzinfo=UTC)
    late = (timezone.now() + 2 * DAY).isoformat()
    for given in ("2026-02-01T09:00:00", "yesterday", late):
        with pytest.raises(CommandError, match="occurred_at") as refused:
            run("remember", "Ana left.", "--workspace", name, "--occurred-at", given)
        assert refused.value.returncode == 1


def test_a_context_is_printed_by_command(world: World, name: str) -> None:
    """R12, R15."""
    belief = world.hold(TABS, about="tabs")
    world.directions.place("tabs or spaces?", {"tabs": 0.9})
    told = run("context", "tabs or spaces?", "--workspace", name)
    assert belief.pk in told["ids"]
    with pytest.raises(CommandError) as refused:
        run("context", "x", "--workspace", name, "--max-tokens", "0")
    assert refused.value.returncode == 2
    with pytest.raises(CommandError, match="The query is empty") as refused:
        run("context", " ", "--workspace", name)
    assert refused.value.returncode == 2


@pytest.mark.parametrize("command", ["reflect", "merge_duplicates", "prune", "backfill_subjects"])
def test_an_unknown_workspace_is_bad_usage(db: None, command: str) -> None:
    """R15: exit status 2."""
    with pytest.raises(CommandError) as refused:
        call_command(command, "--workspace", "nowhere")
    assert refused.value.returncode == 2


def test_a_reflection_is_told(world: World, name: str) -> None:
    """R7, R15."""
    world.hold(TABS, about="tabs")
    assert run("reflect", "--workspace", name)["beliefs"] == 1


@pytest.mark.django_db(transaction=True)
def test_one_looks_at_all_beliefs_at_a_time(world: World) -> None:
    """R7, R11: it takes a processor for seconds, and others are told instead of made to wait."""
    with ThreadPoolExecutor(1) as pool, scan_lock(world.workspace.pk):
        refused = pool.submit(_look, world).result()
    assert refused == "Somebody is looking at all beliefs of this workspace: try again when that is done."
    assert reflect(workspace=world.workspace, now=world.now, most=1).beliefs == 0


def _look(world: World) -> str:
    try:
        reflect(workspace=world.workspace, now=world.now, most=1)
    except WorkspaceBusy as occupied:
        return str(occupied)
    finally:
        connection.close()
    return ""
