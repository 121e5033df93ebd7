"""B4, R10a: who chooses another way of counting has all beliefs counted by it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from memory.ledger.confidence import find_drift, recompute_beliefs
from memory.models import Belief, BeliefEvent, Role, Workspace
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


@pytest.fixture
def belief() -> Belief:
    """A belief that one session supported once and contradicted three times, 180 days before archiving at the most."""
    workspace = factories.workspace()
    belief = factories.belief(workspace=workspace, created_at=NOW, last_reinforced_at=NOW)
    for number, verdict in enumerate(["SUPPORTS", *["CONTRADICTS"] * 3, "SUPPORTS"]):
        episode = factories.episode(
            workspace=workspace, origin="session:a", occurred_at=NOW + timedelta(minutes=number)
        )
        factories.evidence(belief=belief, episode=episode, verdict=verdict)
    recompute_beliefs(beliefs=[belief], now=NOW)
    return belief


def choose(client: Client, workspace: Workspace, **chosen: str) -> None:
    """Post the workspace's form with something else chosen; an empty text unchecks."""
    form = {
        "name": workspace.name, "confidence_model": "beta", "beliefs_enabled": "on", "discount_repeats": "on",
        "memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0",
    }  # fmt: skip
    fields = {name: value for name, value in (form | chosen).items() if value}
    answer = client.post(reverse("admin:memory_workspace_change", args=[workspace.pk]), fields)
    assert answer.status_code == 302, answer.content.decode()[:2000]


def test_no_more_counting_origins_counts_every_row_in_full(belief: Belief, sign_in: SignIn) -> None:
    """B4: two and three rows of one session; before, they weighed 1 + ½ + … in their order."""
    assert (belief.alpha, belief.beta) != (3.0, 4.0)

    choose(sign_in(belief.workspace, Role.OWNER), belief.workspace, discount_repeats="")

    found = Belief.objects.get(pk=belief.pk)
    assert (found.alpha, found.beta) == (3.0, 4.0)
    assert find_drift(workspace=found.workspace) == (1, [])
    event = BeliefEvent.objects.filter(pgh_obj=belief).latest("pgh_id")
    assert event.pgh_context == {"actor": "person owner", "reason": "counted anew: discount_repeats is False"}


def test_the_additive_model_is_what_gates_read_from_then_on(belief: Belief, sign_in: SignIn) -> None:
    """R10a: the peak and the time of archiving follow the number that gates read; α and β stay."""
    Belief.objects.update(peak_confidence=0.5, archive_due_at=None)

    choose(sign_in(belief.workspace, Role.OWNER), belief.workspace, confidence_model="additive")

    found = Belief.objects.get(pk=belief.pk)
    assert (found.alpha, found.beta) == (belief.alpha, belief.beta)
    assert found.additive_confidence is not None
    assert found.peak_confidence == pytest.approx(0.7), "before the words against it"
    assert found.archive_due_at == NOW + timedelta(days=180)


def test_what_has_nothing_to_do_with_counting_leaves_beliefs_alone(belief: Belief, sign_in: SignIn) -> None:
    choose(sign_in(belief.workspace, Role.OWNER), belief.workspace, beliefs_enabled="")
    assert Belief.objects.get(pk=belief.pk).updated_at == NOW
