"""C2, C3, C4: whatever is done in whatever order, numbers are those of the evidence, and rebuilding agrees."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from pytest_django import Settings

from memory.models import Belief, Evidence
from tests.ledger.anything import BOTH, Anything
from tests.ledger.known_faults import FAULTS, ROOT, put_back

ORDERS = int(os.environ.get("ENGRAM_TEST_ORDERS", "6"))
STEPS = 20


@pytest.fixture(autouse=True)
def alone(settings: Settings, monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """Have rules answer, and let no message reach the suite's broker."""
    settings.ENGRAM_LLM = settings.ENGRAM_EMBEDDINGS = "offline"
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


def test_a_text_that_upholds_a_belief_and_challenges_its_successor_is_rebuilt() -> None:
    """C2, B22: the successor is archived as unconfirmed in the same moment in which it is challenged."""
    one = Anything()
    one.begin()
    for session, source, text in (
        ("c", "ai", "We moved deployments from Tuesdays to Fridays."),
        ("f", "human", "We deploy on Tuesdays."),
        ("f", "ai", "My manager is Dana."),
        ("f", "human", "My manager is no longer Ravi, it is Dana now."),
        ("b", "human", "We deploy on Tuesdays."),
        ("c", "ai", "We deploy on Fridays."),
        ("b", "human", "We moved deployments from Tuesdays to Fridays."),
    ):
        one.remember(session=session, source=source, text=text)
    successor = Belief.objects.get(statement="Mara deploys on Tuesdays.")
    assert (successor.status, successor.status_reason) == ("archived", "unconfirmed")

    one.rebuilding_agrees()


def test_a_text_that_says_both_is_partial_though_what_it_denies_was_said_later() -> None:
    """E1, C2: what a later text bears out is not denied by an earlier one; its own yes counts no more for that."""
    one = Anything()
    one.begin()
    one.correct(place=30, statement="The kiln of the pottery burns 6 hours.")
    one.ingest(said=[(BOTH, "a")], ago=0)
    one.sum_up(session="e", text="My manager is Ravi.")
    one.remember(session="b", source="human", text="I drink tea.")
    one.cycle(after=9)

    assert Evidence.objects.filter(episode__text=BOTH, belief__status="active").get().verdict == "PARTIAL"


@pytest.mark.parametrize("number", FAULTS)
def test_what_was_known_wrong_can_be_put_back(number: int) -> None:
    """`python -m tests.ledger.known_faults` shows which of it the orders find."""
    for edit in FAULTS[number].edits:
        assert put_back(edit, (ROOT / edit.path).read_text())
