"""Claims in the admin: on their episode's page, beside the evidence that they are, and in a list of their own (E1)."""

from collections.abc import Callable

import pytest
from django.test import Client

from memory.models import Claim, ClusterJob, Evidence, Role, Workspace
from tests import factories
from tests.admin.scene import Scene
from tests.admin.test_isolation import list_of, page_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def test_an_episode_shows_what_it_asserts_and_how_that_is_meant(ours: Scene, sign_in: SignIn) -> None:
    """E1."""
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.episode)).content.decode()
    asserted = page[page.index("what it asserts") :]
    for part in ("A claim of ours.", "change", "identity · implied · rules-1"):
        assert part in asserted


def test_evidence_shows_the_claim_that_counts_and_how_it_was_meant(ours: Scene, sign_in: SignIn) -> None:
    """E1, E3: beside the whole text."""
    Evidence.objects.filter(pk=ours.evidence.pk).update(claim=ours.claim)
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.belief))
    [inline] = [each for each in page.context["inline_admin_formsets"] if each.opts.model is Evidence]
    [shown] = [inline.opts.counts(form.instance) for form in inline.formset.forms if form.instance.claim]
    assert "A claim of ours." in shown
    assert "change" in shown


def test_claims_are_told_apart_by_how_they_are_meant(ours: Scene, sign_in: SignIn) -> None:
    """E1: a filter of the list."""
    asked = Claim.objects.create(
        workspace=ours.workspace, episode=ours.episode, number=2, sentence="Who is it?", mode="asked",
        reader="rules-1", created_at=factories.NOW,
    )  # fmt: skip
    client = sign_in(ours.workspace, Role.READER)
    shown = {
        mode: {row.pk for row in client.get(list_of(Claim), {"mode__exact": mode}).context["cl"].result_list}
        for mode in ("asked", "change", "wished")
    }
    assert shown == {"asked": {asked.pk}, "change": {ours.claim.pk}, "wished": set()}


def test_nobody_changes_a_claim(ours: Scene, sign_in: SignIn) -> None:
    """E1: reading the episode again replaces it, and nothing else does."""
    client = sign_in(ours.workspace, Role.OWNER)
    assert client.post(page_of(ours.claim), {"sentence": "Other."}).status_code == 403
    assert Claim.objects.get(pk=ours.claim.pk).sentence == "A claim of ours."


def test_the_job_of_a_claim_says_what_it_is_about(ours: Scene, sign_in: SignIn) -> None:
    """E4: in the list of jobs and on the page of its cycle, and one whose claim is gone is shown as well."""
    fields = {"workspace": ours.workspace, "cycle": ours.cycle, "kind": "claim", "members_hash": "d" * 64}
    ClusterJob.objects.create(**fields, number=2, claim=ours.claim)
    ClusterJob.objects.create(**fields, number=3)
    client = sign_in(ours.workspace, Role.READER)
    listed = client.get(list_of(ClusterJob), {"kind__exact": "claim"})
    assert len(listed.context["cl"].result_list) == 2
    for page in (listed, client.get(page_of(ours.cycle))):
        assert "A claim of ours." in page.content.decode()
