"""A text that real workers remember, and what must have come of it."""

import pytest
from django.db.models.functions import Now

from memory.facts.job import send_due_jobs
from memory.ledger.confidence import find_drift
from memory.models import Belief, Evidence, RememberedFact, RememberJob
from tests.consolidation.world import World
from tests.facts.telling import judges, states, tell
from tests.faults.waiting import wait_until

TABS = "Ana prefers tabs over spaces."
SPACES = "Ana prefers spaces over tabs."
WAIT_SECONDS = 90.0


def tell_later(world: World, monkeypatch: pytest.MonkeyPatch) -> Belief:
    """Tell the opposite of a belief of four episodes; it is left to a worker. Return the belief."""
    belief = world.hold(TABS, about="tabs", supports=4)
    states(world, SPACES)
    judges(world, SPACES, TABS, "CONTRADICTS")
    with monkeypatch.context() as unhurried:
        unhurried.setattr("memory.facts.remember.may_ask_now", lambda **_: False)
        assert tell(world, SPACES).state == "queued"
    return belief


def await_done() -> None:
    """Wait until a text is remembered, sweeping meanwhile as beat would have it done; nobody waits a minute here."""

    def is_done() -> bool:
        RememberJob.objects.queued().filter(lease_owner="").update(due_at=Now())
        RememberJob.objects.queued().filter(leased_until__lt=Now()).update(due_at=Now())
        send_due_jobs()
        return not RememberJob.objects.queued().exists()

    wait_until(is_done, what="the text to be remembered", seconds=WAIT_SECONDS, every=0.3)


def check_remembered_once(world: World, belief: Belief) -> None:
    """Assert that the contradiction counted once, and that one belief was made of it.

    R3, by hand: α = 1 + 4 and β = 1 become 5 and 2; the new belief has one support, so 2 and 1.
    """
    new = Belief.objects.filter(workspace=world.workspace).exclude(pk=belief.pk).get()
    known = world.now_of(belief)
    assert (known.status, known.alpha, known.beta) == ("active", 5.0, 2.0)
    assert (new.statement, new.alpha, new.beta) == (SPACES, 2.0, 1.0)
    assert Evidence.objects.filter(belief=new).count() == 1
    assert RememberedFact.objects.filter(belief=new).count() == 1
    assert find_drift(workspace=world.workspace)[1] == []


def asked(world: World) -> int:
    """Count how often the model was asked to read the text."""
    return world.calls("read")
