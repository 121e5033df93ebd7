"""B8.4: which beliefs episodes are held against, who is asked, and who need not be."""

from datetime import timedelta
from typing import Any

import pytest

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import BeliefStatus
from memory.models import Belief, ClusterJob, Episode, Evidence, JobVerdict, Scope
from tests import factories
from tests.consolidation.world import World
from tests.model_server_acts import Act, Asked

KILN = "The kiln of the pottery burns 5 hours."


def more_kilns(count: int) -> list[str]:
    """Word what the guard tells from KILN, and each from the others."""
    return [f"The kiln of the pottery burns {hours} hours." for hours in range(6, 6 + count)]


def test_the_same_claim_supports_without_a_call(world: World) -> None:
    """B8.4: above .92 and the guard passes: evidence by the guard, no model asked."""
    belief = world.hold(KILN, about="kiln")
    said = world.say(KILN, about="kiln", likeness=1.0)

    world.cycle()

    assert world.calls("classify") == 0
    assert Evidence.objects.get(belief=belief, episode=said).basis == "guard"
    assert (world.now_of(belief).alpha, world.states(said)) == (5.0, ["settled"])


@pytest.mark.parametrize(
    ("text", "likeness"),
    [("The kiln of the pottery burns 6 hours.", 0.99), (KILN.replace("burns", "always burns"), 0.8)],
    ids=["guard fails", "not near enough"],
)
def test_any_other_near_episode_is_asked(world: World, text: str, likeness: float) -> None:
    """B8.4: .92 without the guard is not enough, nor is the guard without .92."""
    belief = world.hold(KILN, about="kiln")
    said = world.say(text, about="kiln", likeness=likeness, verdict=Verdict.CONTRADICTS)

    world.cycle()

    assert [call.texts for call in world.server.calls("classify")] == [[said.text]]
    assert world.now_of(belief).beta == 2.0


def test_an_episode_below_the_threshold_is_not_held_against_a_belief(world: World) -> None:
    """B8.4: nothing at or below .70."""
    world.hold(KILN, about="kiln")
    said = world.say(more_kilns(1)[0], about="kiln", likeness=0.69)

    world.cycle()

    assert world.calls("classify") == 0
    assert world.states(said) == ["pooled"]


def test_a_belief_matched_by_some_does_not_excuse_the_others(world: World) -> None:
    """B8.4: one member supports by the guard, the other four of the cluster are asked."""
    belief = world.hold(KILN, about="kiln")
    same = world.say(KILN, about="kiln", likeness=1.0)
    others = world.say_all(more_kilns(4), about="kiln", verdict=Verdict.CONTRADICTS)

    world.cycle()

    asked = [episode for call in world.server.calls("classify") for episode in call.texts]
    assert sorted(asked) == sorted(episode.text for episode in others)
    assert same.text not in asked
    assert (world.now_of(belief).alpha, world.now_of(belief).beta) == (5.0, 5.0)


@pytest.mark.parametrize("count", [1, 3], ids=["single", "cluster"])
@pytest.mark.parametrize("is_late", [True, False])
def test_what_was_closed_hears_what_is_of_its_time(world: World, is_late: bool, count: int) -> None:
    """C2: late words for it count and found nothing; what is said since it ended is not held against it."""
    end = world.now - timedelta(days=3)
    closed = world.hold(KILN, about="kiln", status="invalidated", status_reason="changed")
    Episode.objects.filter(workspace=world.workspace).update(occurred_at=end - timedelta(days=9))
    Belief.objects.filter(pk=closed.pk).update(valid_until=end)
    at = end + timedelta(hours=-1 if is_late else 1)
    said = world.say_all(more_kilns(count), about="kiln", likeness=0.9, occurred_at=at)

    world.cycle()

    now = world.now_of(closed)
    assert (now.status, now.alpha) == ("invalidated", closed.alpha + (count if is_late else 0))
    founded = Belief.objects.filter(workspace=world.workspace).exclude(pk=closed.pk)
    assert founded.count() == (0 if is_late or count == 1 else 1)
    assert set(world.states(*said)) == {"settled" if is_late or count == 3 else "pooled"}


