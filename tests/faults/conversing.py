"""A conversation that real workers read, and what must have come of it."""

from collections import Counter

from django.utils import timezone

from memory.ingest.buffer import buffer_raw_turns
from memory.ingest.scheduling import wake_conversations
from memory.ingest.schemas import IngestContext
from memory.models import Conversation, Episode, ModelCall, Turn, TurnEpisode, Workspace
from tests.consolidation.world import World
from tests.faults.waiting import wait_until

SAYINGS = (
    "The kiln of the pottery takes 9 hours.",
    "Never open the kiln of the pottery before noon.",
    "The glaze of the pottery comes from the valley.",
)
WAIT_SECONDS = 90.0


def converse(world: World, *sayings: str) -> Conversation:
    """Say something in a conversation; its high signal has workers told."""
    for text in sayings:
        world.directions.place(text, {text: 1.0})
    lines = [{"session": "s", "role": "user", "content": text, "turn_id": text} for text in sayings]
    buffer_raw_turns(raw_lines=lines, arrival=IngestContext(workspace=world.workspace, now=timezone.now()))
    found: Conversation = Conversation.objects.get(workspace=world.workspace)
    return found


def await_reading(conversation: Conversation) -> None:
    """Wait until the turns of a conversation are stored and read."""
    await_storing(conversation)
    unread = Episode.objects.filter(turns__conversation=conversation, read_at=None)
    wait_until(lambda: not unread.exists(), what="the turns to be read", seconds=WAIT_SECONDS, every=0.3)


def await_storing(conversation: Conversation) -> None:
    """Wait until nothing of a conversation waits, sweeping meanwhile as beat would have it done."""

    def is_stored() -> bool:
        wake_conversations(now=timezone.now())
        return not Turn.objects.waiting().filter(conversation=conversation).exists()

    wait_until(is_stored, what="the turns to be stored", seconds=WAIT_SECONDS, every=0.3)


def check_stored_once(workspace: Workspace, *sayings: str) -> None:
    """Assert that each saying is one episode, told by one turn, and that nothing is held or waits."""
    episodes = Episode.objects.for_workspace(workspace.pk).filter(is_derived=False)
    assert Counter(episodes.values_list("text", flat=True)) == Counter(sayings)
    told = TurnEpisode.objects.for_workspace(workspace.pk).values_list("turn__content", "episode__text")
    assert sorted(told) == sorted((text, text) for text in sayings)
    assert set(Turn.objects.for_workspace(workspace.pk).values_list("state", flat=True)) == {"extracted"}
    found = Conversation.objects.get(workspace=workspace)
    assert (found.buffered, found.leased, found.lease_owner, found.claims) == (0, 0, "", 0)


def outcomes_of_calls(workspace: Workspace) -> Counter[str]:
    """Count the ledger's rows about readings by what came of them."""
    calls = ModelCall.objects.for_workspace(workspace.pk).filter(purpose="read")
    return Counter(calls.values_list("outcome", flat=True))


def count_asked(world: World) -> int:
    """Count the readings that the model server was asked for."""
    return sum(call.purpose == "read" for call in world.server.log)
