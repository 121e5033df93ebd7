"""B8: whatever is leased is leased alike: jobs of cycles, texts to remember, conversations."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from memory.consolidation.cycle import database_now, open_cycle
from memory.consolidation.leases import Lease, hold, lease_end, take_lease
from memory.models import (
    ClusterJob,
    Conversation,
    Cycle,
    JobKind,
    RememberJob,
    StructuralJob,
    StructuralKind,
    Trigger,
    Workspace,
)
from memory.models.leases import Leased, LeasedQuerySet, Postponable, PostponableQuerySet
from tests import factories

pytestmark = pytest.mark.django_db


def cluster_job(workspace: Workspace) -> Leased:
    return ClusterJob.objects.create(
        workspace=workspace, cycle=new_cycle(workspace), number=1, kind=JobKind.CLUSTER, members_hash=""
    )


def structural_job(workspace: Workspace) -> Leased:
    belief = factories.belief(workspace=workspace)
    return StructuralJob.objects.create(
        workspace=workspace, decided_in=new_cycle(workspace), kind=StructuralKind.REVISE, belief=belief
    )


def new_cycle(workspace: Workspace) -> Cycle:
    cycle, _ = open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    return cycle


def remember_job(workspace: Workspace) -> Leased:
    episode = factories.episode(workspace=workspace)
    return RememberJob.objects.create(workspace=workspace, episode=episode, actor="t", created_at=factories.NOW)


def conversation(workspace: Workspace) -> Leased:
    factories.turn(workspace=workspace, session="s")
    return Conversation.objects.get()


Make = Callable[[Workspace], Leased]
POSTPONABLE = (cluster_job, structural_job, conversation)


@pytest.fixture(params=(*POSTPONABLE, remember_job), ids=lambda make: make.__name__)
def row(request: pytest.FixtureRequest) -> Leased:
    """Store one row of each table that is leased."""
    made: Leased = request.param(factories.workspace())
    return made


def rows_of(row: Leased) -> LeasedQuerySet:
    """Select the row by its own table's query set."""
    return cast(LeasedQuerySet, type(row)._default_manager.filter(pk=row.pk))


def lease_of(row: Leased, owner: str | None = None) -> Lease[Any]:
    return Lease(row=row, owner=owner or take_lease(rows_of(row)) or "")


def test_a_row_is_leased_once(row: Leased) -> None:
    assert take_lease(rows_of(row))
    assert take_lease(rows_of(row)) is None
    row.refresh_from_db()
    assert row.claims == 1


def test_a_dead_workers_lease_runs_out(row: Leased) -> None:
    first = take_lease(rows_of(row))
    rows_of(row).update(leased_until=database_now(plus=-1))
    assert take_lease(rows_of(row)) not in (None, first)
    row.refresh_from_db()
    assert row.claims == 2


def test_who_writes_late_finds_another_owner(row: Leased) -> None:
    late = lease_of(row)
    rows_of(row).update(leased_until=database_now(plus=-1))
    owner = take_lease(rows_of(row))
    assert not late.held.renew(until=lease_end())
    assert not late.let_go(state_reason="late")
    assert not late.give_back()
    row.refresh_from_db()
    assert (row.lease_owner, row.claims, row.state_reason) == (owner, 2, "")


def test_work_that_ends_leaves_no_claim(row: Leased) -> None:
    with hold(lease_of(row)) as lease:
        assert lease
        assert lease.renew()
    row.refresh_from_db()
    assert (row.lease_owner, row.leased_until, row.claims) == ("", None, 0)


def test_an_error_leaves_its_claim_counted(row: Leased) -> None:
    with pytest.raises(RuntimeError), hold(lease_of(row)):
        raise RuntimeError
    row.refresh_from_db()
    assert (row.lease_owner, row.leased_until, row.claims) == ("", None, 1)


def test_why_work_failed_is_cut_to_fit(row: Leased) -> None:
    lease_of(row).held.fail(reason="x" * 300)
    row.refresh_from_db()
    assert (row.state_reason, row.lease_owner, row.claims) == ("x" * 200, "", 1)


@pytest.mark.parametrize("make", POSTPONABLE)
def test_what_has_to_wait_is_not_free(make: Make) -> None:
    row = make(factories.workspace())
    rows_of(row).update(not_before=database_now(plus=60))
    assert take_lease(rows_of(row)) is None
    rows_of(row).update(not_before=database_now(plus=-1))
    assert take_lease(rows_of(row))
    row.refresh_from_db()
    assert isinstance(row, Postponable)
    assert row.not_before is None


@pytest.mark.parametrize("make", POSTPONABLE)
def test_a_lease_can_be_revoked_with_its_wait(make: Make) -> None:
    row = make(factories.workspace())
    lease = lease_of(row)
    rows = rows_of(row)
    rows.update(not_before=database_now(plus=60))
    assert isinstance(rows, PostponableQuerySet)
    rows.revoke(state_reason="over")
    assert not lease.held.exists()
    assert take_lease(rows)
