"""Databases made by an earlier release go forward with their data, and back."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps as current_apps
from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from memory.domain.destabilization import prediction_error
from memory.domain.evidence import EvidenceRow, weigh_evidence
from memory.domain.verdicts import Verdict
from memory.ledger.verify import find_drift
from memory.management.commands.migrate import lean_reloads
from memory.models import Belief, BeliefEvent, ClusterJob, Edge, Evidence, Workspace
from memory.models.vectors import _halfvec_type
from tests import factories
from tests.factories import NOW

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

FIRST = "0001_begin"
COUNTED = (
    "Workspace", "Project", "Episode", "Belief", "Evidence", "Lineage", "Cycle", "ClusterJob", "JobVerdict",
    "GateDecision",
)  # fmt: skip


def migrate(to: str | None) -> Any:
    """Take the schema to a migration, None for nothing at all; return the models as they are there."""
    with lean_reloads():
        MigrationExecutor(connection).migrate([("memory", to)])
    return MigrationExecutor(connection).loader.project_state([("memory", to)] if to else []).apps


def latest() -> str:
    [(_, name)] = MigrationExecutor(connection).loader.graph.leaf_nodes("memory")
    return str(name)


@pytest.fixture
def old() -> Iterator[Any]:
    """Return the models of the first release, on a database made by that release; the latest is back afterwards."""
    migrate(None)
    assert not [name for name in connection.introspection.table_names() if name.startswith("memory_")]
    apps = migrate(FIRST)
    _forget_types()
    yield apps
    migrate(latest())


def _forget_types() -> None:
    """Let nothing be remembered of the types of an extension that was dropped and made again."""
    _halfvec_type.cache_clear()
    connection.close()


def fill(apps: Any) -> None:
    """Store what the first release stored: beliefs with evidence, lineage, and the cycle that made them."""
    models = {name: apps.get_model("memory", name) for name in COUNTED}
    workspace = models["Workspace"].objects.create(name="from before", created_at=NOW)
    project = models["Project"].objects.create(workspace=workspace, slug="mill", created_at=NOW)
    cycle = models["Cycle"].objects.create(
        workspace=workspace, trigger="person", now=NOW, state="finished", finished_at=NOW
    )
    beliefs = [_belief(models["Belief"], number, workspace=workspace, born_in=cycle) for number in range(3)]
    for number, belief in enumerate(beliefs):
        rows = []
        for each in range(3 + number):
            verdict = Verdict.CONTRADICTS if each == 2 else Verdict.SUPPORTS
            episode = _episode(models["Episode"], f"{number}{each}", workspace=workspace, project=project)
            models["Evidence"].objects.create(
                workspace=workspace, belief=belief, episode=episode, verdict=verdict, basis="model", created_at=NOW,
                cycle=cycle,
            )  # fmt: skip
            rows.append(
                EvidenceRow(
                    episode_id=episode.pk, verdict=verdict, base_weight=1.0, origin=episode.origin, occurred_at=NOW
                )
            )
        _count(belief, rows)
    models["Lineage"].objects.create(
        workspace=workspace, parent=beliefs[0], child=beliefs[1], kind="revision", created_at=NOW, cycle=cycle
    )
    jobs = models["ClusterJob"].objects
    given = {"workspace": workspace, "cycle": cycle, "kind": "cluster", "state": "applied"}
    founding = jobs.create(number=1, members_hash="a" * 64, outcome="created", created_belief=beliefs[0], **given)
    joined = jobs.create(number=2, members_hash="b" * 64, outcome="joined", **given)
    # The first two of belief 0 founded it. Of the other candidate belief 1 took one row, while belief 2 was judged
    # itself by the two others.
    said = [(founding, None, "00"), (founding, None, "01"), *((joined, None, name) for name in ("13", "23", "24"))]
    for job, belief, name in [*said, (joined, beliefs[2], "23"), (joined, beliefs[2], "24")]:
        models["JobVerdict"].objects.create(
            workspace=workspace, job=job, belief=belief, episode_id=f"ep_{name:0>12}", statement_hash="c" * 64,
            verdict=Verdict.SUPPORTS, basis="model",
        )  # fmt: skip
    models["GateDecision"].objects.create(
        workspace=workspace, cycle=cycle, belief=beliefs[0], gate="archive", passed=False, reason="no_ground"
    )


def _belief(model: Any, number: int, **given: Any) -> Any:
    return model.objects.create(
        id=f"bl_00000000000{number}", statement=f"Wheel {number} turns.", statement_hash=f"{number}" * 64,
        created_at=NOW, updated_at=NOW, statement_changed_at=NOW, **given,
    )  # fmt: skip


def _count(belief: Any, rows: list[EvidenceRow]) -> None:
    """Store what the rows give, as the first release did."""
    policy = settings.POLICY.confidence
    weighed = weigh_evidence(rows=rows, policy=policy)
    belief.alpha, belief.beta = weighed.posterior.alpha, weighed.posterior.beta
    belief.evidence_count = weighed.evidence_count
    belief.prediction_error = prediction_error(rows=rows, policy=policy)
    belief.save()


def _episode(model: Any, name: str, **given: Any) -> Any:
    return model.objects.create(
        id=f"ep_{name:0>12}", text=f"Word {name}.", origin=f"session:{name}", content_hash=f"{name:0>64}",
        created_at=NOW, occurred_at=NOW, state="settled", **given,
    )  # fmt: skip


def counted(apps: Any) -> dict[str, int]:
    return {name: apps.get_model("memory", name).objects.count() for name in COUNTED}


def has_what_its_evidence_gives() -> None:
    assert find_drift(workspace=Workspace.objects.get(name="from before")) == (3, [])
    assert dict(Belief.objects.values_list("pk", "alpha")) == {f"bl_00000000000{n}": 3.0 + n for n in range(3)}


def knows_what_founded_a_belief() -> None:
    """R10a: two of the three rows of belief 0, and none of the others."""
    founding = Evidence.objects.filter(is_founding=True).order_by("episode_id")
    assert list(founding.values_list("belief_id", "episode_id")) == [
        ("bl_000000000000", "ep_000000000000"), ("bl_000000000000", "ep_000000000001")
    ]  # fmt: skip


def has_replayed_the_additive_confidence() -> None:
    """R10a: 0.6 − 0.2, the two founding rows left out; 0.6 + 0.1 + 0.1 − 0.2 + 0.1; and 0.1 more."""
    assert dict(Belief.objects.values_list("pk", "additive_confidence")) == {
        "bl_000000000000": 0.4, "bl_000000000001": 0.7, "bl_000000000002": 0.8
    }  # fmt: skip


def knows_the_twin_that_took_a_candidates_evidence() -> None:
    """B22: not by what the same job said of another belief itself, though that is more."""
    assert dict(ClusterJob.objects.values_list("number", "joined_belief")) == {1: None, 2: "bl_000000000001"}


def has_a_history_that_begins_with_what_is_there() -> None:
    """R10: a belief of an earlier release is answered as it stood when it was changed last."""
    found = BeliefEvent.objects.order_by("pgh_id").values_list("pgh_label", "statement", "alpha", "updated_at")
    assert list(found) == [("found", f"Wheel {n} turns.", 3.0 + n, NOW) for n in range(3)]


BROUGHT_ALONG = (
    has_what_its_evidence_gives, knows_what_founded_a_belief, has_replayed_the_additive_confidence,
    knows_the_twin_that_took_a_candidates_evidence, has_a_history_that_begins_with_what_is_there,
)  # fmt: skip


def test_a_database_goes_back_to_nothing_and_that_of_the_first_release_forward_with_its_data_and_back(
    old: Any, subtests: pytest.Subtests
) -> None:
    """Once for all that is looked at: each way there or back takes longer than the rest of these tests."""
    fill(old)
    before = counted(old)
    migrate(latest())
    assert counted(current_apps) == before
    for check in BROUGHT_ALONG:
        with subtests.test(check.__name__):
            check()
    apps = migrate(FIRST)
    assert counted(apps) == before
    assert apps.get_model("memory", "Belief").objects.get(pk="bl_000000000002").alpha == 5.0
    migrate(latest())
    assert Evidence.objects.count() == before["Evidence"]


def test_edges_between_sessions_of_different_users_are_gone() -> None:
    """L19: earlier releases took sessions of several users for one where they share a name."""
    migrate("0041_announced_claims")
    try:
        workspace = factories.workspace()
        mine, mine_too, theirs = (
            factories.episode(workspace=workspace, session="monday", user=user) for user in ("lena", "lena", "otto")
        )
        for other in (mine_too, theirs):
            for kind in ("time", "entity"):
                first, second = sorted((mine.pk, other.pk))
                Edge.objects.create(
                    workspace=workspace, source_id=first, target_id=second, kind=kind, weight=1, created_at=NOW,
                    last_seen_at=NOW, decays_at=NOW,
                )  # fmt: skip
    finally:
        migrate(latest())
    kept = {(frozenset((edge.source_id, edge.target_id)), edge.kind) for edge in Edge.objects.all()}
    apart, together = frozenset((mine.pk, theirs.pk)), frozenset((mine.pk, mine_too.pk))
    assert kept == {(together, "time"), (together, "entity"), (apart, "entity")}
