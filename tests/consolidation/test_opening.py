"""B7: one open cycle a workspace, even where one ends while another is asked for."""

import pytest

from memory.consolidation.cycle import open_cycle
from memory.models import Cycle, Trigger
from memory.models.cycles import CycleQuerySet
from tests import factories


def test_a_cycle_that_ends_while_another_is_opened_is_no_error(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one in the way was open when the row was to be inserted, and is not when it is looked for."""
    workspace = factories.workspace()
    ended, _ = open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    look = CycleQuerySet.open

    def end_it_first(rows: CycleQuerySet) -> CycleQuerySet:
        Cycle.objects.filter(pk=ended.pk).update(state="finished", finished_at=factories.NOW)
        return look(rows)

    monkeypatch.setattr(CycleQuerySet, "open", end_it_first)

    opened, is_new = open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)

    assert is_new
    assert list(Cycle.objects.filter(state="queued")) == [opened]
