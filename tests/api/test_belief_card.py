"""GET /beliefs/{id}."""

from datetime import timedelta
from typing import Any

import pytest

from memory.models import Belief, ClusterJob, Cycle, Episode, GateDecision, JobVerdict, Lineage, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture
def belief(workspace: Workspace) -> Belief:
    return factories.belief(workspace=workspace, statement="Mara likes tabs.", alpha=2.5, beta=2)


def judged(belief: Belief, verdict: str, *, day: int = 0, origin: str = "", **given: Any) -> Episode:
    fields = {"origin": origin} if origin else {}
    episode = factories.episode(
        workspace=belief.workspace, occurred_at=factories.NOW + timedelta(days=day), **fields | given
    )
    factories.evidence(belief=belief, episode=episode, verdict=verdict, reason=f"It {verdict.lower()}.")
    return episode


def card(reader: Caller, belief: Belief) -> Any:
    return reader.get(f"/beliefs/{belief.pk}").json()


def test_evidence_shows_verdict_reason_words_and_what_it_weighs(reader: Caller, belief: Belief) -> None:
    """B4: the second row of one verdict from one origin weighs a half; another verdict starts anew."""
    second = judged(belief, "SUPPORTS", day=2, origin="session:a", text="Tabs again.", speaker="Mara")
    first = judged(belief, "SUPPORTS", day=1, origin="session:a")
    against = judged(belief, "CONTRADICTS", day=3, origin="session:a")
    lines = card(reader, belief)["evidence"]
    assert [(line["episode"], line["verdict"], line["weight"]) for line in lines] == [
        (first.pk, "SUPPORTS", 1.0), (second.pk, "SUPPORTS", 0.5), (against.pk, "CONTRADICTS", 1.0),
    ]  # fmt: skip
    assert (lines[1]["text"], lines[1]["speaker"], lines[1]["reason"]) == ("Tabs again.", "Mara", "It supports.")


def test_repetition_weighs_in_full_where_the_workspace_says_so(
    workspace: Workspace, reader: Caller, belief: Belief
) -> None:
    """B4: a setting turns the independence of origins off."""
    Workspace.objects.filter(pk=workspace.pk).update(discount_repeats=False)
    for day in (1, 2):
        judged(belief, "SUPPORTS", day=day, origin="session:a")
    assert [line["weight"] for line in card(reader, belief)["evidence"]] == [1.0, 1.0]


def test_the_additive_confidence_is_shown_where_the_workspace_uses_it(
    workspace: Workspace, reader: Caller, belief: Belief
) -> None:
    """R10a."""
    Belief.objects.update(additive_confidence=0.6)
    assert card(reader, belief)["additive_confidence"] is None
    Workspace.objects.filter(pk=workspace.pk).update(confidence_model="additive")
    assert card(reader, belief)["additive_confidence"] == 0.6
    as_it_stood = reader.get(f"/beliefs/{belief.pk}", as_of=factories.NOW.isoformat()).json()
    assert as_it_stood["additive_confidence"] is None


def test_the_card_states_the_belief(reader: Caller, belief: Belief) -> None:
    shown = card(reader, belief)
    assert (shown["id"], shown["alpha"], shown["beta"], shown["status"]) == (belief.pk, 2.5, 2.0, "active")
    low, high = shown["interval"]
    assert 0 < low < shown["confidence"] < high < 1
    assert shown["confidence"] == pytest.approx(2.5 / 4.5)


def test_gate_decisions_are_shown_with_their_facts(workspace: Workspace, reader: Caller, belief: Belief) -> None:
    cycle = Cycle.objects.create(workspace=workspace, trigger="person", now=factories.NOW)
    GateDecision.objects.create(
        workspace=workspace, cycle=cycle, belief=belief, gate="archive", passed=False, reason="trusted",
        facts={"confidence": 0.8},
    )  # fmt: skip
    (decision,) = card(reader, belief)["decisions"]
    del decision["created_at"]
    assert decision == {
        "gate": "archive", "passed": False, "reason": "trusted", "facts": {"confidence": 0.8}, "twin": None,
        "cycle": cycle.pk, "is_undone": False,
    }  # fmt: skip


def test_a_twin_out_of_sight_leaves_no_number_behind(workspace: Workspace) -> None:
    """B21: neither its id nor how alike, how sure and how old it is."""
    ours, theirs = (factories.project(workspace=workspace) for _ in range(2))
    belief = factories.belief(workspace=workspace, project=ours, scope="project")
    twin = factories.belief(workspace=workspace, project=theirs, scope="project")
    GateDecision.objects.create(
        workspace=workspace, belief=belief, twin=twin, gate="merge", passed=False, reason="pinned",
        cycle=Cycle.objects.create(workspace=workspace, trigger="person", now=factories.NOW),
        facts={
            "confidence": 0.8, "similarity": 0.95, "passes_guard": 1.0, "twin_confidence": 0.7, "twin_is_pinned": 1.0,
            "twin_days_since_changed": 9.0,
        },
    )  # fmt: skip
    (decision,) = card(caller("read", workspace=workspace, projects=(ours,)), belief)["decisions"]
    assert (decision["twin"], decision["facts"]) == (None, {"confidence": 0.8})
    (decision,) = card(caller("read", workspace=workspace), belief)["decisions"]
    assert (decision["twin"], decision["facts"]["twin_confidence"]) == (twin.pk, 0.7)


