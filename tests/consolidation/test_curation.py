"""What a curator makes of beliefs by hand (R7, B12, B13), and how that fits the record (B22)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from memory.access import Viewer
from memory.consolidation.curation import (
    BeliefText,
    DifferentScopes,
    DuplicateBelief,
    InvalidEvidence,
    InvalidStatement,
    SplitPart,
    embed_statements,
    merge_beliefs,
    split_belief,
    state_belief,
)
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.consolidation.cycle import BeliefsDisabled
from memory.consolidation.undo import undo_cycle
from memory.domain.evidence import Verdict
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import IllegalTransitionError
from memory.forgetting import forget_episode
from memory.ingest.corrections import WasForgotten, correct_belief
from memory.ledger.beliefs import EmbeddingUnavailable
from memory.ledger.confidence import find_drift
from memory.ledger.transactions import Author
from memory.models import Belief, BeliefEvent, Episode, Evidence, Lineage, Transition, Workspace
from tests import factories
from tests.consolidation.restructuring import OLD, SUMMER, TWIN, WINTER
from tests.consolidation.test_rebuild import rebuild, without_keys
from tests.consolidation.world import World
from tests.model_server_acts import refuse

# Each act in a transaction of its own: their times tell the order.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unheard")]

LENA = Actor(kind=ActorKind.PERSON, name="lena")
NEW = "The kiln of the pottery burns 6 hours."
KILN = [f"Potter's log {n}: the kiln burnt for 5 hours." for n in range(1, 7)]


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Let no message reach the suite's broker."""
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)


def author(world: World, reason: str = "a new kiln") -> Author:
    world.now += timedelta(minutes=1)
    return Author(actor=LENA, reason=reason, now=world.now)


def correct(world: World, belief: Belief, statement: str | None = None) -> Belief:
    """Correct a belief and return what holds in its place, else itself."""
    wording = BeliefText(statement=statement) if statement else None
    reshaped = correct_belief(belief=world.now_of(belief), wording=wording, author=author(world))
    return reshaped.made[0] if reshaped.made else reshaped.changed[0]


def merge(world: World, one: Belief, other: Belief) -> Belief:
    [vector] = embed_statements(workspace_id=world.workspace.pk, statements=[OLD])
    done = merge_beliefs(ids=(one.pk, other.pk), wording=BeliefText(statement=OLD), vector=vector, author=author(world))
    return done.made[0]


def split(world: World, belief: Belief, *verdicts: dict[str, Verdict]) -> list[Belief]:
    wordings = [BeliefText(statement=WINTER, context="in winter"), BeliefText(statement=SUMMER, context="in summer")]
    vectors = embed_statements(workspace_id=world.workspace.pk, statements=[one.statement for one in wordings])
    parts = [
        SplitPart(wording=wording, vector=vector, verdicts=said)
        for wording, vector, said in zip(wordings, vectors, verdicts, strict=True)
    ]
    return list(split_belief(belief_id=belief.pk, parts=parts, author=author(world)).made)


def state(world: World, statement: str, verdicts: dict[Episode, Verdict]) -> Belief:
    [vector] = embed_statements(workspace_id=world.workspace.pk, statements=[statement])
    return state_belief(
        wording=BeliefText(statement=statement, subject="Kiln"),
        vector=vector,
        verdicts={episode.pk: verdict for episode, verdict in verdicts.items()},
        viewer=Viewer(workspace=world.workspace),
        author=author(world),
    )


def assert_as_recorded(world: World) -> None:
    """B22, B4: a rebuilding finds nothing to set right, and every belief equals its evidence."""
    before = without_keys(world.rows())
    assert rebuild(world).differences == []
    assert without_keys(world.rows()) == before
    assert find_drift(workspace=world.workspace)[1] == []


@pytest.fixture
def belief(world: World) -> Belief:
    """A belief that a cycle made of three episodes."""
    world.say_all(KILN[:3], about="kiln")
    world.cycle()
    return world.only_belief()


def test_a_word_against_a_belief_weighs_five_times(world: World, belief: Belief) -> None:
    """B4: 4 : 6, by an episode of the curator's own that is settled; the history names person and reason."""
    correct(world, belief)

    after = world.now_of(belief)
    row = Evidence.objects.get(belief=belief, kind="curator")
    assert (after.alpha, after.beta, after.status) == (4.0, 6.0, "active")
    assert (row.verdict, row.base_weight, row.basis, row.reason) == ("CONTRADICTS", 5.0, "person", "a new kiln")
    assert (row.episode.source, row.episode.state, row.episode.category) == ("human", "settled", "correction")
    event = BeliefEvent.objects.filter(pgh_obj=belief).latest("pgh_id")
    assert event.pgh_context == {"actor": "person lena", "reason": "a new kiln"}


