"""The tools that read: the context of a task, and a memory named by the beginning of its id."""

import pytest

from memory.mcp.interface import ToolRefused
from memory.models import Belief
from tests import factories
from tests.mcp.test_tools import SECRET, Rows, call, rows
from tests.recall.memories import remembered

__all__ = ["rows"]

pytestmark = pytest.mark.django_db


def test_a_context_is_a_text_with_its_ids(rows: Rows) -> None:
    """R12: and another user's memories are not in it."""
    key = factories.key(workspace=rows.workspace)[1]
    told = call("memory_context", key, query=SECRET, user="ben")
    [general] = Belief.objects.filter(project=None)
    assert (told.ids, told.text) == ([general.pk], f"[Belief (0.86): {general.statement}]")
    assert told.as_text() == f"{told.text}\nIDs, in this order: {general.pk}"
    assert call("memory_context", key, query=SECRET, max_tokens=1).as_text() == "Nothing bears on it."


def test_a_memory_is_named_by_the_beginning_of_its_id(rows: Rows) -> None:
    """R7, R15, B18: of what the key may see."""
    key = factories.key(workspace=rows.workspace)[1]
    assert call("memory_expand", key, id=rows.belief.pk[:9]).id == rows.belief.pk
    for ending in ("0" * 8, "1" * 8):
        remembered("The mill turns.", workspace=rows.workspace, id=f"ep_abcd{ending}")
    with pytest.raises(ToolRefused, match="More than one id begins with ep_abcd: give more of it"):
        call("memory_forget", key, id="ep_abcd")
    assert call("memory_forget", key, id="ep_abcd1").id == "ep_abcd11111111"
    with pytest.raises(ToolRefused, match="There is no ep_ffff here"):
        call("memory_forget", key, id="ep_ffff")
    with pytest.raises(ToolRefused, match="A key that may not read names a memory by its whole id"):
        call("memory_forget", factories.key("write", workspace=rows.workspace)[1], id="ep_abcd0")
