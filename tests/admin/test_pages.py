"""What the pages show, and what showing it costs."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from pytest_django import Settings

from memory.admin.columns import link_to
from memory.admin.presentation import BELIEFS_NOTICE, OFFLINE_EMBEDDINGS_NOTICE, OFFLINE_NOTICE
from memory.models import Belief, ClusterJob, Cycle, Episode, Evidence, JobVerdict, Role, Workspace
from tests import factories
from tests.admin.scene import Scene, add_episodes
from tests.admin.test_isolation import MODELS, list_of, page_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db

SignIn = Callable[[Workspace, Role], Client]


def test_a_belief_reads_from_statement_to_confidence_to_evidence(ours: Scene, sign_in: SignIn) -> None:
    """B4: with its 90 % interval; Beta(4, 2) has mean 2/3 and lies between 0.34 and 0.92."""
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.belief)).content.decode()
    content = page[page.index('id="content"') :]
    order = [content.index(part) for part in ("The statement of ours", "0.67", "90% between", "An episode of ours.")]
    assert order == sorted(order)
    assert "between 0.34 and 0.92" in page
    for part in ("1 episode for it, from 1 origin", "A reason of ours.", "session-of-ours", "2026-03-01", "no ground"):
        assert part in page


def test_the_additive_confidence_is_shown_where_the_workspace_uses_it(ours: Scene, sign_in: SignIn) -> None:
    """R10a."""
    client = sign_in(ours.workspace, Role.READER)
    assert "Additive confidence" not in client.get(page_of(ours.belief)).content.decode()
    Workspace.objects.filter(pk=ours.workspace.pk).update(confidence_model="additive")
    assert "Additive confidence" in client.get(page_of(ours.belief)).content.decode()


def test_the_list_says_since_and_until_when_a_belief_holds(ours: Scene, sign_in: SignIn) -> None:
    """C2: as its page and recall do."""
    since, until = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    Belief.objects.filter(pk=ours.belief.pk).update(valid_from=since, valid_until=until)
    page = sign_in(ours.workspace, Role.READER).get(list_of(Belief)).content.decode()

    assert "since 2026-04-01, until 2026-06-01" in page


def test_a_belief_names_the_cluster_it_was_born_of(ours: Scene, sign_in: SignIn) -> None:
    """B18: with links to the job and its cycle, and what the job's episodes said of the sentence."""
    client = sign_in(ours.workspace, Role.READER)
    ClusterJob.objects.filter(pk=ours.job.pk).update(created_belief=ours.belief)
    JobVerdict.objects.filter(pk=ours.verdict.pk).update(verdict="SUPPORTS", belief=None)
    page = client.get(page_of(ours.belief)).content.decode()
    born = page[page.index(f"cluster #{ours.job.number}") :][:400]
    assert f">{ours.cycle.pk}</a>: 1 supports" in born


def test_evidence_shows_what_it_counts_as(ours: Scene, sign_in: SignIn) -> None:
    """B4: the n-th row of one origin weighs 1/n."""
    add_episodes(ours.belief, 3)
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.belief))
    [inline] = [each for each in page.context["inline_admin_formsets"] if each.opts.model is Evidence]
    shown = [inline.opts.effective_weight(form.instance) for form in inline.formset.forms]
    assert shown == ["0.33", "0.50", "1.00", "1.00"]


def test_a_workspace_that_counts_every_statement_shows_full_weights(ours: Scene, sign_in: SignIn) -> None:
    """B4: independence of origins can be switched off for a workspace."""
    Workspace.objects.filter(pk=ours.workspace.pk).update(discount_repeats=False)
    add_episodes(ours.belief, 2)
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.belief))
    [inline] = [each for each in page.context["inline_admin_formsets"] if each.opts.model is Evidence]
    assert {inline.opts.effective_weight(form.instance) for form in inline.formset.forms} == {"1.00"}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_page_shows_a_vector(model: Any, ours: Scene, sign_in: SignIn) -> None:
    client = sign_in(ours.workspace, Role.OWNER)
    [row] = [row for row in ours.rows() if isinstance(row, model)]
    for address in (list_of(model), page_of(row)):
        assert "0.123" not in client.get(address).content.decode()


@pytest.mark.parametrize("address", ["admin:index", "admin:memory_belief_changelist"])
def test_offline_models_are_named(address: str, ours: Scene, sign_in: SignIn) -> None:
    assert OFFLINE_NOTICE in sign_in(ours.workspace, Role.READER).get(reverse(address)).content.decode()


def test_a_belief_page_names_offline_models(ours: Scene, sign_in: SignIn) -> None:
    assert OFFLINE_NOTICE in sign_in(ours.workspace, Role.READER).get(page_of(ours.belief)).content.decode()