def test_a_word_said_twice_counts_once(world: World, belief: Belief) -> None:
    """B4: no difference is added, a row is there or not."""
    correct(world, belief)
    correct(world, belief)

    assert world.now_of(belief).beta == 6.0
    assert_as_recorded(world)


def test_what_is_right_instead_takes_the_place(world: World, belief: Belief) -> None:
    """R7, B4: 6/7 for the new one; the old one is revised, superseded by it."""
    new = correct(world, belief, NEW)

    old = world.now_of(belief)
    assert (new.alpha, new.beta, round(new.confidence, 3), new.status) == (6.0, 1.0, 0.857, "active")
    assert (new.statement, new.subject, new.lineage_depth) == (NEW, belief.subject, 1)
    assert (old.status, old.status_reason, old.beta) == ("revised", "a new kiln", 6.0)
    line = Lineage.objects.get()
    assert (line.parent, line.child, line.kind, line.cycle) == (old, new, "supersession", None)
    assert_as_recorded(world)


def test_a_correction_that_another_belief_says_already_bears_that_one_out(world: World, belief: Belief) -> None:
    """B8.5: no twin beside it."""
    other = world.hold(NEW.rstrip(".") + "!", about="other")  # the same words: so much the small reader is sure of
    world.directions.place(NEW, {"other": 0.97})

    holds = correct(world, belief, NEW)

    assert holds.pk == other.pk
    assert (world.now_of(other).alpha, Belief.objects.count()) == (9.0, 2)
    assert_as_recorded(world)


@pytest.mark.parametrize("statement", ["Does the kiln burn 6 hours?", "word " * 31, "…", KILN[2].upper()])
def test_what_can_be_no_belief_is_refused(world: World, belief: Belief, statement: str) -> None:
    """B8.3: nothing is stored, the curator's episode neither."""
    before = world.rows()
    with pytest.raises(InvalidStatement):
        correct(world, belief, statement)
    assert world.rows() == before


@pytest.mark.parametrize("status", ["revised", "merged", "split", "archived", "invalidated", "pruned", "forgotten"])
def test_only_what_is_believed_is_corrected(world: World, belief: Belief, status: str) -> None:
    """B22: a dead end says so, and leaves no episode behind."""
    Belief.objects.update(status=status)
    episodes = Episode.objects.count()
    with pytest.raises(IllegalTransitionError, match=f"{belief.pk} is {status}; only what is believed"):
        correct(world, belief, NEW)
    assert Episode.objects.count() == episodes


def test_a_model_that_does_not_answer_leaves_all_as_it_was(world: World, belief: Belief) -> None:
    world.trouble.broken["embed"] = refuse(500)
    before = Evidence.objects.count()
    with pytest.raises(EmbeddingUnavailable):
        correct(world, belief, NEW)
    assert (Evidence.objects.count(), world.now_of(belief).status) == (before, "active")


def test_what_was_corrected_comes_back_once_nothing_lives_in_its_place(world: World, belief: Belief) -> None:
    """B22: a slip of the hand is no dead end."""
    new = correct(world, belief, NEW)
    with pytest.raises(IllegalTransitionError, match=f"archive or forget {new.pk} first"):
        curate_belief(belief_id=belief.pk, act=CuratorAction.RESTORE, reason="a slip", actor=LENA, now=world.now)
    for key, act in ((new.pk, CuratorAction.FORGET), (belief.pk, CuratorAction.RESTORE)):
        curate_belief(belief_id=key, act=act, reason="a slip", actor=LENA, now=author(world).now)

    assert world.now_of(belief).status == "active"
    assert_as_recorded(world)


def test_two_beliefs_become_one_by_hand(world: World, belief: Belief) -> None:
    """B13: evidence united, both parents in the lineage, both merged by the person."""
    other = world.hold(TWIN, about="other", supports=2, contradicts=1)
    shared = Evidence.objects.filter(belief=belief).order_by("pk")[0].episode
    factories.evidence(belief=other, episode=shared, verdict="CONTRADICTS")

    made = merge(world, world.now_of(belief), other)

    assert (made.evidence_count, made.alpha, made.beta) == (6, 5.5, 2.5)
    assert {row.parent_id for row in Lineage.objects.filter(child=made, kind="merge")} == {belief.pk, other.pk}
    assert Evidence.objects.get(belief=made, episode=shared).basis == "united"
    moved = Transition.objects.order_by("pk").values_list("new", "actor", "reason")
    assert list(moved) == [("merged", "person lena", "a new kiln")] * 2


