"""R10: triggers keep every change of what is believed, whoever makes it and however."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.db.utils import ProgrammingError

from memory.domain.identity import Actor, ActorKind, cycle_actor
from memory.history import attribute_changes
from memory.ledger.confidence import recompute_beliefs
from memory.models import Belief, BeliefEvent
from tests import factories

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")


@pytest.fixture
def belief() -> Belief:
    return factories.belief(workspace=factories.workspace(), statement="The mill grinds on Mondays.")


def events(belief: Belief) -> list[BeliefEvent]:
    return list(BeliefEvent.objects.filter(pgh_obj=belief).order_by("pgh_id"))


def test_a_belief_begins_its_history(belief: Belief) -> None:
    """R10."""
    [event] = events(belief)
    assert (event.pgh_label, event.statement, event.alpha, event.status) == (
        "created", "The mill grinds on Mondays.", 1.0, "active",
    )  # fmt: skip
    assert event.updated_at == factories.NOW
    assert event.workspace_id == belief.workspace_id


@pytest.mark.parametrize(
    "changed", [{"statement": "It rests."}, {"status": "archived"}, {"alpha": 2.0}, {"beta": 3.5}, {"is_pinned": True}]
)
def test_each_tracked_column_leaves_an_event(belief: Belief, changed: dict[str, object]) -> None:
    """R10: statement, status, α, β and pin."""
    Belief.objects.filter(pk=belief.pk).update(**changed)
    event = events(belief)[-1]
    assert event.pgh_label == "changed"
    assert {name: getattr(event, name) for name in changed} == changed


def test_what_is_not_tracked_leaves_none(belief: Belief) -> None:
    """The trigger looks only at what was believed: counters and due times cost no row."""
    Belief.objects.filter(pk=belief.pk).update(archive_due_at=factories.NOW, storage_strength=9, alpha=belief.alpha)
    assert len(events(belief)) == 1


def test_a_change_by_hand_in_the_database_is_kept_too(belief: Belief) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_belief SET beta = 7 WHERE id = %s", [belief.pk])
    assert events(belief)[-1].beta == 7.0


def test_one_statement_over_many_beliefs_keeps_each(belief: Belief) -> None:
    others = [factories.belief(workspace=belief.workspace) for _ in range(3)]
    Belief.objects.for_workspace(belief.workspace).update(alpha=4.0)
    assert [len(events(each)) for each in (belief, *others)] == [2, 2, 2, 2]


def test_a_change_says_who_and_why(belief: Belief) -> None:
    """R10: reason and actor are the context; the latest word of a transaction holds."""
    attribute_changes(actor=cycle_actor("cy_000000000001"), reason="new evidence")
    Belief.objects.filter(pk=belief.pk).update(alpha=2.0)
    attribute_changes(actor=LENA, reason="keep it")
    Belief.objects.filter(pk=belief.pk).update(is_pinned=True)
    assert [event.pgh_context for event in events(belief)[1:]] == [
        {"actor": "cycle cy_000000000001", "reason": "new evidence"},
        {"actor": "person lena", "reason": "keep it"},
    ]


def test_contexts_are_kept_with_their_events_and_nowhere_else(belief: Belief) -> None:
    attribute_changes(actor=LENA, reason="keep it")
    Belief.objects.filter(pk=belief.pk).update(is_pinned=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pghistory_context")
        assert cursor.fetchone() == (0,)


@pytest.mark.django_db(transaction=True)
def test_an_attribution_ends_with_its_transaction() -> None:
    belief = factories.belief(workspace=factories.workspace())
    with transaction.atomic():
        attribute_changes(actor=LENA, reason="keep it")
    Belief.objects.filter(pk=belief.pk).update(is_pinned=True)
    assert events(belief)[-1].pgh_context is None


@pytest.mark.django_db(transaction=True)
def test_an_attribution_outside_a_transaction_is_refused() -> None:
    """It would be gone before the change."""
    with pytest.raises(TransactionManagementError):
        attribute_changes(actor=LENA, reason="keep it")


def test_recomputing_from_the_same_evidence_leaves_no_event(belief: Belief) -> None:
    recompute_beliefs(beliefs=[belief], now=factories.NOW + timedelta(days=1))
    assert len(events(belief)) == 1


def test_history_is_never_rewritten(belief: Belief) -> None:
    with pytest.raises(ProgrammingError, match="Cannot update"), transaction.atomic():
        BeliefEvent.objects.filter(pgh_obj=belief).update(statement="It never did.")
    assert events(belief)[0].statement == "The mill grinds on Mondays."


def test_a_workspace_takes_its_history_along(belief: Belief) -> None:
    belief.workspace.delete()
    assert not BeliefEvent.objects.exists()
