"""B8.6: how a structural change is proposed, judged, applied, refused, or left to a later cycle."""

from datetime import timedelta

import pytest

from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.evidence import Verdict
from memory.domain.identity import Actor, ActorKind
from memory.models import (
    Belief,
    BeliefEvent,
    Evidence,
    GateDecision,
    Lineage,
    ModelCall,
    StructuralChild,
    Transition,
    Workspace,
)
from tests.consolidation.conftest import Decree
from tests.consolidation.restructuring import (
    NEW,
    OLD,
    SUMMER,
    WINTER,
    child_of,
    contradict,
    divided,
    doubted,
    job_of,
)
from tests.consolidation.world import World
from tests.model_server_acts import refuse

LENA = Actor(kind=ActorKind.PERSON, name="lena")


@pytest.mark.usefixtures("without_closing")
def test_the_contradictions_come_one_by_one_and_the_ninth_revises(world: World) -> None:
    """B6, B15: 5 supports, 80 days old: destabilised at the 5th contradiction, under 0.4 at the 9th."""
    belief = world.hold(OLD, about="kiln", supports=5, created_at=world.now - timedelta(days=80))
    opened, shut = [], []
    for count in range(1, 10):
        world.say(f"Potter's log {count}: 6 hours.", about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
        decision = GateDecision.objects.get(belief=belief, gate="revise", cycle=world.cycle(after=timedelta(minutes=1)))
        opened += [count] * (decision.facts["prediction_error"] >= decision.facts["error_threshold"])
        shut += [decision.reason]

    assert opened == [5, 6, 7, 8, 9]
    assert shut == ["still_confident"] * 8 + ["disproved"]


def test_a_revision_puts_a_new_belief_in_the_place_of_the_old(world: World) -> None:
    """B15: a new id, the old evidence judged anew, the error forgotten, the old belief kept with its own."""
    old = doubted(world)
    contradict(world)

    cycle = world.cycle()

    new = child_of(old)
    assert (new.statement, new.status, new.lineage_depth, new.created_in) == (NEW, "active", 1, cycle)
    assert (new.alpha, new.beta, new.evidence_count) == (7.0, 4.0, 9)  # 5 + 1 for it, 3 against it
    assert (new.prediction_error, new.peak_confidence, new.statement_changed_at) == (0.0, 7 / 11, cycle.now)
    assert set(Evidence.objects.filter(belief=new).values_list("is_founding", flat=True)) == {True}
    assert world.now_of(old).status == "revised"
    assert (world.now_of(old).alpha, world.now_of(old).beta) == (4.0, 7.0)
    assert (cycle.counts["revised"], cycle.counts["created"], cycle.counts["archived"]) == (1, 0, 0)


def test_a_job_keeps_what_it_takes_to_do_it_again_without_a_model(world: World) -> None:
    """B8.6, B22: kind, version, facts, proposal and call, each verdict with its call, and the child."""
    old = doubted(world)
    contradict(world)

    cycle = world.cycle()

    job = job_of(world)
    child = job.children.get()
    assert (job.kind, job.belief, job.decided_in, job.cycle, job.state) == ("revise", old, cycle, cycle, "applied")
    assert (job.proposal or {})["statement"] == NEW
    assert ModelCall.objects.get(structural_job=job, purpose="revise") == job.proposal_call
    assert job.facts["contradicting"] == 6.0
    assert child.belief == child_of(old)
    assert sorted(child.verdicts.values_list("verdict", flat=True)) == ["CONTRADICTS"] * 3 + ["SUPPORTS"] * 6
    assert set(child.verdicts.values_list("call__purpose", flat=True)) == {"classify"}


@pytest.mark.usefixtures("without_closing")
def test_the_old_evidence_is_asked_about_twelve_to_a_call(world: World) -> None:
    """B8.6: fourteen episodes are two calls about the child."""
    doubted(world, supports=5, against=8)
    contradict(world)

    world.cycle()

    asked = [len(call.texts) for call in world.server.calls("classify")]
    assert sorted(asked) == [1, 2, 12]


def test_a_storm_makes_one_revision_and_the_next_cycle_none(world: World) -> None:
    """B15, B23: ten contradictions in one cycle change a belief once; then they support its child."""
    doubted(world)
    for _ in range(10):
        contradict(world)

    first, second = world.cycle(), world.cycle(after=timedelta(days=1))

    assert (first.counts["revised"], second.counts["revised"]) == (1, 0)
    assert Belief.objects.count() == 2


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize(
    ("supports", "against", "speaks_for_new", "refusal"),
    [(3, 5, 1, "too_few_supports"), (8, 12, 5, "not_confident")],
)
def test_a_weak_child_is_refused_with_its_reason(
    world: World, supports: int, against: int, speaks_for_new: int, refusal: str
) -> None:
    """B8.6: two supports are too few; six against eight are not enough."""
    old = doubted(world, supports=supports, against=against, speaks_for_new=speaks_for_new)
    contradict(world)

    cycle = world.cycle()

    assert (job_of(world).state, job_of(world).refusal) == ("refused", refusal)
    assert StructuralChild.objects.get().refusal == refusal
    assert (cycle.counts["revised"], Belief.objects.count(), Lineage.objects.count()) == (0, 1, 0)
    assert world.now_of(old).status == "active"


@pytest.mark.parametrize(
    ("revision", "refusal"),
    [
        ("", "no_statement"),
        (OLD, "unchanged"),
        ("Is it 6 hours?", "question"),
        ("It burns " + 40 * "on and ", "too_long"),
    ],
)
def test_what_cannot_take_the_place_of_a_belief_is_refused_without_judging(
    world: World, revision: str, refusal: str
) -> None:
    """B8.3, B15: as for any candidate; and a belief is not revised into itself."""
    doubted(world)
    world.revisions[OLD] = revision
    contradict(world)

    world.cycle()

    assert (job_of(world).state, job_of(world).refusal) == ("refused", refusal)
    assert world.calls("classify") == 1


def test_after_nonsense_the_job_waits_for_a_later_cycle(world: World, hasty: None) -> None:
    """B8.6, B11: a malformed reply is never read as an answer; no new word on the belief is needed to ask again."""
    old = doubted(world)
    contradict(world)
    world.before_gate = lambda: world.spoilt.add(OLD)  # the model loses its mind when asked for a revision

    cycle = world.cycle()

    assert (cycle.state, cycle.counts["revised"]) == ("finished", 0)
    assert (job_of(world).state, job_of(world).cycle, job_of(world).claims) == ("queued", None, 1)
    assert job_of(world).state_reason.startswith("malformed")
    assert world.now_of(old).status == "active"

    world.before_gate = world.spoilt.clear
    assert world.cycle(after=timedelta(hours=4)).counts["revised"] == 1


def test_nonsense_for_ever_ends_the_job(world: World, hasty: None, decree: Decree) -> None:
    """B9, B11: each cycle that cannot get an answer costs a claim; with the last one the job has failed."""
    decree("budget", job_claims=2)
    old = doubted(world)
    contradict(world)
    world.before_gate = lambda: world.spoilt.add(OLD)

    for hours in (0, 4, 4):
        world.cycle(after=timedelta(hours=hours))

    assert (job_of(world).state, world.calls("revise")) == ("failed", 2 * 2)  # a malformed reply is asked for once more
    assert job_of(world).state_reason.startswith("malformed")
    assert world.now_of(old).status == "active"


def test_a_refused_key_costs_a_structural_job_no_claim(world: World, hasty: None) -> None:
    """B9: it is carried over with all else that the cycle could not do."""
    doubted(world)
    contradict(world)
    world.server.then(refuse(401), purpose="revise")

    cycle = world.cycle()

    assert cycle.state == "over_budget"
    assert (job_of(world).state, job_of(world).cycle, job_of(world).claims) == ("queued", None, 0)


def test_a_split_makes_two_beliefs_each_with_its_own_evidence(world: World) -> None:
    """B12: every episode is judged against both; each child keeps what speaks of it."""
    old = divided(world)

    cycle = world.cycle()

    winter, summer = (Belief.objects.get(statement=statement) for statement in (WINTER, SUMMER))
    assert (winter.alpha, winter.beta, winter.context) == (6.0, 1.0, "in winter")
    assert (summer.alpha, summer.beta, summer.context) == (4.0, 1.0, "in summer")
    assert world.now_of(old).status == "split"
    assert list(Lineage.objects.values_list("parent", "kind")) == [(old.pk, "split")] * 2
    assert cycle.counts["split"] == 1


def test_what_a_person_forgot_is_not_said_again_in_another_beliefs_place(world: World) -> None:
    """B22: a child that a tombstone speaks against is suppressed, and the belief stays as it is."""
    old = doubted(world)
    buried = world.hold(NEW, about="buried", supports=3)
    curate_belief(belief_id=buried.pk, act=CuratorAction.FORGET, reason="not ours to know", actor=LENA, now=world.now)
    world.directions.place(NEW, {"buried": 1.0})
    contradict(world)

    world.cycle()

    child = StructuralChild.objects.get()
    assert (child.refusal, child.suppressed_by, job_of(world).refusal) == ("suppressed", buried, "suppressed")
    assert world.now_of(old).status == "active"


def test_every_change_is_told_with_its_cycle_and_reason(world: World) -> None:
    """R10: of the old belief and of the new one."""
    old = doubted(world)
    contradict(world)

    cycle = world.cycle()

    ended = Transition.objects.get(belief=old)
    assert (ended.old, ended.new, ended.reason, ended.actor) == ("active", "revised", "disproved", f"cycle {cycle.pk}")
    began = BeliefEvent.objects.filter(pgh_obj=child_of(old)).earliest("pgh_id")
    assert began.pgh_context == {"actor": f"cycle {cycle.pk}", "reason": "revision: disproved"}


def test_a_workspace_of_the_additive_model_revises_without_destabilisation(world: World) -> None:
    """R10a: 0.6, then −0.2 three times; β's confidence of 4/9 would not do. α and β are kept all the same."""
    Workspace.objects.filter(pk=world.workspace.pk).update(confidence_model="additive")
    world.workspace.refresh_from_db()
    world.statements["kiln"] = OLD
    world.directions.place(OLD, {"kiln": 1.0})
    world.directions.place(NEW, {"kiln": 0.8})
    world.revisions[OLD] = NEW
    early = [f"Early log {n}: 5 hours." for n in range(3)]
    world.say_all(early, about="kiln")
    world.cycle()
    old = world.only_belief()
    assert (old.additive_confidence, old.alpha, old.beta, old.peak_confidence) == (0.6, 4.0, 1.0, 0.6)
    world.verdicts |= {f"{NEW}|{text}": Verdict.IRRELEVANT for text in early}

    for n in range(4):
        world.verdicts[f"{NEW}|Late log {n}: 6 hours."] = Verdict.SUPPORTS
        world.say(f"Late log {n}: 6 hours.", about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    cycle = world.cycle(after=timedelta(days=400))

    decision = GateDecision.objects.get(belief=old, gate="revise", cycle=cycle)
    assert (decision.passed, decision.facts["confidence"]) == (True, 0.1)
    assert decision.facts["prediction_error"] < decision.facts["error_threshold"]
    new = child_of(old)
    assert (new.additive_confidence, new.alpha, new.beta) == (0.6, 5.0, 1.0)