def test_beliefs_of_different_users_stay_apart(world: World) -> None:
    """B13."""
    one, other = world.hold(OLD, about="kiln", user="ana"), world.hold(TWIN, about="kiln", user="ben")
    with pytest.raises(DifferentScopes):
        merge(world, one, other)


def test_one_belief_becomes_two_by_hand(world: World, belief: Belief) -> None:
    """B12: each on what the curator gives it; what is evidence of neither waits in the pool."""
    one, two, three = Episode.objects.order_by("pk")

    winter, summer = split(world, belief, {one.pk: Verdict.SUPPORTS}, {two.pk: Verdict.SUPPORTS})

    assert (winter.statement, winter.context, winter.alpha) == (WINTER, "in winter", 2.0)
    assert (summer.statement, summer.context, summer.evidence_count) == (SUMMER, "in summer", 1)
    assert world.now_of(belief).status == "split"
    assert world.states(one, two, three) == ["settled", "settled", "pooled"]
    assert_as_recorded(world)


def test_a_part_cannot_rest_on_what_is_no_evidence_of_the_belief(world: World, belief: Belief) -> None:
    """B12."""
    stranger = factories.episode(workspace=world.workspace)
    mine = Episode.objects.exclude(pk=stranger.pk).order_by("pk")[0]
    with pytest.raises(InvalidEvidence, match=stranger.pk):
        split(world, belief, {mine.pk: Verdict.SUPPORTS}, {stranger.pk: Verdict.SUPPORTS})
    assert world.now_of(belief).status == "active"


def test_a_belief_is_stated_with_its_evidence(world: World) -> None:
    """Curators, B21: no model is asked for a word; project and user are those of all its episodes."""
    project = factories.project(workspace=world.workspace)
    one, two = world.say_all(KILN[:2], about="kiln", project=project, user="ana")

    stated = state(world, NEW, {one: Verdict.SUPPORTS, two: Verdict.CONTRADICTS})

    assert (stated.alpha, stated.beta, stated.scope, stated.project, stated.user) == (2, 2, "project", project, "ana")
    assert world.states(one, two) == ["settled", "settled"]
    assert [call.purpose for call in world.server.log] == ["embed"]
    assert_as_recorded(world)


def test_what_is_said_already_is_not_stated_again(world: World, belief: Belief) -> None:
    """B8.5, B22: nor what a person archived; both errors name the belief."""
    episode = factories.episode(workspace=world.workspace, language="en")
    with pytest.raises(DuplicateBelief) as live:
        state(world, belief.statement, {episode: Verdict.SUPPORTS})
    curate_belief(belief_id=belief.pk, act=CuratorAction.ARCHIVE, reason="x", actor=LENA, now=world.now)
    with pytest.raises(DuplicateBelief, match="archived it: restore that one") as archived:
        state(world, belief.statement, {episode: Verdict.SUPPORTS})
    assert live.value.id == archived.value.id == belief.pk


def test_what_was_forgotten_may_be_stated_again_by_hand(world: World, belief: Belief) -> None:
    """B22: the tombstone stands against cycles, and stays."""
    curate_belief(belief_id=belief.pk, act=CuratorAction.FORGET, reason="x", actor=LENA, now=world.now)
    episode = factories.episode(workspace=world.workspace, language="en")

    stated = state(world, belief.statement, {episode: Verdict.SUPPORTS})

    assert (stated.status, world.now_of(belief).status) == ("active", "forgotten")
    assert_as_recorded(world)


@pytest.mark.parametrize("given", [{"status": "forgotten"}, {"status": "invalidated"}, {"is_derived": True}])
def test_what_is_no_evidence_founds_nothing(world: World, given: dict[str, object]) -> None:
    """R10, B4."""
    episode = factories.episode(workspace=world.workspace, **given)
    with pytest.raises(InvalidEvidence, match=episode.pk):
        state(world, NEW, {episode: Verdict.SUPPORTS})


def _say_more(world: World) -> None:
    world.say_all(KILN[3:], about="kiln")
    world.cycle(after=timedelta(days=1))


Act_ = Callable[[World, Belief], object]
ACTS: dict[str, Act_] = {
    "against": lambda world, belief: correct(world, belief),
    "instead": lambda world, belief: correct(world, belief, NEW),
    "merge": lambda world, belief: merge(world, belief, world.hold(TWIN, about="other")),
    "split": lambda world, belief: split(
        world, belief,
        *({key: Verdict.SUPPORTS} for key in Evidence.objects.order_by("pk").values_list("episode_id", flat=True)[:2]),
    ),
    "state": lambda world, belief: state(world, NEW, {factories.episode(workspace=world.workspace): Verdict.SUPPORTS}),
}  # fmt: skip


