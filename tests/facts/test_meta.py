"""Beliefs about beliefs."""

from dataclasses import replace

import pytest
from django.core.management import CommandError
from pytest_django import Settings

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.facts.meta_beliefs import make_meta_beliefs
from memory.ledger.confidence import find_drift
from memory.ledger.transactions import Author
from memory.models import Belief, BeliefAccess, Link, LinkKind
from tests.consolidation.world import World
from tests.facts.telling import TELLER
from tests.facts.test_reflecting import run
from tests.model_server_acts import refuse

pytestmark = pytest.mark.django_db

GENERAL = "Ana is particular about how code looks."


def made(world: World) -> list[Belief]:
    author = Author(actor=TELLER, reason="as asked", now=world.now)
    return list(make_meta_beliefs(workspace=world.workspace, author=author).made)


@pytest.fixture
def group(world: World) -> list[Belief]:
    """Return three beliefs about one matter, and a fourth about another."""
    world.hold("The mill opens at eight.", about="mill")
    statements = ["Ana prefers tabs.", "Ana wants short lines.", "Ana dislikes trailing spaces."]
    for statement in statements:
        world.statements[world.directions.matter_of(statement)] = GENERAL
    world.statements["code"] = GENERAL
    return [
        world.hold(statement, about="code", likeness=0.85, supports=2, contradicts=n)
        for n, statement in enumerate(statements)
    ]


def test_a_group_comes_down_to_one_belief(world: World, group: list[Belief]) -> None:
    """R7, B4: on the evidence of all three, 2 + 2 + 2 for and 0 + 1 + 2 against: 7/11."""
    [meta] = made(world)
    assert (meta.statement, meta.fact_type) == (GENERAL, "meta")
    assert Belief.objects.values_list("alpha", "beta").get(pk=meta.pk) == (7.0, 4.0)
    assert BeliefAccess.objects.get(belief=meta).stability == 3.0
    sources = Link.objects.filter(belief=meta, kind=LinkKind.SOURCE)
    assert set(sources.values_list("other_id", flat=True)) == {belief.pk for belief in group}
    assert {lineage.kind for lineage in meta.parents_lineage.all()} == {"synthesis"}
    assert find_drift(workspace=world.workspace)[1] == []


def test_a_group_is_taken_once(world: World, group: list[Belief]) -> None:
    """R7: nor is a belief about beliefs part of a group."""
    assert len(made(world)) == 1
    assert made(world) == []


def test_a_group_of_which_a_model_sees_nothing_stands_in_no_other_ones_way(
    world: World, group: list[Belief], settings: Settings
) -> None:
    """R7: it is not asked about again as it is, and the next has its turn."""
    settings.POLICY = replace(settings.POLICY, reflection=replace(settings.POLICY.reflection, meta_groups=1))
    world.statements["code"] = ""
    world.statements["mill"] = "The mill is busy."
    for hour in ("nine", "noon"):
        world.hold(f"The mill grinds at {hour}.", about="mill", likeness=0.9)
    assert sorted(belief.statement for _ in range(3) for belief in made(world)) == ["The mill is busy."]
    assert world.calls("synthesize") == 2


def test_two_beliefs_are_no_group(world: World) -> None:
    """R7."""
    for statement in ("Ana prefers tabs.", "Ana wants short lines."):
        world.hold(statement, about="code", likeness=0.85)
    assert made(world) == []
    assert world.calls("synthesize") == 0


def test_what_says_no_more_than_a_source_is_not_made(world: World, group: list[Belief]) -> None:
    """R7."""
    world.statements["code"] = group[0].statement
    assert made(world) == []


def test_rules_make_none(world: World, group: list[Belief], settings: Settings) -> None:
    """R7."""
    settings.ENGRAM_LLM = "offline"
    author = Author(actor=TELLER, reason="as asked", now=world.now)
    done = make_meta_beliefs(workspace=world.workspace, author=author)
    assert (done.groups, done.made) == (1, [])
    assert done.unanswered == "Rules make no beliefs about others: that takes a language model."


def test_what_counts_for_one_and_against_another_is_partial(world: World, group: list[Belief]) -> None:
    """R7, B13."""
    row = group[0].evidence.first()
    assert row
    row.pk, row.belief, row.verdict = None, group[1], "CONTRADICTS"
    row.save(force_insert=True)
    [meta] = made(world)
    assert meta.evidence.get(episode=row.episode).verdict == "PARTIAL"


def test_the_command_tells_what_was_made(world: World, group: list[Belief]) -> None:
    """R7, R15."""
    [told] = run("make_meta_beliefs", "--workspace", world.workspace.name)
    assert told["statement"] == GENERAL


def test_what_a_person_put_away_is_not_made_again(world: World, group: list[Belief]) -> None:
    """R7, B22: nor is its group asked about."""
    [meta] = made(world)
    curate_belief(belief_id=meta.pk, act=CuratorAction.ARCHIVE, reason="too sweeping", actor=TELLER, now=world.now)
    asked = world.calls("synthesize")
    assert made(world) == []
    assert world.calls("synthesize") == asked


@pytest.mark.parametrize("is_put_away", [False, True])
def test_what_a_belief_says_already_is_not_made(world: World, group: list[Belief], is_put_away: bool) -> None:
    """R7, B22: of another group it may have come, or by hand."""
    known = world.hold("Ana is particular about how code looks!", about=GENERAL, likeness=0.97)
    if is_put_away:
        curate_belief(belief_id=known.pk, act=CuratorAction.FORGET, reason="too sweeping", actor=TELLER, now=world.now)
    assert made(world) == []
    assert not Belief.objects.filter(fact_type="meta").exists()


def test_a_model_that_fails_is_reported(world: World, group: list[Belief], hasty: None) -> None:
    """R7: that is not the same as finding nothing: exit status 1."""
    world.trouble.broken["synthesize"] = refuse(500)
    with pytest.raises(CommandError, match="No answer about 1 group: server") as failed:
        run("make_meta_beliefs", "--workspace", world.workspace.name)
    assert failed.value.returncode == 1
