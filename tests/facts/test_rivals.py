"""Beliefs that may contradict each other are listed, and held against each other by a model."""

import io
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from memory.erasure.erase import erase_memories
from memory.facts.contradictions import (
    check_contradiction_candidates,
    dismiss_contradiction_candidates,
    find_contradiction_candidates,
    list_contradiction_candidates,
    reopen_contradiction_candidates,
)
from memory.models import Belief, ContradictionCandidate, ContradictionState, Episode, ModelCall
from tests import factories
from tests.consolidation.world import World
from tests.facts.telling import TELLER
from tests.facts.test_reflecting import run
from tests.model_server_acts import garbage, refuse

pytestmark = pytest.mark.django_db

TABS = "Ana prefers tabs."
PORTO = "Ana lives in Porto."
GHENT = "Ana lives in Ghent."
BONN = "Ana lives in Bonn."

Outcome = tuple[str, str]


@pytest.fixture
def three(world: World) -> list[Belief]:
    """Return three beliefs of which no two hold: 0.72, 0.64 and 0.56 alike, in this order of pairs."""
    return [
        world.hold(statement, about="home", likeness=likeness)
        for statement, likeness in ((PORTO, 0.9), (GHENT, 0.8), (BONN, 0.7))
    ]


@pytest.fixture
def alike(world: World) -> list[Belief]:
    """Return three beliefs that are as much alike, and do not contradict each other."""
    told = (("Ana likes tea.", 0.9), ("Ana plays chess.", 0.8), ("Ana wants short lines.", 0.7))
    return [world.hold(statement, about="Ana", likeness=likeness) for statement, likeness in told]


def find(world: World, most: int | None = None) -> list[frozenset[str]]:
    """Look for pairs; return the statements of those that are new."""
    found = find_contradiction_candidates(workspace=world.workspace, now=world.now, most=most)
    return [frozenset({rival.first.statement, rival.second.statement}) for rival in found]


def check(world: World, *, again: bool = False) -> int:
    """Have a model asked; return how many pairs came to a state."""
    done = check_contradiction_candidates(workspace=world.workspace, now=world.now, seconds=60, again=again)
    return sum(done.outcomes.values())


def outcomes() -> dict[frozenset[str], Outcome]:
    """Return state and reason of each pair, by its statements."""
    rows = ContradictionCandidate.objects.values_list("first__statement", "second__statement", "state", "reason")
    return {frozenset((one, other)): (state, reason) for one, other, state, reason in rows}


def states() -> list[str]:
    return [state for state, _ in outcomes().values()]


def contradict(world: World, one: str, other: str) -> None:
    """Let the model find that two contradict each other, whichever it is asked about."""
    world.contradictions |= {one: other, other: one}


def test_pairs_are_listed_once_the_most_similar_first(world: World, three: list[Belief]) -> None:
    """R11."""
    assert find(world, most=2) == [frozenset({PORTO, GHENT}), frozenset({PORTO, BONN})]
    assert find(world) == [frozenset({GHENT, BONN})]
    assert find(world) == []
    listed = list_contradiction_candidates(workspace=world.workspace, state=ContradictionState.OPEN)
    assert [round(rival.similarity, 2) for rival in listed] == [0.72, 0.63, 0.56]
    assert all(rival.first_id < rival.second_id for rival in ContradictionCandidate.objects.all())


def test_a_look_lists_no_more_than_so_many_new_pairs(world: World, three: list[Belief], settings: Settings) -> None:
    """R11, B24."""
    settings.POLICY = replace(settings.POLICY, contradiction=replace(settings.POLICY.contradiction, pairs=2))
    assert [len(find(world)) for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("likeness", "given", "listed"),
    [
        (0.39, {}, 0),
        (0.41, {}, 1),
        (0.84, {}, 1),
        (0.86, {}, 0),
        (0.99, {"statement": "Ana never prefers tabs."}, 1),
        (0.99, {"statement": "Ana never prefers tabs.", "user": "mara"}, 0),
        (0.7, {"user": "mara"}, 0),
        (0.7, {"language": "de"}, 0),
        (0.7, {"status": "challenged"}, 0),
        (0.7, {"in_project": True}, 0),
    ],
)
def test_pairs_are_of_one_scope_and_alike_enough(
    world: World, likeness: float, given: dict[str, Any], listed: int
) -> None:
    """R11: at 0.40 to 0.85; above, they may say the same (R7), unless the guard tells them apart."""
    if given.pop("in_project", False):
        given = {"project": factories.project(workspace=world.workspace), "scope": "project"}
    world.hold(TABS, about="code")
    world.hold(**{"statement": "Ana prefers tabs!"} | given, about="code", likeness=likeness)
    assert len(find(world)) == listed