@pytest.mark.parametrize("act", list(ACTS))
def test_no_hand_makes_a_belief_where_beliefs_are_off(world: World, belief: Belief, act: str) -> None:
    """B22: nor changes one, and a curator's episode is not stored either."""
    world.workspace.beliefs_enabled = False
    world.workspace.save()
    with pytest.raises(BeliefsDisabled):
        ACTS[act](world, belief)
    assert world.now_of(belief).status == "active"
    assert Evidence.objects.filter(belief=belief).count() == 3
    assert not Episode.objects.filter(category="correction").exists()


@pytest.mark.parametrize("act", list(ACTS))
def test_a_hand_between_two_cycles_is_as_recorded(world: World, belief: Belief, act: str) -> None:
    """B22: what was said by hand counts from where it was said, not from the beginning."""
    _say_more(world)
    ACTS[act](world, world.now_of(belief))
    world.say_all(["Log: 5 hours again.", "Log: 5 hours as ever."], about="kiln")
    world.cycle(after=timedelta(days=1))

    assert_as_recorded(world)


def test_a_word_against_a_doubted_belief_archives_it_at_the_next_cycle(world: World, belief: Belief) -> None:
    """B14: below 0.3, as if all of it had been said in episodes."""
    correct(world, belief)
    correct_belief(
        belief=world.now_of(belief), wording=None,
        author=Author(actor=Actor(kind=ActorKind.PERSON, name="toma"), reason="seen it", now=author(world).now),
    )  # fmt: skip
    cycle = world.cycle(after=timedelta(hours=1))

    assert (world.now_of(belief).beta, world.now_of(belief).status) == (11.0, "archived")
    assert Transition.objects.get(belief=belief).actor == f"cycle {cycle.pk}"
    assert_as_recorded(world)


def test_a_curators_word_can_be_forgotten_like_any_other(world: World, belief: Belief) -> None:
    """B19, R10: the belief stands as if it had not been said."""
    correct(world, belief)
    said = Evidence.objects.get(belief=belief, kind="curator").episode
    forget_episode(episode=said, actor=LENA, now=author(world).now)

    assert (world.now_of(belief).alpha, world.now_of(belief).beta) == (4.0, 1.0)
    assert_as_recorded(world)


def remembered(world: World) -> list[object]:
    """Return what there is beside the ledger: a statement is embedded before it is known to be said again."""
    return [rows for table, rows in world.rows().items() if table != "ModelCall"]


@pytest.mark.parametrize("statement", [None, NEW])
def test_what_was_forgotten_is_no_evidence_when_it_is_said_again(
    world: World, belief: Belief, statement: str | None
) -> None:
    """B19, L4: neither against the belief nor for another in its place; it says so and changes nothing."""
    correct(world, belief, statement)
    said = Evidence.objects.filter(kind="curator")[0].episode
    forget_episode(episode=said, actor=LENA, now=author(world).now)
    if statement:
        new = Belief.objects.get(statement=NEW)
        for key, act in ((new.pk, CuratorAction.FORGET), (belief.pk, CuratorAction.RESTORE)):
            curate_belief(belief_id=key, act=act, reason="a slip", actor=LENA, now=author(world).now)
    before = remembered(world)

    with pytest.raises(WasForgotten, match="in other words"):
        correct(world, belief, statement)

    assert remembered(world) == before


def test_undoing_a_cycle_leaves_what_a_hand_made_of_it(world: World, belief: Belief) -> None:
    """B22: what a person did since never stands in the way."""
    new = correct(world, belief, NEW)

    undo_cycle(cycle_id=str(belief.created_in_id), actor=LENA, now=world.now)

    assert (world.now_of(new).status, world.now_of(new).alpha, world.now_of(belief).status) == (
        "active",
        6.0,
        "revised",
    )
    assert find_drift(workspace=world.workspace)[1] == []


def test_a_vector_of_the_model_that_was_is_not_stored_under_the_one_that_is(world: World) -> None:
    """B8a: a workspace may move to another model between the embedding of a wording and its being stored."""
    episodes = world.say_all(["The kiln burnt for 5 hours.", "It burnt so again."], about="kiln")
    [vector] = embed_statements(workspace_id=world.workspace.pk, statements=[OLD])
    Workspace.objects.filter(pk=world.workspace.pk).update(embedding_model="another")
    with pytest.raises(EmbeddingUnavailable, match="ask again"):
        state_belief(
            wording=BeliefText(statement=OLD, subject="Kiln"),
            vector=vector,
            verdicts={episode.pk: Verdict.SUPPORTS for episode in episodes},
            viewer=Viewer(workspace=world.workspace),
            author=author(world),
        )
    assert not Belief.objects.exists()