def test_one_late_word_does_not_stop_what_turns_back(world: World) -> None:
    """C2: a cluster founds nothing where most of it is of the time of what was closed."""
    end = world.now - timedelta(days=3)
    closed = world.hold(KILN, about="kiln", status="invalidated", status_reason="changed")
    Belief.objects.filter(pk=closed.pk).update(valid_until=end)
    late, *since = more_kilns(5)
    world.say(late, about="kiln", likeness=0.9, occurred_at=end - timedelta(hours=1))
    world.say_all(since, about="kiln", likeness=0.9)

    world.cycle()

    assert Belief.objects.filter(workspace=world.workspace, status="active").count() == 1


def test_a_cluster_about_an_existing_belief_founds_none(world: World) -> None:
    """B8.4: contradicting evidence for a live belief means that the cluster is not novel."""
    belief = world.hold(KILN, about="kiln", supports=8)
    world.say_all(more_kilns(3), about="kiln", verdict=Verdict.CONTRADICTS)

    cycle = world.cycle()

    assert world.only_belief() == belief
    assert (cycle.counts["created"], cycle.counts["contradicted"]) == (0, 1)


def test_a_cluster_that_a_near_belief_has_nothing_to_do_with_founds_its_own(world: World) -> None:
    """B8.4: only IRRELEVANT verdicts leave the cluster novel."""
    old = world.hold("The kiln of the pottery is red.", about="kiln", likeness=0.8)
    said = world.say_all(more_kilns(3), about="kiln")
    world.verdicts |= {f"{old.statement}|{episode.text}": Verdict.IRRELEVANT for episode in said}

    world.cycle()

    assert Belief.objects.exclude(pk=old.pk).get().evidence_count == 3
    assert world.now_of(old).evidence_count == 3


def test_an_archived_belief_that_is_only_contradicted_leaves_a_cluster_novel(world: World) -> None:
    """B8.4: the old belief hears the contradiction, and the new one is founded."""
    old = world.hold(KILN, about="kiln", status=BeliefStatus.ARCHIVED, status_reason="stale_and_weak", likeness=0.9)
    said = world.say_all(more_kilns(3), about="kiln")
    world.verdicts |= {f"{KILN}|{episode.text}": Verdict.CONTRADICTS for episode in said}

    world.cycle()

    assert Belief.objects.exclude(pk=old.pk).get().alpha == 4.0
    assert (world.now_of(old).beta, world.now_of(old).status) == (4.0, "archived")


def test_an_archived_belief_that_is_supported_takes_the_evidence(world: World) -> None:
    """B8.4, B14: no second belief beside it; the stale one comes back under its id."""
    old = world.hold(KILN, about="kiln", status=BeliefStatus.ARCHIVED, status_reason="stale_and_weak")
    world.say_all(more_kilns(3), about="kiln")

    world.cycle()

    belief = world.only_belief()
    assert (belief.pk, belief.status, belief.alpha) == (old.pk, "active", 7.0)


def test_members_without_evidence_are_pooled_and_meet_again(world: World) -> None:
    """B8.4: what a matched cluster left over may form a cluster of its own later."""
    old = world.hold(KILN, about="kiln", likeness=0.8)
    heard = world.say(more_kilns(1)[0], about="kiln")
    left = world.say_all([f"The kiln of the pottery weighs {n} tons." for n in (2, 3, 4)], about="kiln")
    world.verdicts |= {f"{KILN}|{episode.text}": Verdict.IRRELEVANT for episode in left}

    world.cycle()
    assert (world.states(heard), world.states(*left)) == (["settled"], ["pooled"] * 3)

    world.cycle(after=timedelta(hours=4))
    assert Belief.objects.exclude(pk=old.pk).get().evidence_count == 3
    assert world.states(*left) == ["settled"] * 3


def test_at_most_five_beliefs_hear_a_cluster(world: World) -> None:
    """B8.4, B9: the five nearest, whatever else is near."""
    beliefs = [
        world.hold(f"The kiln of the pottery has {n} doors.", about="kiln", likeness=1.0 - n / 50) for n in range(2, 9)
    ]
    world.say_all(more_kilns(3), about="kiln", verdict=Verdict.PARTIAL)

    world.cycle()

    heard = set(Evidence.objects.filter(verdict="PARTIAL").values_list("belief", flat=True))
    assert heard == {belief.pk for belief in beliefs[:5]}