def test_a_language_model_is_not_called_offline(ours: Scene, sign_in: SignIn, settings: Any) -> None:
    settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "openai"
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.belief)).content.decode()
    assert "Offline" not in page


def test_offline_embeddings_under_a_language_model_are_named(ours: Scene, sign_in: SignIn, settings: Any) -> None:
    settings.ENGRAM_LLM = "openai"
    assert OFFLINE_EMBEDDINGS_NOTICE in sign_in(ours.workspace, Role.READER).get(page_of(ours.belief)).content.decode()


def test_text_of_an_episode_is_data_on_the_page(ours: Scene, sign_in: SignIn) -> None:
    text = "<script>alert('x')</script>"
    episode = factories.episode(workspace=ours.workspace, text=text)
    client = sign_in(ours.workspace, Role.READER)
    for address in (list_of(Episode), page_of(episode)):
        page = client.get(address).content.decode()
        assert text not in page
        assert escape(text) in page


def test_a_long_list_of_evidence_comes_in_pages(ours: Scene, sign_in: SignIn) -> None:
    add_episodes(ours.belief, 40)
    page = sign_in(ours.workspace, Role.READER).get(page_of(ours.belief))
    [inline] = [each for each in page.context["inline_admin_formsets"] if each.opts.model is Evidence]
    assert len(inline.formset.forms) == 25


@pytest.mark.parametrize("model", [Belief, Episode, Evidence])
def test_a_list_costs_the_same_for_more_rows(
    model: Any, ours: Scene, sign_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        factories.belief(workspace=ours.workspace, project=ours.project, scope="project")
    add_episodes(ours.belief, 20)
    client = sign_in(ours.workspace, Role.READER)
    with django_assert_max_num_queries(8):
        client.get(list_of(model))


def test_a_belief_page_costs_the_same_for_more_evidence(
    ours: Scene, sign_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    add_episodes(ours.belief, 24)
    client = sign_in(ours.workspace, Role.CURATOR)
    with django_assert_max_num_queries(23):
        client.get(page_of(ours.belief))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_no_list_reads_a_wide_column(
    model: Any, ours: Scene, sign_in: SignIn, django_assert_max_num_queries: Any
) -> None:
    client = sign_in(ours.workspace, Role.READER)
    with django_assert_max_num_queries(12) as queries:
        client.get(list_of(model))
    wide = ('."search"', '."candidate_vector"', '"reply"')
    assert not [query["sql"] for query in queries for column in wide if column in query["sql"]]


def test_a_list_that_is_not_counted_says_no_number(ours: Scene, sign_in: SignIn) -> None:
    """The theme hides the number that stands in for a count only where it finds its own paginator's name."""
    assert "9999999999 results" not in sign_in(ours.workspace, Role.READER).get(list_of(Evidence)).content.decode()


@pytest.mark.parametrize("model", [Belief, Episode, Cycle])
def test_a_link_leads_to_its_row_whatever_its_id(model: Any, ours: Scene, sign_in: SignIn) -> None:
    """The admin reads `_23` in an address as `#`, and so would miss one row of forty."""
    row: Model
    if model is Cycle:
        row = Cycle.objects.create(
            workspace=ours.workspace, id="cy_232425262240", state="finished", finished_at=NOW, now=NOW, trigger="person"
        )
    elif model is Belief:
        row = factories.belief(workspace=ours.workspace, id="bl_232425262240")
    else:
        row = factories.episode(workspace=ours.workspace, id="ep_232425262240")
    [address] = re.findall(r'href="([^"]+)"', str(link_to(model, row.pk)))
    page = sign_in(ours.workspace, Role.READER).get(address)
    assert (page.status_code, page.context["original"]) == (200, row)


def test_it_says_where_the_installation_keeps_no_beliefs(ours: Scene, sign_in: SignIn, settings: Settings) -> None:
    """B22: on the first page and beside beliefs; every page has a label."""
    client = sign_in(ours.workspace, Role.OWNER)
    assert "Beliefs off" not in client.get("/admin/").content.decode()
    settings.ENGRAM_BELIEFS = False
    for page in ("/admin/", list_of(Belief), page_of(ours.belief)):
        assert BELIEFS_NOTICE in client.get(page).content.decode()
    assert "Beliefs off, Offline models" in client.get(list_of(Episode)).content.decode()


def test_nothing_leads_to_a_site_outside_of_the_admin(ours: Scene, sign_in: SignIn) -> None:
    """No row has a page there: neither a link nor the address behind it."""
    client = sign_in(ours.workspace, Role.OWNER)
    for page in (client.get("/admin/"), client.get(page_of(ours.belief))):
        assert "View site" not in page.content.decode()
        assert "View on site" not in page.content.decode()
    kind = ContentType.objects.get_for_model(Belief).pk
    for key in (ours.belief.pk, "%00", "x"):
        assert client.get(f"/admin/r/{kind}/{key}/").status_code == 410