def test_origins_are_counted_by_verdict(reader: Caller, belief: Belief) -> None:
    """B4: three episodes, two of one session, come from two independent sources."""
    for day, origin in enumerate(("session:a", "session:a", "session:b")):
        judged(belief, "SUPPORTS", day=day, origin=origin)
    judged(belief, "CONTRADICTS", day=3, origin="session:a")
    assert card(reader, belief)["origins"] == {"SUPPORTS": 2, "CONTRADICTS": 1}


def test_the_card_says_what_the_belief_was_born_of(workspace: Workspace, reader: Caller, belief: Belief) -> None:
    """B18: the job that founded it, and how its episodes judged the sentence made of them."""
    assert card(reader, belief)["founding"] is None
    cycle = Cycle.objects.create(workspace=workspace, trigger="person", now=factories.NOW)
    job = ClusterJob.objects.create(
        workspace=workspace, cycle=cycle, number=7, kind="cluster", members_hash="a" * 64, created_belief=belief
    )
    for verdict in ("SUPPORTS", "SUPPORTS", "IRRELEVANT"):
        JobVerdict.objects.create(
            workspace=workspace, job=job, episode=factories.episode(workspace=workspace), verdict=verdict,
            statement_hash="b" * 64, basis="model",
        )  # fmt: skip
    assert card(reader, belief)["founding"] == {
        "cycle": cycle.pk, "job": 7, "verdicts": {"SUPPORTS": 2, "IRRELEVANT": 1}
    }  # fmt: skip


def test_lineage_names_parents_and_children(workspace: Workspace, reader: Caller, belief: Belief) -> None:
    child = factories.belief(workspace=workspace, statement="Mara likes tabs at work.")
    Lineage.objects.create(
        workspace=workspace, parent=belief, child=child, kind="split", reason="two contexts",
        created_at=factories.NOW,
    )  # fmt: skip
    expected = {"id": child.pk, "statement": child.statement, "kind": "split", "reason": "two contexts"}
    assert card(reader, belief)["lineage"] == {"parents": [], "children": [expected]}
    assert card(reader, child)["lineage"]["parents"][0]["id"] == belief.pk


def test_evidence_of_other_projects_is_counted_and_not_shown(workspace: Workspace) -> None:
    """B18: the full card, only with evidence the caller may see."""
    ours, theirs = (factories.project(workspace=workspace) for _ in range(2))
    belief = factories.belief(workspace=workspace, project=ours, scope="project")
    seen = judged(belief, "SUPPORTS", project=ours, origin="session:a", day=2)
    judged(belief, "SUPPORTS", project=theirs, origin="session:a", day=1)
    shown = card(caller("read", workspace=workspace, projects=(ours,)), belief)
    assert [(line["episode"], line["weight"]) for line in shown["evidence"]] == [(seen.pk, 0.5)]
    assert shown["hidden_evidence"] == 1


@pytest.mark.parametrize(("places", "is_shown"), [(["ours"], True), (["ours", "theirs"], False), (["none"], False)])
def test_a_global_belief_needs_all_its_evidence_in_sight(
    workspace: Workspace, belief: Belief, places: list[str], is_shown: bool
) -> None:
    """B21: by id as by list."""
    projects = {name: factories.project(workspace=workspace, slug=name) for name in ("ours", "theirs")}
    for place in places:
        judged(belief, "SUPPORTS", project=projects.get(place))
    limited = caller("read", workspace=workspace, projects=(projects["ours"],))
    assert (limited.get(f"/beliefs/{belief.pk}").status_code == 200) is is_shown
    assert bool(limited.get("/beliefs").json()["results"]) is is_shown


def test_forgotten_evidence_is_gone(reader: Caller, belief: Belief) -> None:
    """R10: a forgotten episode leaves the evidence."""
    judged(belief, "SUPPORTS", status="forgotten")
    shown = card(reader, belief)
    assert (shown["evidence"], shown["hidden_evidence"]) == ([], 0)


@pytest.mark.parametrize("belief_id", ["bl_000000000000", "bl_xyz", "ep_000000000000", "bl_%00"])
def test_a_missing_belief_is_a_404(reader: Caller, belief_id: str) -> None:
    assert is_problem(reader.get(f"/beliefs/{belief_id}"), 404)


def test_another_workspaces_belief_is_a_404(stranger: Caller, belief: Belief) -> None:
    assert is_problem(stranger.get(f"/beliefs/{belief.pk}"), 404)


def test_a_key_that_may_only_write_reads_no_card(writer: Caller, belief: Belief) -> None:
    assert is_problem(writer.get(f"/beliefs/{belief.pk}"), 403)