def test_a_belief_hears_only_what_it_may(world: World) -> None:
    """B8.4, B21: a project's belief hears its project, a user's belief that user; a global one hears everybody."""
    north, south = (factories.project(workspace=world.workspace) for _ in range(2))
    everywhere = world.hold("The kiln of the pottery has 2 doors.", about="kiln")
    of_north = world.hold("The kiln of the pottery has 3 doors.", about="kiln", scope=Scope.PROJECT, project=north)
    of_south = world.hold("The kiln of the pottery has 4 doors.", about="kiln", scope=Scope.PROJECT, project=south)
    of_ben = world.hold("The kiln of the pottery has 5 doors.", about="kiln", user="ben")
    said = world.say(KILN, about="kiln", project=north, user="ana")

    world.cycle()

    heard = set(Evidence.objects.filter(episode=said).values_list("belief", flat=True))
    assert heard == {everywhere.pk, of_north.pk}
    assert not heard & {of_south.pk, of_ben.pk}


@pytest.mark.parametrize("is_one_project", [True, False])
def test_scope_follows_the_episodes(world: World, is_one_project: bool) -> None:
    """B8.3: project if all of the cluster's episodes have one project, else global."""
    projects = [factories.project(workspace=world.workspace) for _ in range(2)]
    for number, text in enumerate(more_kilns(3)):
        world.say(text, about="kiln", project=projects[0] if is_one_project else projects[number % 2])

    world.cycle()

    belief = world.only_belief()
    assert (belief.scope, belief.project) == (("project", projects[0]) if is_one_project else ("global", None))


def test_a_pair_judged_once_is_not_asked_again(world: World) -> None:
    """B7: by the call log, also where the pair comes back in another job, and for the newcomer alone."""
    world.hold(KILN, about="kiln", likeness=0.8)
    first = world.say(more_kilns(1)[0], about="kiln", verdict=Verdict.IRRELEVANT)
    world.cycle()
    assert [call.texts for call in world.server.calls("classify")] == [[first.text]]

    second = world.say(more_kilns(2)[1], about="kiln", verdict=Verdict.IRRELEVANT)
    world.cycle(after=timedelta(hours=4))
    world.cycle(after=timedelta(hours=4))

    assert [call.texts for call in world.server.calls("classify")] == [[first.text], [second.text]]
    assert set(world.states(first, second)) == {"pooled"}


def test_a_refused_set_waits_until_it_changes(world: World) -> None:
    """B8.2: the same members cost no second synthesis; a newcomer makes them another set."""
    said = world.say_all(more_kilns(3), about="kiln")
    world.statements["kiln"] = ""
    world.cycle()
    world.cycle(after=timedelta(days=1))
    assert world.calls("synthesize") == 1

    world.statements.clear()
    said.append(world.say(more_kilns(4)[3], about="kiln"))
    world.cycle(after=timedelta(days=1))

    assert world.only_belief().evidence_count == 4
    assert set(world.states(*said)) == {"settled"}


def test_twelve_episodes_to_a_call(world: World) -> None:
    """B8.4: at most twelve episodes about one statement in one call, and every one is asked once."""
    world.hold(KILN, about="kiln")
    world.say_all(more_kilns(25), about="kiln", verdict=Verdict.CONTRADICTS)

    world.cycle()

    assert sorted(len(call.texts) for call in world.server.calls("classify")) == [1, 12, 12]
    assert Evidence.objects.filter(verdict="CONTRADICTS").count() == 25
    assert ClusterJob.objects.get().state == "applied"


def test_beliefs_that_wait_for_the_same_episodes_share_a_call(world: World) -> None:
    """B8.4: one call about three beliefs; each pair has a verdict of its own, and that of the call."""
    statements = [KILN, "The kiln of the pottery is old.", "The kiln of the pottery is loud."]
    beliefs = [world.hold(statement, about="kiln", likeness=0.9) for statement in statements]
    said = world.say_all(more_kilns(3), about="kiln", verdict=Verdict.IRRELEVANT)
    world.verdicts[f"{KILN}|{said[1].text}"] = Verdict.CONTRADICTS
    world.verdicts[f"{statements[2]}|{said[0].text}"] = Verdict.PARTIAL

    world.cycle()

    about_beliefs = world.server.calls("classify")[0]
    assert (sorted(about_beliefs.beliefs), len(about_beliefs.texts)) == (sorted(statements), 3)
    rows = JobVerdict.objects.filter(belief__in=beliefs)
    assert {row["basis"] for row in rows.values("basis")} == {"model"}
    assert rows.values("call").distinct().count() == 1
    told = {(row.belief.statement, row.episode.text): row.verdict for row in rows if row.verdict != "IRRELEVANT"}
    assert told == {(KILN, said[1].text): "CONTRADICTS", (statements[2], said[0].text): "PARTIAL"}


