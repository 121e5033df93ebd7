"""C2, C3, C4: whatever is done in whatever order, numbers are those of the evidence, and rebuilding agrees."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from pytest_django import Settings

from memory.models import Belief, Evidence
from tests.consolidation.telling import read_as_told
from tests.ledger.anything import BOTH, Anything
from tests.ledger.known_faults import FAULTS, ROOT, put_back

ORDERS = int(os.environ.get("ENGRAM_TEST_ORDERS", "6"))
STEPS = 20


@pytest.fixture(autouse=True)
def alone(settings: Settings, monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Have readings answered as they are laid down, and let no message reach the suite's broker."""
    settings.ENGRAM_LLM, settings.ENGRAM_EMBEDDINGS = "offline", "static"
    monkeypatch.setattr("memory.llm.offline.read_offline", read_as_told)
    monkeypatch.setattr("workers.tasks.start_cycle", lambda **_: None)


@pytest.mark.slow
def test_whatever_is_done_in_whatever_order() -> None:
    run_state_machine_as_test(
        Anything,
        settings=settings(
            max_examples=ORDERS,
            stateful_step_count=STEPS,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_what_was_announced_and_put_off_is_rebuilt() -> None:
    """C1, B22: whatever road each word came by."""
    one = Anything()
    one.begin()
    one.cycle(after=1)
    one.remember(session="a", source="human", text="My manager is no longer Ravi, it is Dana now.")
    one.remember(session="b", source="human", text="From April 1st my manager will be Ravi instead of Dana.")
    one.ingest(said=[("From May 1st my manager will be Ravi instead of Dana.", "c")], ago=0)
    one.cycle(after=95)
    dana = Belief.objects.get(statement="Mara's manager is Dana.")
    assert (dana.status, str(dana.valid_until)) == ("invalidated", "2026-05-01 00:00:00+00:00")

    one.rebuilding_agrees()
    one.numbers_are_those_of_the_evidence()


def test_what_is_denied_is_upheld_and_rebuilt() -> None:
    """C1, B22: challenged by what was remembered, upheld by what was remembered and ingested."""
    one = Anything()
    one.begin()
    one.remember(session="a", source="human", text="My manager is Dana.")
    one.cycle(after=1)
    one.remember(session="b", source="human", text="Dana was never my manager.")
    one.remember(session="c", source="human", text="Dana is my manager.")
    one.cycle(after=1)
    one.ingest(said=[("My manager is Dana.", "d")], ago=0)
    one.cycle(after=1)

    one.rebuilding_agrees()
    one.numbers_are_those_of_the_evidence()
    assert Belief.objects.get(statement="Mara's manager is Dana.").status == "active"


def test_the_last_word_of_a_text_counts() -> None:
    """F1: its own yes counts no more for that."""
    one = Anything()
    one.begin()
    one.ingest(said=[(BOTH, "a")], ago=0)
    one.cycle(after=9)

    assert Evidence.objects.get(episode__text=BOTH, belief__statement="Mara drinks tea.").verdict == "CONTRADICTS"


@pytest.mark.parametrize("number", FAULTS)
def test_what_was_known_wrong_can_be_put_back(number: int) -> None:
    """`python -m tests.ledger.known_faults` shows which of it the orders find."""
    for edit in FAULTS[number].edits:
        assert put_back(edit, (ROOT / edit.path).read_text())