def test_a_contradiction_is_written_down_and_changes_no_belief(world: World, three: list[Belief]) -> None:
    """R11: nothing resolves itself."""
    contradict(world, PORTO, GHENT)
    find(world)
    before = {name: rows for name, rows in world.rows().items() if name != "ModelCall"}
    assert check(world) == 3
    assert outcomes()[frozenset({PORTO, GHENT})] == ("contradicts", "as scripted")
    assert sorted(states()) == ["compatible", "compatible", "contradicts"]
    assert {name: rows for name, rows in world.rows().items() if name != "ModelCall"} == before
    assert ContradictionCandidate.objects.exclude(call__purpose="contradict").count() == 0


def test_pairs_with_a_belief_in_common_are_asked_about_in_one_call(world: World, three: list[Belief]) -> None:
    """R11: three pairs of three beliefs, two calls."""
    find(world)
    check(world)
    assert world.calls("contradict") == 2
    assert check(world) == 0
    assert world.calls("contradict") == 2


def test_all_that_may_contradict_one_belief_is_asked_about_in_one_call(world: World) -> None:
    """R11: whichever of each pair comes first, and the reply names several."""
    homes = ["Porto", "Ghent", "Bonn", "Basel", "Turin", "Leeds", "Malmö", "Graz"]
    beliefs = [world.hold(f"Ana lives in {home}.", about="home", likeness=0.8) for home in homes]
    common, *others = sorted(beliefs, key=lambda belief: belief.pk)[::-1]
    find(world)
    ContradictionCandidate.objects.exclude(first=common).exclude(second=common).delete()
    world.contradictions[common.statement] = [other.statement for other in others[:3]]
    assert (check(world), world.calls("contradict")) == (7, 1)
    chosen = ContradictionCandidate.objects.filter(state=ContradictionState.CONTRADICTS).values_list(
        "first_id", flat=True
    )
    assert set(chosen) == {other.pk for other in others[:3]}


@pytest.mark.parametrize("contradicted", [[], [0], [1], [0, 1]])
def test_one_reply_says_what_becomes_of_all_its_pairs(world: World, contradicted: list[int]) -> None:
    """R11: it names every belief that contradicts, and the others are not asked about once more."""
    beliefs = [world.hold(text, about="code", likeness=0.8) for text in (PORTO, GHENT, BONN)]
    first, *others = sorted(beliefs, key=lambda belief: belief.pk)
    world.contradictions[first.statement] = [others[place].statement for place in contradicted]
    find(world)
    check(world)
    of_first = {rival.second_id: rival.state for rival in ContradictionCandidate.objects.filter(first=first)}
    assert of_first == {
        other.pk: ContradictionState.CONTRADICTS if place in contradicted else ContradictionState.COMPATIBLE
        for place, other in enumerate(others)
    }
    assert world.calls("contradict") == 2


def test_what_nobody_can_read_needs_a_person(world: World, three: list[Belief]) -> None:
    """R11: a model failure means that, and the beliefs are not asked about again by themselves."""
    world.server.script = lambda asked: garbage()
    find(world)
    check(world)
    assert set(outcomes().values()) == {("needs_a_person", "no answer that could be read: malformed")}
    assert check(world) == 0


def test_a_refused_key_needs_a_person(world: World, three: list[Belief]) -> None:
    """R11: and nothing is read into it."""
    world.server.script = lambda asked: refuse(401)
    find(world)
    check(world)
    assert set(outcomes().values()) == {("needs_a_person", "no answer: auth")}


def test_what_no_model_could_tell_is_asked_about_again_if_that_is_wanted(world: World, three: list[Belief]) -> None:
    """R11: a wrong key, or a server that is away, parks no pair for good."""
    script, world.server.script = world.server.script, lambda asked: refuse(401)
    find(world)
    done = check_contradiction_candidates(workspace=world.workspace, now=world.now, seconds=60)
    assert (done.outcomes, done.stopped) == ({ContradictionState.NEEDS_A_PERSON: 3}, "no answer: auth")
    world.server.script = script
    assert (check(world), check(world, again=True)) == (0, 3)
    assert set(states()) == {"compatible"}


