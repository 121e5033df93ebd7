"""B22: a cycle is cancelled while real workers are at it."""

from memory.consolidation.finish import cancel_cycle
from memory.domain.identity import Actor, ActorKind
from memory.ledger.confidence import find_drift
from tests.consolidation.world import World
from tests.faults.story import CALLS, Outcome, await_end, begin, count_calls, read_outcome, tell_story
from tests.faults.windows import HeldReply
from tests.faults.workforce import Workforce

LENA = Actor(kind=ActorKind.PERSON, name="lena")


def test_a_running_cycle_ends_soon_and_the_next_pays_nothing_twice(
    world: World, workforce: Workforce, undisturbed: Outcome
) -> None:
    """B22: what was complete is applied, what was being answered is kept, and the next cycle does the rest."""
    tell_story(world)
    held = HeldReply(world.server, purpose="synthesize")
    workforce.worker()
    cycle = begin(world)

    held.await_call()
    cancel_cycle(cycle_id=cycle.pk, actor=LENA)
    held.let_go()

    ended = await_end(cycle)
    assert (ended.state, ended.state_reason) == ("cancelled", "by person lena")
    assert await_end(begin(world)).state == "finished"
    assert read_outcome(world.workspace) == undisturbed
    assert count_calls(world) == CALLS
    assert find_drift(workspace=world.workspace)[1] == []
