"""Echo: what an AI says in a session that was shown a belief does not bear that belief out."""

from datetime import timedelta

import pytest

from memory.domain.evidence import Verdict
from memory.models import Belief, Evidence, Lineage, LineageKind, ShownMemory
from tests import factories
from tests.consolidation.world import World

TABS, AGAIN = "Ana prefers tabs over spaces.", "As you know, Ana prefers tabs over spaces."


def show(world: World, belief: Belief, *, to: str) -> None:
    """Let a session be shown a belief."""
    ShownMemory.objects.create(workspace=world.workspace, session=to, belief=belief, surfaced_at=world.now)


def hear(world: World, *, source: str, session: str = "chat", verdict: Verdict = Verdict.SUPPORTS) -> Evidence:
    """Let somebody speak of indentation, and return what a cycle makes of it."""
    text = AGAIN if verdict == Verdict.SUPPORTS else "Ana has gone over to spaces."
    episode = world.say(
        text, about="indentation", likeness=0.8, verdict=verdict, source=source, session=session,
        origin=f"session:{session}", created_at=world.now + timedelta(minutes=1),
    )  # fmt: skip
    world.cycle(after=timedelta(days=1))
    return Evidence.objects.get(episode=episode)


@pytest.mark.parametrize("verdict", [Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.PARTIAL])
def test_an_ai_that_was_shown_a_belief_counts_nothing_for_it(world: World, verdict: Verdict) -> None:
    """Echo: base weight 0, kept for the record; α, β, counts and the time of reinforcement stay."""
    belief = world.hold(TABS, about="indentation", supports=4)
    show(world, belief, to="chat")

    heard = hear(world, source="ai", verdict=verdict)

    assert heard.cycle
    assert [heard.cycle.counts[name] for name in ("reinforced", "contradicted", "partial")] == [0, 0, 0]
    assert (heard.kind, heard.base_weight, heard.belief_id) == ("echo", 0.0, belief.pk)
    after = world.now_of(belief)
    kept = ("alpha", "beta", "evidence_count", "storage_strength", "last_reinforced_at", "prediction_error")
    assert [getattr(after, name) for name in kept] == [getattr(belief, name) for name in kept]
    assert (after.alpha, after.beta) == (5.0, 1.0)
    assert world.states(heard.episode) == ["settled"]


def test_a_person_who_was_shown_a_belief_counts_as_ever(world: World) -> None:
    """Echo: only the AI's own words are one."""
    belief = world.hold(TABS, about="indentation", supports=4)
    show(world, belief, to="chat")

    world.readings[AGAIN] = {"about": [{"b": TABS, "verdict": "SUPPORTS"}]}
    heard = hear(world, source="human")

    assert (heard.kind, heard.base_weight, world.now_of(belief).alpha) == ("ordinary", 1.0, 6.0)


def test_an_ai_that_was_shown_another_belief_or_nothing_counts(world: World) -> None:
    """Echo: by session and by belief."""
    belief, other = world.hold(TABS, about="indentation", supports=4), world.hold("Ana sails.", about="sailing")
    show(world, other, to="chat")
    show(world, belief, to="another chat")

    assert hear(world, source="ai").base_weight == 1.0
    assert world.now_of(belief).alpha == 6.0


def test_what_an_ai_said_before_it_was_shown_a_belief_counts(world: World) -> None:
    """Echo: nothing can be repeated that was not known."""
    belief = world.hold(TABS, about="indentation", supports=4)
    shown_at = world.now + timedelta(hours=1)
    ShownMemory.objects.create(workspace=world.workspace, session="chat", belief=belief, surfaced_at=shown_at)

    assert hear(world, source="ai").base_weight == 1.0


def test_what_came_of_a_belief_that_was_shown_is_echoed_too(world: World) -> None:
    """Echo: a revised belief has another id, and says nearly the same."""
    shown, child = factories.belief(workspace=world.workspace, status="revised"), world.hold(TABS, about="indentation")
    Lineage.objects.create(
        workspace=world.workspace, parent=shown, child=child, kind=LineageKind.REVISION, created_at=world.now
    )
    show(world, shown, to="chat")

    assert hear(world, source="ai").kind == "echo"


def test_another_workspace_shown_in_a_session_of_the_same_name_is_no_matter(world: World) -> None:
    """Tenancy: sessions are named by callers."""
    belief = world.hold(TABS, about="indentation", supports=4)
    stranger = factories.workspace()
    ShownMemory.objects.create(workspace=stranger, session="chat", belief=belief, surfaced_at=world.now)

    assert hear(world, source="ai").base_weight == 1.0
