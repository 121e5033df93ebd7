"""B19: a word that nobody else says is planted wherever words go, erased, and looked for in every place.

All is real: the API, the worker and its broker, the models' replies over HTTP, the dump and the files.
"""

from typing import Any

import psycopg
import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from beliefsite.celery import app
from memory.consolidation.cycle import open_cycle
from memory.consolidation.undo import undo_cycle
from memory.models import (
    Belief,
    Cycle,
    Episode,
    Erased,
    Evidence,
    JobVerdict,
    ModelCall,
    TermFrequency,
    Trigger,
    Turn,
    TurnEpisode,
)
from memory.search.words import count_words
from tests.api.caller import Caller, caller
from tests.consolidation.world import World
from tests.export.files import exported
from tests.faults.story import await_end
from tests.faults.waiting import wait_until
from tests.forgetting.forgetful import LENA, all_is_sound, none_follows
from tests.forgetting.places import broker_contents, database_files, database_log, dump
from tests.model_server_acts import Asked, new
from tests.workers.conftest import queues, worker, world

__all__ = ["queues", "worker", "world"]

CANARY = "zyzzogeton"
SAYING = f"Zyzzo: the {CANARY} of the mill burns 5 hours."
OTHERS = [f"Miller's log {n}: the fire of the mill burns 5 hours." for n in range(4)]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("worker"),
    # What Celery calls, and what its threads leave to the collector, is not ours to mend.
    pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
app.loader.import_default_modules()


def quoting(world: World) -> Any:
    """Answer as a model that repeats what it was told, whatever it is asked about."""

    def answer(asked: Asked) -> dict[str, Any]:
        if asked.purpose == "read":
            said = [one["m"] for one in asked.messages if CANARY in one["text"]]
            return {"new": [new(m, SAYING, kind="event", entities=[CANARY]) for m in said], "about": []}
        reply = world.answer(asked)
        assert isinstance(reply, dict)
        for judged in reply.get("verdicts", ()):
            judged["texts"] = [
                text.replace("as scripted", f"unlike the {CANARY} of the mill") for text in judged["texts"]
            ]
        return reply

    return answer


@pytest.fixture
def owner(world: World) -> Caller:
    """Plant the word in a memory, in beliefs, and in all that tells of them."""
    world.server.script = quoting(world)
    world.statements["mill"] = f"The {CANARY} of the mill burns 5 hours."
    for text in [SAYING, *OTHERS, f"The {CANARY} of the mill burns 5 hours."]:
        world.directions.place(text, {"mill": 0.97})
    mine = caller(workspace=world.workspace)
    line = {
        "text": SAYING, "speaker": f"{CANARY} the miller", "session": f"at the {CANARY}", "entities": [CANARY],
        "tags": [CANARY], "idempotency_key": f"key of {CANARY}", "agent": CANARY, "language": "en",
    }  # fmt: skip
    assert mine.post("/episodes", line).status_code == 201
    say_in_a_conversation(mine)
    for text in OTHERS[:2]:
        mine.post("/episodes", {"text": text, "session": text, "language": "en"})
    run(world)
    for text in OTHERS[2:]:
        mine.post("/episodes", {"text": text, "session": text, "language": "en"})
    undo_cycle(cycle_id=run(world).pk, actor=LENA, now=timezone.now())
    mine.post("/recall", {"query": f"the {CANARY}", "session": f"at the {CANARY}"})
    count_words(workspace_id=world.workspace.pk)
    note_in_admin()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as the server does by itself now and then, at any time
    return mine


def say_in_a_conversation(mine: Caller) -> None:
    """Say it in turns that the worker reads: one is the memory that is there already, and one says more."""
    turns = turns_with_the_word()
    assert mine.post("/turns", {"turns": turns}).status_code == 202
    wait_until(lambda: not Turn.objects.waiting().exists(), what="the turns to be read")
    told = set(TurnEpisode.objects.filter(is_verbatim=True).values_list("episode__text", flat=True))
    assert told == {SAYING, turns[1]["content"]}


def turns_with_the_word() -> list[dict[str, str]]:
    """Return what an agent says, for the first time or again: a turn with an id, and one without."""
    turn = {"session": f"at the {CANARY}", "role": "user", "speaker": f"{CANARY} the miller"}
    return [
        {**turn, "content": SAYING, "turn_id": f"of {CANARY} 0"},
        {**turn, "content": f"Never forget: {SAYING} Mind the {CANARY}."},
    ]


def run(world: World) -> Cycle:
    """Let the worker take a cycle to its end."""
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
    ended = await_end(cycle)
    wait_until(none_follows, what="the cycles to end that follow at once")
    return ended


def note_in_admin() -> None:
    episode = Episode.objects.get(text=SAYING)
    LogEntry.objects.create(
        user=User.objects.create(username="lena"), content_type=ContentType.objects.get_for_model(Episode),
        object_id=episode.pk, object_repr=str(episode), action_flag=CHANGE, change_message=f"of {CANARY}",
    )  # fmt: skip


