"""B8.3, E3, E4: a model judges what is told before it founds a belief, about several claims and beliefs in one call."""

from collections.abc import Sequence
from typing import Any

import pytest
from django.db.models import Q

from memory.consolidation.apply import apply_jobs
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.cycle import open_cycle
from memory.consolidation.dry_run import dry_run_cycle
from memory.consolidation.extract import extract_episodes
from memory.consolidation.judge import classify_cluster
from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import undo_cycle
from memory.domain.evidence import Verdict
from memory.erasure.erase import erase_memories
from memory.ledger.beliefs import hash_statement
from memory.ledger.confidence import find_drift
from memory.models import Belief, Claim, ClusterJob, Cycle, Episode, Evidence, JobKind, JobVerdict, ModelCall, Trigger
from tests.consolidation.conftest import Decree
from tests.consolidation.inline import run_steps
from tests.consolidation.test_reading import tell
from tests.consolidation.undoing import LENA
from tests.consolidation.world import World
from tests.model_server_acts import Asked, claim, garbage

pytestmark = pytest.mark.usefixtures("hasty")

NO_FRIDAYS = "Dario's team does not ship on Fridays."
FROZEN = "Fridays are frozen for Dario's team, with no rollouts."
BEES = "Mara keeps bees in the walled garden."


@pytest.fixture
def mara(world: World) -> World:
    """Return a world whose reader takes all that people say for told, a line each."""

    def answer(asked: Asked) -> Any:
        if asked.purpose != "read":
            return world.answer(asked)
        lines = [(message, line) for message in asked.messages for line in message["text"].split("\n")]
        return {"claims": [claim(message, claim=line, told=True) for message, line in lines]}

    world.server.script = answer
    return world


def hold(world: World, *statements: str) -> list[Belief]:
    """Believe things of Mara that are nowhere near each other."""
    return [world.hold(statement, about=statement, user="mara", subject="Mara") for statement in statements]


def asked(world: World) -> list[tuple[Sequence[str], Sequence[str]]]:
    """List the calls that judged something: beliefs and texts."""
    return [(call.beliefs, call.texts) for call in world.server.calls("classify")]


def founded() -> list[str]:
    """List what claims have founded."""
    return sorted(Belief.objects.filter(is_told=True).values_list("statement", flat=True))


# --- What a verdict does to founding


def test_a_paraphrase_is_evidence_and_founds_nothing(mara: World) -> None:
    """E3, E4: though its vector is nowhere near, and in the very cycle that heard it."""
    [belief] = hold(mara, NO_FRIDAYS)
    said = tell(mara, FROZEN)
    mara.verdicts[f"{NO_FRIDAYS}|{FROZEN}"] = Verdict.SUPPORTS

    mara.cycle()

    assert asked(mara) == [([NO_FRIDAYS], [FROZEN])]
    assert founded() == []
    row = Evidence.objects.get(belief=belief, episode=said)
    assert (row.verdict, row.basis, row.claim) == ("SUPPORTS", "model", Claim.objects.get())
    assert mara.states(said) == ["settled"]


@pytest.mark.parametrize("verdict", [Verdict.CONTRADICTS, Verdict.PARTIAL, Verdict.IRRELEVANT])
def test_what_says_something_else_founds_its_own(mara: World, verdict: Verdict) -> None:
    """E4: what contradicts a belief or bears it out in part is its evidence, and founds a belief beside it."""
    [belief] = hold(mara, NO_FRIDAYS)
    said = tell(mara, FROZEN)
    mara.verdicts[f"{NO_FRIDAYS}|{FROZEN}"] = verdict

    mara.cycle()

    assert len(asked(mara)) == 1
    assert founded() == [FROZEN]
    given = Evidence.objects.filter(belief=belief, episode=said).values_list("verdict", flat=True)
    assert list(given) == ([] if verdict is Verdict.IRRELEVANT else [verdict])


def test_a_claim_that_no_model_could_judge_waits(mara: World) -> None:
    """E4, B11: it founds nothing unjudged, and is judged in the next cycle."""
    hold(mara, NO_FRIDAYS)
    mara.trouble.broken["classify"] = garbage()
    said = tell(mara, FROZEN)

    mara.cycle()

    assert founded() == []
    assert mara.states(said) == ["failed"]
    assert ClusterJob.objects.get(kind=JobKind.CLAIM).refusal == "not_judged_yet"
    mara.trouble.broken.clear()
    mara.verdicts[f"{NO_FRIDAYS}|{FROZEN}"] = Verdict.IRRELEVANT
    mara.cycle()
    assert founded() == [FROZEN]