def test_a_belief_that_was_not_asked_about_needs_a_person(world: World, three: list[Belief]) -> None:
    """R11."""
    world.server.script = lambda asked: {"contradicts": [1, 9], "reason": "so it seems"}
    find(world)
    check(world)
    assert set(outcomes().values()) == {("needs_a_person", "the model named a belief that it was not asked about")}


def test_stored_replies_are_reused(world: World, three: list[Belief]) -> None:
    """R11, B9: what is asked about again is not paid for again."""
    find(world)
    check(world)
    calls = world.calls("contradict")
    reopen_contradiction_candidates(rivals=ContradictionCandidate.objects.all())
    assert check(world) == 3
    assert world.calls("contradict") == calls


def test_a_spent_cap_leaves_pairs_open(world: World, three: list[Belief]) -> None:
    """R11, B9: they are asked about when there is room again."""
    world.workspace.daily_token_cap = 1
    world.workspace.save()
    find(world)
    done = check_contradiction_candidates(workspace=world.workspace, now=world.now, seconds=60)
    assert (done.outcomes, done.stopped) == ({}, "the workspace's tokens of this day are spent")
    assert states() == ["open"] * 3


def test_a_belief_that_changed_takes_its_pairs_off_the_list(world: World, three: list[Belief]) -> None:
    """R11: by its status; nothing is asked about them."""
    find(world)
    Belief.objects.filter(pk=three[0].pk).update(status="revised")
    [left] = list_contradiction_candidates(workspace=world.workspace, state=ContradictionState.OPEN)
    assert {left.first_id, left.second_id} == {three[1].pk, three[2].pk}
    assert check(world) == 1


def test_what_a_curator_dismissed_stays_off_the_list(world: World, three: list[Belief]) -> None:
    """R11."""
    find(world)
    assert dismiss_contradiction_candidates(rivals=ContradictionCandidate.objects.all()) == 3
    assert (find(world), list(list_contradiction_candidates(workspace=world.workspace)), check(world)) == ([], [], 0)


def test_contradictions_come_first(world: World, three: list[Belief]) -> None:
    """R11: whatever their similarity."""
    find(world)
    least = ContradictionCandidate.objects.order_by("similarity")[0]
    ContradictionCandidate.objects.filter(pk=least.pk).update(state="contradicts")
    assert list_contradiction_candidates(workspace=world.workspace)[0] == least


def test_the_offline_reader_finds_contradictions(world: World, settings: Settings) -> None:
    """R11, F6."""
    settings.ENGRAM_LLM = "offline"
    world.hold("Mara works at Nordbank.", about="work", likeness=0.9)
    world.hold("Mara quit her job at Nordbank.", about="work", likeness=0.9)
    assert (len(find(world)), check(world), states()) == (1, 1, ["contradicts"])


def test_what_the_offline_reader_does_not_see_stays_open(world: World, alike: list[Belief], settings: Settings) -> None:
    """R11, F6: it is silent where it is unsure, and finds nothing compatible."""
    find(world)
    settings.ENGRAM_LLM = "offline"
    assert check(world) == 0
    assert states() == ["open"] * 3


def test_what_the_offline_reader_does_not_see_keeps_no_others_from_their_turn(
    world: World, alike: list[Belief], settings: Settings
) -> None:
    """R11: each check goes on with the pairs that were looked at least lately."""
    find(world)
    settings.ENGRAM_LLM = "offline"
    looked_at = set()
    for _ in range(3):
        check_contradiction_candidates(workspace=world.workspace, now=world.now, seconds=60, most=1)
        looked_at.add(ContradictionCandidate.objects.filter(checked_at=world.now).count())
    assert looked_at == {1, 2, 3}