def places_with_the_word() -> set[str]:
    """Name the tables of a dump, and the other places, that hold the word."""
    found, table = set(), ""
    for line in dump().splitlines():
        table = line.split()[1].removeprefix("public.") if line.startswith("COPY ") else table
        if CANARY in line.lower():
            found.add(table)
    found |= {"broker" for content in broker_contents() if CANARY in content.lower()}
    found |= {f"planner on {table}" for table in tables_the_planner_knows_it_of()}
    return found | ({"log of the database"} if CANARY in database_log().lower() else set())


def tables_the_planner_knows_it_of() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_stats WHERE pg_stats::text ILIKE %s", [f"%{CANARY}%"])
        return {table for (table,) in cursor.fetchall()}


TABLES = {
    "memory_episode", "memory_belief", "memory_beliefevent", "memory_clusterjob", "memory_evidence",
    "memory_jobverdict", "memory_modelcall", "memory_shownmemory", "memory_termfrequency", "memory_revokedevidence",
    "memory_conversation", "memory_turn", "memory_claim", "django_admin_log",
}  # fmt: skip
SINGLE = {"memory_clusterjob", "memory_conversation", "django_admin_log"}
# Of a column with a single value it keeps none.
PLANTED = TABLES | {f"planner on {table}" for table in TABLES - SINGLE}


def test_no_place_holds_an_erased_word(
    world: World, owner: Caller, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """B19: neither the dump, with history, ledger and lexemes, nor broker, logs or an answer of the API."""
    episode = Episode.objects.get(text=SAYING)
    belief = Belief.objects.get(statement__contains=CANARY)
    assert places_with_the_word() == PLANTED
    calls = ModelCall.objects.count()
    answer = owner.request("DELETE", f"/memories/{episode.pk}?erase=true")
    assert (answer.status_code, answer.json()["status"], answer.json()["beliefs"]["erased"]) == (200, "erased", 1)
    assert places_with_the_word() == set()
    assert not Belief.objects.filter(pk=belief.pk).exists()
    assert (Episode.objects.count(), ModelCall.objects.count(), Erased.objects.count()) == (4, calls, 4)
    told = exported(world.workspace).decode() + caplog.text + "".join(capfd.readouterr()) + answer.content.decode()
    for path in ("/episodes", "/beliefs", "/consolidations", "/status"):
        told += owner.get(path).content.decode()
    assert CANARY not in told.lower()
    refused = owner.post("/episodes", {"text": SAYING, "session": "another"})
    again = owner.post("/turns", {"turns": turns_with_the_word()})
    assert (refused.status_code, again.status_code, Turn.objects.exists()) == (409, 409, False)
    assert places_with_the_word() == set()


def test_a_word_against_a_belief_does_not_keep_its_words(world: World, owner: Caller) -> None:
    """B19, B4: what a curator said stays theirs; of the belief that it was said of nothing is left, even by its id."""
    belief = Belief.objects.get(statement__contains=CANARY)
    assert owner.post(f"/beliefs/{belief.pk}/correct", {"reason": "the fire burns 6"}).status_code == 200
    owner.request("DELETE", f"/memories/{Episode.objects.get(text=SAYING).pk}?erase=true")
    assert places_with_the_word() == set()
    assert Episode.objects.get(category="correction").text == "Correction: the fire burns 6"


def test_what_others_said_is_not_lost(world: World, owner: Caller) -> None:
    """B19: the other four found the belief anew, in words of their own."""
    owner.request("DELETE", f"/memories/{Episode.objects.get(text=SAYING).pk}?erase=true")
    Episode.objects.filter(state="held").update(state="new", state_reason="")
    world.statements["mill"] = OTHERS[0]
    run(world)
    [belief] = Belief.objects.all()
    assert (belief.statement, belief.alpha, belief.status) == (OTHERS[0], 5.0, "active")
    all_is_sound(world)


def test_scrubbed_files_hold_nothing_either(world: World, owner: Caller) -> None:
    """B19: nor do dead rows, old index pages or the planner's statistics."""
    call_command("erase", Episode.objects.get(text=SAYING).pk, "--scrub", "--json")
    assert files_with_the_word() == []
    assert Evidence.objects.exists() is False
    assert TermFrequency.objects.exists()
    assert JobVerdict.objects.exists()


def test_a_transaction_that_still_sees_an_erased_word_holds_the_scrubbing_up(world: World, owner: Caller) -> None:
    """B19: its rows would be copied into the new files; who is in the way is named, and once they ended all goes."""
    with psycopg.connect(**facts_of_connection(), application_name="a report") as older:
        older.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert older.execute("SELECT count(*) FROM memory_episode").fetchone()
        in_the_way = r"process \d+ \(a report, idle in transaction since .* no file is scrubbed"
        with pytest.raises(CommandError, match=in_the_way) as failed:
            call_command("erase", Episode.objects.get(text=SAYING).pk, "--scrub", "--wait", "0.1")
        older.execute("CHECKPOINT")
        assert files_with_the_word() != []
    assert (failed.value.returncode, Episode.objects.filter(text=SAYING).exists()) == (1, False)
    call_command("erase", "--scrub")
    assert files_with_the_word() == []


def files_with_the_word() -> list[str]:
    word = CANARY.encode()
    return [file.name for file in database_files() if word in file.read_bytes().lower()]


def facts_of_connection() -> dict[str, Any]:
    facts = connection.settings_dict
    return {"host": facts["HOST"], "port": facts["PORT"], "user": facts["USER"], "dbname": facts["NAME"]}