def test_a_claim_for_which_there_is_no_call_waits(mara: World, decree: Decree) -> None:
    """B8.3, E4: though another of its episode is judged and founds a belief."""
    decree("consolidation", gathered_calls=1, gathered_beliefs=1)
    hold(mara, NO_FRIDAYS, BEES)
    hives = "The bees of the walled garden have three hives."
    said = tell(mara, f"{FROZEN}\n{hives}")
    mara.verdicts.update({FROZEN: Verdict.IRRELEVANT, hives: Verdict.IRRELEVANT})

    mara.cycle()
    assert (len(asked(mara)), len(founded()), mara.states(said)) == (1, 1, ["new"])

    mara.cycle()
    assert len(asked(mara)) == 2
    assert founded() == [FROZEN, hives]
    assert mara.states(said) == ["settled"]


# --- What is asked


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("Mara's manager is Dana.", "Ravi is the boss of Mara."),  # a slot
        ("The archive is Noor's to keep.", "Noor looks after old papers."),  # a name
        ("Mara walks the dog along the canal.", "A canal is where every dog wants to be."),  # two words
    ],
)
def test_a_claim_is_asked_about_what_shares_something_with_it(mara: World, held: str, told: str) -> None:
    """E4: a slot of the list, a name, or two rare words, whatever the vectors say."""
    hold(mara, held, "Parsley needs shade.")
    tell(mara, told)

    mara.cycle()

    assert asked(mara) == [([held], [told])]


def test_what_shares_one_common_word_is_not_asked_about(mara: World) -> None:
    """E4: nor is another user's belief, or what is not told plainly."""
    hold(mara, "Mara walks the dog along the canal.")
    mara.hold(NO_FRIDAYS, about="theirs", user="ben", subject="Ben")
    tell(mara, "A dog barks.")
    tell(mara, FROZEN)

    mara.cycle()

    assert asked(mara) == []


def test_claims_are_judged_against_several_beliefs_in_one_call(mara: World) -> None:
    """B8.3: each against those that it shares something with, whatever a model says of the others."""
    statements = [NO_FRIDAYS, BEES, "Noor has the keys of the cellar.", "Mara's manager is Dana."]
    held = hold(mara, *statements)
    told = [FROZEN, "The walled garden has bees of three kinds.", "Noor lost a key.", "Dana is the boss of Mara."]
    for text in told:
        tell(mara, text)

    mara.cycle()

    [(beliefs, texts)] = asked(mara)
    assert (sorted(beliefs), sorted(texts)) == (sorted(statements), sorted(told))
    assert founded() == []
    job = ClusterJob.objects.get(kind=JobKind.SINGLES)
    assert job.belief is None
    assert job.pairs.keys() == {belief.pk for belief in held}
    by_model = JobVerdict.objects.filter(job=job).values_list("belief__statement", "episode__text")
    assert sorted(by_model) == sorted(zip(statements, told, strict=True))


def test_a_call_has_twelve_claims_and_eight_beliefs_at_most(mara: World) -> None:
    """B8.3: as few calls as it takes."""
    hold(mara, *(f"Noor{n}x keeps shop {n}." for n in range(20)))
    for n in range(20):
        tell(mara, f"{n} clocks hang at Noor{n}x's.")

    mara.cycle()

    calls = asked(mara)
    assert sorted(len(beliefs) for beliefs, _ in calls) == [4, 8, 8]
    assert sum(len(texts) for _, texts in calls) == 20
    assert founded() == []


def test_a_claim_is_asked_about_five_beliefs_at_most(mara: World) -> None:
    """B8.4: the most similar first."""
    told = "Noor has a boat."
    held = [f"Noor told story {n}." for n in range(7)]
    for n, statement in enumerate(held):
        mara.hold(statement, about=f"story {n}", user="mara", subject="Mara")
    tell(mara, told)
    mara.directions.place(told, {f"story {n}": 0.1 + n / 20 for n in range(7)})

    mara.cycle()

    [(beliefs, _)] = asked(mara)
    assert sorted(beliefs) == held[2:]


def test_claims_of_one_episode_are_judged_in_calls_of_their_own(mara: World) -> None:
    """B8.3: a job knows one claim of an episode."""
    hold(mara, NO_FRIDAYS, BEES)
    hives = "The bees of the walled garden have three hives."
    tell(mara, f"{FROZEN}\n{hives}")

    mara.cycle()

    assert sorted(asked(mara)) == [([NO_FRIDAYS], [FROZEN]), ([BEES], [hives])]
    assert founded() == []


# --- What is told twice in one cycle