def test_an_erased_belief_leaves_no_word_of_what_was_asked(world: World, three: list[Belief]) -> None:
    """R11, B19: nor with the pairs of others that were asked about in the same call."""
    contradict(world, PORTO, GHENT)
    find(world)
    check(world)
    ids = sorted(belief.pk for belief in three)
    erase_memories(
        workspace=world.workspace, episodes=Episode.objects.none(), beliefs=ids[2:], actor=TELLER, now=world.now
    )
    assert [(rival.first_id, rival.second_id, rival.reason) for rival in ContradictionCandidate.objects.all()] == [
        (ids[0], ids[1], "")
    ]
    assert set(ModelCall.objects.filter(purpose="contradict").values_list("reply", flat=True)) == {""}


def test_what_was_asked_is_gone_whichever_of_a_pair_all_were_held_against(world: World, three: list[Belief]) -> None:
    """R11, B19: the call showed the erased belief beside the one with the greatest id."""
    find(world)
    first, second, common = sorted(belief.pk for belief in three)
    ContradictionCandidate.objects.filter(first=first, second=second).delete()
    contradict(world, Belief.objects.get(pk=common).statement, Belief.objects.get(pk=second).statement)
    assert (check(world), world.calls("contradict")) == (2, 1)
    erase_memories(
        workspace=world.workspace, episodes=Episode.objects.none(), beliefs=[first], actor=TELLER, now=world.now
    )
    assert [(rival.first_id, rival.second_id, rival.reason) for rival in ContradictionCandidate.objects.all()] == [
        (second, common, "")
    ]
    assert set(ModelCall.objects.filter(purpose="contradict").values_list("reply", flat=True)) == {""}


def test_the_command_lists_and_asks(world: World, three: list[Belief]) -> None:
    """R11, R15."""
    contradict(world, PORTO, GHENT)
    name = world.workspace.name
    assert run("find_contradictions", "--workspace", name) == []
    assert (states(), world.calls("contradict")) == (["open"] * 3, 0)
    [told] = run("find_contradictions", "--workspace", name, "--check")
    assert (set(told["statements"]), told["state"], told["reason"]) == ({PORTO, GHENT}, "contradicts", "as scripted")


def test_the_command_dismisses_and_reopens_by_number(world: World, three: list[Belief]) -> None:
    """R11, R15."""
    name = world.workspace.name
    world.contradictions = {PORTO: [GHENT, BONN], GHENT: [PORTO, BONN], BONN: [PORTO, GHENT]}
    first, *others = run("find_contradictions", "--workspace", name, "--check")
    number = str(first["pair"])
    assert run("find_contradictions", "--workspace", name, "--dismiss", number) == others
    assert run("find_contradictions", "--workspace", name, "--reopen", number) == others
    again = run("find_contradictions", "--workspace", name, "--check")[0]
    assert (again["pair"], again["state"]) == (first["pair"], "contradicts")
    with pytest.raises(CommandError, match="There is no pair 0") as refused:
        run("find_contradictions", "--workspace", name, "--dismiss", number, "--dismiss", "0")
    assert refused.value.returncode == 2
    assert not ContradictionCandidate.objects.filter(state="dismissed").exists()


def test_the_command_says_what_there_is_to_look_at(world: World, three: list[Belief]) -> None:
    """R11, R15."""
    contradict(world, PORTO, GHENT)
    out = io.StringIO()
    call_command("find_contradictions", "--workspace", world.workspace.name, "--limit", "1", "--check", stdout=out)
    [only] = ContradictionCandidate.objects.all()
    assert out.getvalue().startswith(f"{only.pk}: contradicts, 0.72 alike (as scripted)\n")
    assert out.getvalue().endswith("1 pair to look at.\n")


def test_the_command_says_how_many_pairs_are_only_alike(world: World, alike: list[Belief]) -> None:
    """R11, R15."""
    out = io.StringIO()
    call_command("find_contradictions", "--workspace", world.workspace.name, stdout=out)
    assert out.getvalue() == "0 pairs to look at.\n3 pairs only alike: --check has a model asked.\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--workspace", "nowhere"], 2), (["--check"], 1)],
)
def test_the_command_ends_with_what_went_wrong(
    world: World, three: list[Belief], arguments: list[str], code: int
) -> None:
    """R11, R15: 1 where not all could be asked about, 2 for the command line."""
    world.workspace.daily_token_cap = 1
    world.workspace.save()
    given = arguments if "--workspace" in arguments else ["--workspace", world.workspace.name, *arguments]
    with pytest.raises(CommandError) as refused:
        call_command("find_contradictions", *given, stdout=io.StringIO())
    assert refused.value.returncode == code