def test_the_person_is_named_where_the_id_is_a_name(world: World) -> None:
    """E2: in what words a belief and in what judges it."""
    prompts: list[str] = []

    def answer(asked: Asked) -> Act | dict[str, Any]:
        prompts.append(asked.body["messages"][1]["content"].split("\n")[1])
        return world.answer(asked)

    world.server.script = answer
    world.say_all(more_kilns(4), about="kiln", user="mara")
    world.say_all([f"The barn of the farm has {doors} doors." for doors in range(2, 6)], about="barn", user="u-17")

    world.cycle()

    assert sorted(prompt == '{"user":"Mara"}' for prompt in prompts) == [False, False, True, True]


@pytest.mark.parametrize(("likeness", "asked"), [(0.79, 0), (0.81, 1)])
def test_nobody_is_asked_about_what_has_no_word_in_common(world: World, likeness: float, asked: int) -> None:
    """B8.4: unless it is so near that other words may say the same; it costs no place among the calls either."""
    world.hold(KILN, about="kiln", subject="kiln")
    said = world.say("Pizza was ordered for everybody.", about="kiln", likeness=likeness, verdict=Verdict.IRRELEVANT)

    world.cycle()

    assert (world.calls("classify"), ClusterJob.objects.count()) == (asked, asked)
    assert world.states(said) == ["pooled"]


def test_a_cluster_is_held_only_against_beliefs_that_it_may_concern(world: World) -> None:
    """B8.4: by the words of each; its own candidate is judged by all."""
    world.hold(KILN, about="kiln", likeness=0.75, subject="kiln")
    world.hold("Pizza is ordered on Fridays.", about="kiln", likeness=0.75, subject="pizza")
    world.say_all(more_kilns(3), about="kiln", likeness=1.0, verdict=Verdict.IRRELEVANT)

    world.cycle()

    assert world.server.calls("classify")[0].beliefs == [KILN]


def test_what_the_guard_told_is_not_overruled_by_a_call_about_others(world: World) -> None:
    """B8.4: a pair that needs no call is asked about beside others, and keeps its verdict."""
    belief = world.hold(KILN, about="kiln")
    loud = world.hold("The kiln of the pottery is loud.", about="kiln", likeness=0.9)
    same = world.say(KILN, about="kiln", likeness=1.0)
    world.verdicts[KILN] = Verdict.CONTRADICTS
    world.say_all(more_kilns(4), about="kiln", verdict=Verdict.CONTRADICTS)

    world.cycle()

    assert [sorted(call.beliefs) for call in world.server.calls("classify")] == [sorted([KILN, loud.statement])]
    assert Evidence.objects.get(belief=belief, episode=same).basis == "guard"
    assert Evidence.objects.get(belief=loud, episode=same).verdict == "CONTRADICTS"


def test_a_forgotten_member_brings_no_evidence(world: World) -> None:
    """B4, R10: what is forgotten before the gate is not counted."""
    said = world.say_all(more_kilns(4), about="kiln")
    world.before_gate = lambda: Episode.objects.filter(pk=said[0].pk).update(status="forgotten")

    world.cycle()

    assert world.only_belief().evidence_count == 3


@pytest.mark.parametrize("is_one_project", [True, False])
def test_a_cluster_is_held_against_what_all_its_episodes_may_see(world: World, is_one_project: bool) -> None:
    """B8.4, B21: its one project's beliefs and global ones; where projects mix, global ones alone."""
    north, south = (factories.project(workspace=world.workspace) for _ in range(2))
    everywhere = world.hold("The kiln of the pottery has 2 doors.", about="kiln", supports=8)
    of_north = world.hold("The kiln of the pottery has 3 doors.", about="kiln", scope=Scope.PROJECT, project=north)
    world.hold("The kiln of the pottery has 4 doors.", about="kiln", scope=Scope.PROJECT, project=south)
    for number, text in enumerate(more_kilns(4)):
        project = north if is_one_project or number % 2 else south
        world.say(text, about="kiln", project=project, verdict=Verdict.PARTIAL)

    world.cycle()

    heard = set(Evidence.objects.filter(verdict="PARTIAL").values_list("belief", flat=True))
    assert heard == ({everywhere.pk, of_north.pk} if is_one_project else {everywhere.pk})