def test_what_is_told_twice_in_a_cycle_founds_one_belief(mara: World) -> None:
    """E4: the second is judged against what the first may found, and is its evidence."""
    first, second = tell(mara, NO_FRIDAYS), tell(mara, FROZEN)

    mara.cycle()

    assert asked(mara) == [([NO_FRIDAYS], [FROZEN])]
    assert founded() == [NO_FRIDAYS]
    rows = Evidence.objects.filter(belief__statement=NO_FRIDAYS).order_by("episode__occurred_at")
    assert list(rows.values_list("episode", "verdict", "basis", "is_founding", "claim__sentence")) == [
        (first.pk, "SUPPORTS", "slot", True, NO_FRIDAYS),
        (second.pk, "SUPPORTS", "model", False, FROZEN),
    ]
    assert mara.states(first, second) == ["settled", "settled"]
    mara.cycle()
    assert len(asked(mara)) == 1


@pytest.mark.parametrize("verdict", [Verdict.CONTRADICTS, Verdict.PARTIAL, Verdict.IRRELEVANT])
def test_what_says_something_else_than_the_first_founds_its_own(mara: World, verdict: Verdict) -> None:
    """E4: and is the first's evidence, unless it says nothing of it."""
    tell(mara, NO_FRIDAYS)
    second = tell(mara, FROZEN)
    mara.verdicts[f"{NO_FRIDAYS}|{FROZEN}"] = verdict

    mara.cycle()

    assert founded() == sorted([FROZEN, NO_FRIDAYS])
    given = Evidence.objects.filter(belief__statement=NO_FRIDAYS, episode=second).values_list("verdict", flat=True)
    assert list(given) == ([] if verdict is Verdict.IRRELEVANT else [verdict])


def test_what_says_the_same_as_a_paraphrase_is_evidence_of_the_old_belief(mara: World) -> None:
    """E4: where a model took the second for the first alone, and the first for what is believed."""
    [belief] = hold(mara, NO_FRIDAYS)
    third = "No rollouts, says everyone, when it is Friday for Dario's team."
    tell(mara, FROZEN)
    tell(mara, third)
    mara.verdicts[f"{NO_FRIDAYS}|{third}"] = Verdict.IRRELEVANT

    mara.cycle()

    assert founded() == []
    assert set(mara.verdicts_of(belief)) >= {FROZEN, third}
    assert len(asked(mara)) == 1


def test_an_episode_that_says_a_thing_twice_founds_one_belief(mara: World) -> None:
    """E4: it is one voice, and counts once."""
    said = tell(mara, f"{NO_FRIDAYS}\n{FROZEN}")

    mara.cycle()

    assert asked(mara) == [([NO_FRIDAYS], [FROZEN])]
    assert founded() == [NO_FRIDAYS]
    assert list(Evidence.objects.values_list("episode", "claim__sentence")) == [(said.pk, NO_FRIDAYS)]


def test_what_was_told_twice_is_taken_back_and_replayed(mara: World) -> None:
    """B22: with no call."""
    tell(mara, NO_FRIDAYS)
    tell(mara, FROZEN)
    cycle = mara.cycle()
    calls = ModelCall.objects.count()

    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now).differences == []
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=mara.now)

    assert ModelCall.objects.count() == calls
    assert Belief.objects.get().status == "invalidated"
    assert set(Episode.objects.values_list("state", flat=True)) == {"held"}


def test_the_claims_of_two_users_are_not_held_against_each_other(mara: World) -> None:
    """E4: nor is the earlier one against the later."""
    tell(mara, NO_FRIDAYS, user="ben")
    tell(mara, FROZEN)

    mara.cycle()

    assert asked(mara) == []
    assert founded() == sorted([FROZEN, NO_FRIDAYS])


# --- What goes wrong, and what is taken back


def test_what_failed_is_asked_about_alone(mara: World) -> None:
    """B11: a text that spoils a call spoils the others' once."""
    hold(mara, NO_FRIDAYS, BEES)
    poison, hives = "No poison on Fridays for Dario's team.", "The bees of the walled garden have three hives."
    read = mara.server.script

    def choke(asked: Asked) -> Any:
        is_spoilt = asked.purpose == "classify" and any("poison" in one["text"] for one in asked.episodes)
        return garbage() if is_spoilt else read(asked)

    mara.server.script = choke
    said = [tell(mara, poison), tell(mara, hives), tell(mara, FROZEN)]
    mara.cycle()
    assert "failed" in mara.states(*said)

    mara.cycle()

    assert mara.states(*said) == ["failed", "settled", "settled"]
    mara.cycle()
    assert Episode.objects.filter(dead_at__isnull=False).get() == said[0]
    assert founded() == []


def open_with_plan(world: World) -> tuple[Cycle, ClusterJob]:
    """Take a cycle up to its one job with a call to make."""
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    extract_episodes(cycle_id=cycle.pk, attempt=1)
    cluster_episodes(cycle_id=cycle.pk, attempt=1)
    return cycle, ClusterJob.objects.get(cycle=cycle, kind=JobKind.SINGLES)


