"""Many rows in one statement: all or none, what exists stays, and nothing is cut to fit."""

import pytest
from django.db import DataError, transaction
from django.utils import timezone

from memory.models import ModelCall, ModelCallEpisode
from memory.models.fields import insert_new
from tests import factories

pytestmark = pytest.mark.django_db


def call_and_links(texts: list[str]) -> tuple[ModelCall, list[dict[str, object]]]:
    """Make a call, and the rows that would link it to new episodes of these texts."""
    workspace = factories.workspace(created_at=timezone.now())
    call = ModelCall.objects.create(workspace=workspace, purpose="classify", model="m", input_hash="h")
    episodes = [factories.episode(workspace=workspace, text=text) for text in texts]
    return call, [{"workspace_id": workspace.pk, "call_id": call.pk, "episode_id": episode.pk} for episode in episodes]


def test_rows_are_inserted_once_however_often_they_are_given() -> None:
    call, links = call_and_links(["Ines rows on Mondays.", "Ines rows on Fridays."])
    insert_new(model=ModelCallEpisode, rows=links[:1])
    insert_new(model=ModelCallEpisode, rows=links)
    stored = ModelCallEpisode.objects.filter(call=call).values_list("episode_id", flat=True)
    assert sorted(stored) == sorted(str(link["episode_id"]) for link in links)


def test_no_rows_are_no_statement(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        insert_new(model=ModelCallEpisode, rows=[])


def test_a_value_that_is_too_long_is_an_error_and_not_cut() -> None:
    call, [link] = call_and_links(["Ines rows on Sundays."])
    with pytest.raises(DataError), transaction.atomic():
        insert_new(model=ModelCallEpisode, rows=[link | {"episode_id": "ep_" + "0" * 40}])
    assert not ModelCallEpisode.objects.filter(call=call).exists()
