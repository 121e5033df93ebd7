"""The tools that look at all beliefs, and tidy them."""

import pytest
from django.utils import timezone

from memory.mcp.interface import ToolRefused
from memory.mcp.write_tools import Tidying
from memory.models import Belief
from tests import factories
from tests.mcp.test_tools import CALLS, OF_ALL, Rows, call, rows
from tests.recall.memories import believed

__all__ = ["rows"]

pytestmark = pytest.mark.django_db

OF_ALL_BELIEFS = [Tidying.PRUNE, Tidying.MERGE_DUPLICATES, Tidying.MAKE_META_BELIEFS, Tidying.BACKFILL_SUBJECTS]


def test_what_looks_at_all_beliefs_takes_a_key_without_limits(rows: Rows) -> None:
    """B21: of the others each would be told but a part."""
    key = factories.key(workspace=rows.workspace, projects=(rows.project,))[1]
    assert {"memory_reflect", "memory_find_contradictions", "memory_tidy"} == OF_ALL
    for name in OF_ALL:
        with pytest.raises(ToolRefused, match="This key is limited to projects"):
            call(name, key, **CALLS[name](rows))


def test_beliefs_are_looked_at_and_tidied(rows: Rows) -> None:
    """R7, R13: what is alike is proposed, what lacks a subject gets one."""
    key = factories.key("curate", workspace=rows.workspace)[1]
    tea, now = "Ben prefers green tea.", timezone.now()
    for statement in (tea, "Ben prefers green tea!"):
        believed(statement, workspace=rows.workspace, embedded_as=tea, created_at=now)
    seen = call("memory_reflect", key)
    assert (seen.beliefs, seen.duplicate_count, seen.duplicates[0].passes_guard) == (4, 1, True)
    rehearsed = call("memory_tidy", key, what=Tidying.PRUNE, dry_run=True)
    assert (rehearsed.pruned, rehearsed.dry_run) == (sorted(seen.faded, key=lambda one: one.id), True)
    told = {what: call("memory_tidy", key, what=what) for what in reversed(OF_ALL_BELIEFS)}
    assert [pair.ids for pair in told[Tidying.MERGE_DUPLICATES].proposed] == [seen.duplicates[0].ids]
    assert set(told[Tidying.BACKFILL_SUBJECTS].subjects.values()) >= {"ben"}
    assert (told[Tidying.PRUNE].pruned, told[Tidying.MAKE_META_BELIEFS].made) == (rehearsed.pruned, [])
    with pytest.raises(ToolRefused, match="Only prune can be tried"):
        call("memory_tidy", key, what=Tidying.MERGE_DUPLICATES, dry_run=True)


def test_of_much_that_was_tidied_a_part_is_told(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """R13: an agent has but so much room."""
    monkeypatch.setattr("memory.mcp.write_tools._MOST_LISTED", 1)
    for statement in ("Ben prefers green tea.", "Ben drinks no coffee."):
        believed(statement, workspace=rows.workspace)
    told = call("memory_tidy", factories.key("curate", workspace=rows.workspace)[1], what=Tidying.BACKFILL_SUBJECTS)
    assert (told.count >= 2, len(told.subjects)) == (True, 1)
    assert Belief.objects.filter(subject="ben").count() == 2


def test_pairs_that_may_contradict_each_other_are_told(rows: Rows) -> None:
    """R11."""
    key = factories.key("curate", workspace=rows.workspace)[1]
    said = {"Ben works at Siemens.", "Ben left Siemens and works at Bosch."}
    for statement in said:
        believed(statement, workspace=rows.workspace)
    unasked = call("memory_find_contradictions", key)
    assert (unasked.found, unasked.total, unasked.pairs) == (1, 0, [])
    told = call("memory_find_contradictions", key, check=True)
    [pair] = told.pairs
    assert (told.outcomes, told.total, pair.state, set(pair.statements)) == ({"contradicts": 1}, 1, "contradicts", said)
    dismissed = call("memory_tidy", key, what=Tidying.DISMISS_PAIR, pair=pair.pair)
    assert (dismissed.pair.state, call("memory_find_contradictions", key).total) == ("dismissed", 0)
    reopened = call("memory_tidy", key, what=Tidying.REOPEN_PAIR, pair=pair.pair)
    assert (reopened.pair.pair, reopened.pair.state) == (pair.pair, "open")
    with pytest.raises(ToolRefused, match="There is no pair 0"):
        call("memory_tidy", key, what=Tidying.DISMISS_PAIR, pair=0)
    for what, number in ((Tidying.DISMISS_PAIR, None), (Tidying.PRUNE, pair.pair)):
        with pytest.raises(ToolRefused, match="It takes one to dismiss or reopen"):
            call("memory_tidy", key, what=what, pair=number)