def test_whoever_carries_on_asks_about_the_same_and_pays_once(mara: World, monkeypatch: Any) -> None:
    """B8: the job says what it is about, and the ledger what was answered."""
    hold(mara, NO_FRIDAYS, BEES)
    tell(mara, FROZEN)
    tell(mara, "The walled garden has bees of three kinds.")
    cycle, job = open_with_plan(mara)
    with monkeypatch.context() as patched:
        patched.setattr("memory.consolidation.judge._store_answers", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            classify_cluster(job_id=job.pk, attempt=1)
    assert not JobVerdict.objects.filter(job=job).exists()
    ClusterJob.objects.filter(pk=job.pk).update(leased_until=None)

    run_steps(cycle=cycle)

    assert len(asked(mara)) == 1
    assert JobVerdict.objects.filter(job=job).count() == 2
    assert founded() == []


def test_a_claim_founds_nothing_before_it_was_judged(mara: World) -> None:
    """E4: a gate that comes early leaves it alone."""
    hold(mara, NO_FRIDAYS)
    tell(mara, FROZEN)
    cycle, _ = open_with_plan(mara)

    assert not apply_jobs(cycle_id=cycle.pk, attempt=1)

    assert founded() == []


def test_what_a_packed_call_said_is_taken_back_and_replayed(mara: World) -> None:
    """B22: with no call, and the beliefs as they were."""
    hold(mara, NO_FRIDAYS, BEES)
    tell(mara, FROZEN)
    said = tell(mara, "The walled garden has bees of three kinds.")
    mara.verdicts[said.text] = Verdict.PARTIAL
    cycle = mara.cycle()
    calls = ModelCall.objects.count()
    assert founded() == [said.text]

    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now).differences == []
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=mara.now)

    assert ModelCall.objects.count() == calls
    assert set(Episode.objects.filter(cycle_members(cycle)).values_list("state", flat=True)) == {"held"}
    assert not Evidence.objects.filter(cycle=cycle).exists()


def cycle_members(cycle: Cycle) -> Q:
    """Match the episodes of a cycle's jobs."""
    return Q(pk__in=ClusterJob.objects.filter(cycle=cycle).values("members__episode"))


def test_a_dry_run_foresees_the_packed_call(mara: World) -> None:
    """B22: of what is read already, with the beliefs that it would be about."""
    held = hold(mara, NO_FRIDAYS, BEES)
    mara.trouble.broken["classify"] = garbage()
    tell(mara, FROZEN)
    mara.cycle()
    mara.trouble.broken.clear()

    [job] = dry_run_cycle(workspace=mara.workspace, now=mara.now).jobs

    assert (job.kind, job.belief, list(job.beliefs), job.calls) == ("singles", held[0].pk, [held[0].pk], 1)


def test_what_was_shown_of_an_erased_claim_goes(mara: World) -> None:
    """B19: the call that held another against it says nothing any more, and the job no longer names it."""
    first, second = tell(mara, NO_FRIDAYS), tell(mara, FROZEN)
    mara.verdicts[f"{NO_FRIDAYS}|{FROZEN}"] = Verdict.CONTRADICTS
    mara.cycle()
    assert ModelCall.objects.get(purpose="classify").reply

    erase_memories(workspace=mara.workspace, episodes=Episode.objects.filter(pk=first.pk), actor=LENA, now=mara.now)

    assert founded() == [FROZEN]
    assert not ModelCall.objects.get(purpose="classify").reply
    assert ClusterJob.objects.get(kind=JobKind.SINGLES).pairs == {}
    assert not JobVerdict.objects.filter(episode=second, statement_hash=hash_statement(NO_FRIDAYS, "Mara")).exists()
    assert find_drift(workspace=mara.workspace)[1] == []
    assert rebuild_beliefs(workspace=mara.workspace, now=mara.now, is_dry_run=True).differences == []


def test_what_was_shown_of_an_erased_belief_goes(mara: World) -> None:
    """B19: though the call was about others as well, and what they were told stays."""
    gone, kept = hold(mara, NO_FRIDAYS, BEES)
    tell(mara, FROZEN)
    tell(mara, "The walled garden has bees of three kinds.")
    mara.cycle()
    JobVerdict.objects.filter(belief=gone).delete()  # as if it had been left out of the answer

    erase_memories(
        workspace=mara.workspace,
        episodes=Episode.objects.none(),
        beliefs=[gone.pk],
        actor=LENA,
        now=mara.now,
    )

    assert not ModelCall.objects.get(purpose="classify").reply
    assert Evidence.objects.filter(belief=kept, basis="model", verdict="SUPPORTS").count() == 4
