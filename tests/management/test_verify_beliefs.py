"""verify_beliefs: what is stored, held against what the evidence gives."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.ledger.confidence import recompute_beliefs
from memory.models import Belief, Episode, Evidence, Workspace
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
    assert verify("--workspace", "acme") == {"workspaces": 1, "checked": 1, "drift": []}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "2 beliefs of 2 workspaces checked, 0 differences\n"),
        (("--workspace", "acme"), "1 belief of acme checked, 0 differences\n"),
    ],
)
def test_it_says_whose_beliefs_it_checked(belief: Belief, options: tuple[str, ...], told: str) -> None:
    other = factories.belief(workspace=factories.workspace())
    recompute_beliefs(beliefs=[other], now=factories.NOW)
    out = StringIO()
    call_command("verify_beliefs", *options, stdout=out)
    assert out.getvalue() == told


def test_a_belief_that_was_tampered_with_is_named(belief: Belief) -> None:
    """B4: a stored α that the rows do not give is drift, and an error."""
    Belief.objects.filter(pk=belief.pk).update(alpha=7)
    out = StringIO()
    with pytest.raises(CommandError, match="differ") as error:
        call_command("verify_beliefs", stdout=out)
    assert error.value.returncode == 1
    assert f"{belief.pk}: alpha is 7.0, evidence gives 2.0" in out.getvalue()


def test_a_time_that_differs_is_told_in_json(belief: Belief) -> None:
    Belief.objects.filter(pk=belief.pk).update(last_reinforced_at=None)
    out = StringIO()
    with pytest.raises(CommandError, match="differ"):
        call_command("verify_beliefs", "--json", stdout=out)
    [drift] = json.loads(out.getvalue())["drift"]
    assert (drift["column"], drift["stored"], drift["given"]) == ("last_reinforced_at", None, "2026-03-01T12:00:00Z")


def test_many_beliefs_are_asked_about_together(belief: Belief, django_assert_num_queries: Any) -> None:
    with CaptureQueriesContext(connection) as of_one:
        assert verify("--workspace", "acme")["checked"] == 1
    more = [factories.belief(workspace=belief.workspace) for _ in range(30)]
    for other in more:
        factories.evidence(belief=other, episode=Episode.objects.get())
    recompute_beliefs(beliefs=more, now=factories.NOW)
    with django_assert_num_queries(len(of_one)):
        assert verify("--workspace", "acme")["checked"] == 31


def test_an_unknown_workspace_is_bad_usage() -> None:
    with pytest.raises(CommandError, match="nowhere") as error:
        verify("--workspace", "nowhere")
    assert error.value.returncode == 2
