"""verify_beliefs: what is stored, held against what the evidence gives."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memory.ledger.confidence import recompute_beliefs
from memory.models import Belief, Evidence, Workspace
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def belief() -> Belief:
    """A belief with one supporting episode, computed from it."""
    workspace: Workspace = factories.workspace(name="acme")
    made = factories.belief(workspace=workspace)
    Evidence.objects.create(
        workspace=workspace,
        belief=made,
        episode=factories.episode(workspace=workspace),
        verdict="SUPPORTS",
        basis="guard",
        created_at=factories.NOW,
    )
    recompute_beliefs(beliefs=[made], now=factories.NOW)
    return made


def verify(*options: str) -> dict[str, object]:
    out = StringIO()
    call_command("verify_beliefs", "--json", *options, stdout=out)
    found: dict[str, object] = json.loads(out.getvalue())
    return found


def test_a_belief_that_equals_its_evidence_shows_no_drift(belief: Belief) -> None:
    """B4: α and β are what the rows give."""
    assert verify("--workspace", "acme") == {"checked": 1, "drift": []}


def test_a_belief_that_was_tampered_with_is_named(belief: Belief) -> None:
    """B4: a stored α that the rows do not give is drift, and an error."""
    Belief.objects.filter(pk=belief.pk).update(alpha=7)
    out = StringIO()
    with pytest.raises(CommandError, match="differ") as error:
        call_command("verify_beliefs", stdout=out)
    assert error.value.returncode == 1
    assert f"{belief.pk}: alpha is 7.0, evidence gives 2.0" in out.getvalue()


def test_an_unknown_workspace_is_bad_usage() -> None:
    with pytest.raises(CommandError, match="nowhere") as error:
        verify("--workspace", "nowhere")
    assert error.value.returncode == 2
