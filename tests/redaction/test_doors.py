"""Redaction (L2): secrets of every kind are planted through every door, and looked for wherever words end up.

All is real: the API, the tools, commands, the worker and its broker, the models over HTTP, the dump and the logs.
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from structlog.stdlib import ProcessorFormatter

from beliefsite.celery import app
from memory.consolidation.cycle import open_cycle
from memory.mcp.catalogue import TOOLS
from memory.mcp.interface import ToolRefused
from memory.models import Belief, Conversation, Episode, ModelCall, Redaction, Trigger, Turn
from tests import factories
from tests.api.caller import Caller, caller
from tests.consolidation.world import World
from tests.export.files import exported, imported, moved
from tests.faults.story import await_end
from tests.faults.waiting import wait_until
from tests.forgetting.forgetful import none_follows
from tests.forgetting.places import broker_contents, database_log, dump
from tests.model_server_acts import Asked
from tests.redaction.planted import PLANTED
from tests.workers.conftest import queues, worker, world

__all__ = ["queues", "worker", "world"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    # What Celery calls, and what its threads leave to the collector, is not ours to mend.
    pytest.mark.filterwarnings("ignore:Call to deprecated setex:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
app.loader.import_default_modules()

EVERYTHING = "\n".join(planted.text for planted in PLANTED)
REASON = "she said so, and the wifi password is Blue42Sky"
NAME = "with ghp_Zq8r2TzLdKewJalrXUtn9FEMI3K7MDENG4bP"
CARD = "of 5105 1051 0510 5100"
SECRETS = {line for planted in PLANTED for line in planted.secret.splitlines() if len(line) > 5 and "---" not in line}
SECRETS |= {"Blue42Sky", "ghp_Zq8r2Tz", "5105 1051 0510 5100", "Zq8r2TzLdKewJalrXUtn9"}
TOOL = {tool.name: tool for tool in TOOLS}


def found_in(told: str) -> list[str]:
    return sorted(secret for secret in SECRETS if secret in told)


def use_tool(key: str, name: str, **arguments: Any) -> str:
    try:
        return TOOL[name].call(key_text=key, arguments=arguments).model_dump_json()
    except ToolRefused as refusal:
        return str(refusal)


def everywhere(world: World) -> str:
    """Return all that is kept and exported."""
    return "".join([dump(), *broker_contents(), database_log(), exported(world.workspace).decode()])


@pytest.fixture
def prompts(world: World) -> list[str]:
    """Write down what the language model is sent."""
    script, heard = world.server.script, list[str]()

    def listen(asked: Asked) -> Any:
        heard.append(json.dumps(asked.body, ensure_ascii=False))
        return script(asked)

    world.server.script = listen
    return heard


def sent(world: World, prompts: list[str]) -> str:
    """Return all that models were sent."""
    return "".join([*prompts, *(text for call in world.server.log for text in call.texts)])


def alike(world: World, secret: str, number: int) -> str:
    """Return one of several texts that are alike once their secrets are out."""
    world.directions.place(f"The mill: its password is [redacted: password], day {number}.", {"mill": 0.97})
    return f"The mill: its password is {secret}, day {number}."


def written(records: list[logging.LogRecord]) -> str:
    """Return log lines as this project writes them."""
    [formatter] = {
        handler.formatter for handler in logging.getLogger().handlers
        if isinstance(handler.formatter, ProcessorFormatter)
    }  # fmt: skip
    return "\n".join(formatter.format(record) for record in records)


def run(world: World) -> None:
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=timezone.now(), trigger=Trigger.PERSON)
    await_end(cycle)
    wait_until(none_follows, what="the cycles to end that follow at once")


@pytest.fixture
def mine(world: World) -> Caller:
    return caller(workspace=world.workspace)


def stated(mine: Caller, **given: Any) -> str:
    """State a belief on an episode of its own; return its id."""
    episode = mine.post("/episodes", {"text": "The mill grinds on Mondays.", "session": given["statement"]}).json()
    evidence = [{"episode": episode["episodes"][0]["id"]}]
    answer = mine.post("/beliefs", {"evidence": evidence, "reason": REASON} | given)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def through_lines(mine: Caller, world: World, tmp_path: Path) -> list[Any]:
    line = {
        "text": EVERYTHING, "user": f"user {NAME}", "agent": f"agent {NAME}", "session": f"session {NAME}",
        "document": f"https://mia:Blue42Sky@example.org/{CARD}", "speaker": f"Mia {CARD}", "entities": [NAME, "mill"],
        "tags": [CARD], "idempotency_key": f"key {NAME}", "language": "en",
    }  # fmt: skip
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(json.dumps({"text": planted.text, "session": "file"}) for planted in PLANTED))
    call_command("import_episodes", str(file), workspace=world.workspace.name)
    many = [{"text": planted.text, "session": "many"} for planted in PLANTED]
    said = [{"session": f"talk {CARD}", "role": "user", "content": planted.text} for planted in PLANTED]
    turn = {
        "session": NAME,
        "role": "user",
        "content": EVERYTHING,
        "turn_id": f"1 {NAME}",
        "user": NAME,
        "speaker": CARD,
    }
    return [
        mine.post("/episodes", line), mine.post("/episodes", line), mine.post("/episodes", {"episodes": many}),
        mine.post("/turns", {"turns": said}), mine.post("/turns", turn), mine.post("/turns", {**turn, "role": NAME}),
        mine.post("/remember", {"text": EVERYTHING, "session": NAME}), mine.post("/remember", {"text": "", NAME: CARD}),
    ]  # fmt: skip


def through_beliefs(mine: Caller) -> list[Any]:
    wording = {"subject": f"Mia {CARD}", "predicate": NAME, "context": f"at home, PIN is 471147, {CARD}"}
    one = stated(mine, statement="Mia's password is hunter2 at the mill.", **wording)
    two, three = stated(mine, statement="The mill grinds rye."), stated(mine, statement="The mill grinds oats.")
    wrong = {"reason": REASON, "statement": "Mia's password is Sommer2024! at home.", "context": CARD}
    return [
        mine.post(f"/beliefs/{one}/pin", {"reason": REASON}),
        mine.post(f"/beliefs/{one}/correct", wrong),
        mine.post(f"/beliefs/{two}/correct", {"reason": REASON}),
        mine.post(
            "/beliefs/merge", {"beliefs": [two, three], "statement": f"The mill {CARD} grinds.", "reason": REASON}
        ),
        mine.request("DELETE", f"/memories/{stated(mine, statement='Bread is baked.')}?reason={REASON}"),
    ]


def through_questions(mine: Caller) -> list[Any]:
    asked = {"query": f"what did she say of {NAME}, {CARD}?", "session": f"session {CARD}"}
    return [
        mine.post("/recall", asked),
        mine.post("/recollections", asked),
        mine.get("/episodes", q=f"{CARD}"),
        mine.post("/episodes", {"text": "x", NAME.replace(" ", "_"): 1}),
        mine.post("/episodes", {"text": "x", "category": NAME}),
        mine.post("/recall", {"query": "x", f"mode {NAME}": CARD}),
        mine.post("/recall", {"query": "x", "project": NAME}),
        mine.post("/episodes", f'{{"text": "{NAME}'),
    ]


def through_tools(world: World) -> list[str]:
    _, key = factories.key(workspace=world.workspace)
    saved = json.loads(use_tool(key, "memory_save", text=EVERYTHING, session=f"tool {CARD}", tags=[NAME]))
    belief = Belief.objects.filter(status="active").first()
    assert belief
    told = {"id": belief.pk, "reason": REASON}
    return [
        use_tool(key, "memory_recall", query=f"{NAME} {CARD}", session=f"tool {CARD}"),
        use_tool(key, "memory_correct", statement=f"The mill is closed {CARD}.", **told),
        use_tool(key, "memory_pin", **told),
        use_tool(key, "memory_forget", id=saved["id"], reason=REASON),
        use_tool(key, "memory_recall", query="x", project=NAME),
    ]


@pytest.mark.usefixtures("worker")
def test_no_place_holds_a_secret_whichever_door_it_came_through(
    world: World, mine: Caller, prompts: list[str], tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """L2: database with history and lexemes, ledger, broker, logs, prompts, exports and answers, errors included."""
    answers = [*through_lines(mine, world, tmp_path), *through_beliefs(mine), *through_questions(mine)]
    told = through_tools(world)
    for number in range(3):
        mine.post("/episodes", {"text": alike(world, "Blue42Sky", number), "session": f"s{number}", "language": "en"})
    run(world)
    assert {answer.status_code for answer in answers} <= {200, 201, 202, 400, 404, 409, 422}
    assert [answer.status_code for answer in answers[:6]] == [201, 201, 201, 202, 202, 422]
    assert world.server.calls("synthesize")
    assert world.server.calls("embed")
    read = [mine.get(path) for path in ("/episodes", "/beliefs", "/consolidations", "/status")]
    said = "".join(answer.content.decode() for answer in [*answers, *read])
    assert found_in(everywhere(world)) == []
    assert found_in(sent(world, prompts)) == []
    logged = written(caplog.records)
    assert "request_finished" in logged
    assert found_in(said + "".join(told) + logged) == []
    assert Episode.objects.filter(text__contains="[redacted: private key]").exists()


@pytest.mark.usefixtures("worker")
def test_what_was_stored_before_is_never_sent(world: World, prompts: list[str]) -> None:
    """L2: rows of an older release leave neither in a prompt nor to an embedding server."""
    for number in range(3):
        text, session = alike(world, f"hunter{number}22", number), f"s{number}"
        factories.episode(workspace=world.workspace, text=text, session=session, language="en")
    run(world)
    told = sent(world, prompts)
    assert world.server.calls("embed")
    assert world.server.calls("synthesize")
    assert "[redacted: password]" in "".join(prompts)
    assert "hunter" not in told + "".join(ModelCall.objects.values_list("reply", flat=True))


def counted(world: World) -> dict[str, int]:
    return dict(Redaction.objects.for_workspace(world.workspace).values_list("kind", "count"))


def test_each_is_counted_by_kind(world: World, mine: Caller) -> None:
    """L2: in the workspace's status and in the metrics; the same line again tells nothing new."""
    line = {"text": "my password is hunter2, the card 4111 1111 1111 1111", "idempotency_key": "a"}
    first, again = mine.post("/episodes", line), mine.post("/episodes", line)
    other = mine.post("/episodes", {**line, "text": "my password is swordfish9, the card 4111 1111 1111 1111"})
    assert first.json()["episodes"][0]["id"] == again.json()["episodes"][0]["id"]
    assert other.json()["episodes"][0]["deduplicated"] is True  # nobody can find a secret out by its hash
    assert counted(world) == {"password": 3, "card number": 3}
    assert mine.get("/status").json()["redactions"] == {"card number": 3, "password": 3}
    scraped = Client().get("/metrics").content.decode()
    assert 'engram_redactions_total{kind="password"} 3.0' in scraped
    assert 'engram_redactions_total{kind="private key"} 0.0' in scraped


def test_a_place_s_own_patterns_hold_at_the_doors(world: World, mine: Caller, settings: Any) -> None:
    from memory.redaction.detectors import compile_patterns

    settings.ENGRAM_REDACTION_PATTERNS = compile_patterns({"badge number": r"BADGE-\d{6}"})
    made = mine.post("/episodes", {"text": "Let BADGE-123456 in."}).json()["episodes"][0]["id"]
    assert Episode.objects.get(pk=made).text == "Let [redacted: badge number] in."
    assert counted(world) == {"badge number": 1}


def test_anchored_patterns_hold_in_each_text(world: World, mine: Caller, settings: Any) -> None:
    """Redaction: a pattern that asks for the whole text finds it, however many fields a line has."""
    from memory.redaction.detectors import compile_patterns

    settings.ENGRAM_REDACTION_PATTERNS = compile_patterns({"badge number": r"^EMP\d{6}$"})
    made = mine.post("/episodes", {"text": "EMP123456", "tags": ["mill", "EMP654321"]}).json()["episodes"][0]["id"]
    kept = Episode.objects.get(pk=made)
    assert kept.text == "[redacted: badge number]"
    assert kept.tags == ["mill", "[redacted: badge number]"]


def test_a_text_that_is_also_a_name_has_its_secrets_taken_out(world: World, mine: Caller) -> None:
    """Redaction: what stays in a name, such as a random id, does not stay in a text that says the same."""
    key = "Zq8r2TzLdKe-wJalrXUtn9FEMI3K7MDENG4bPxRf"
    made = mine.post("/episodes", {"text": key, "session": key}).json()["episodes"][0]["id"]
    kept = Episode.objects.get(pk=made)
    assert (kept.text, kept.session) == ("[redacted: key]", key)


def test_two_users_stay_two(world: World, mine: Caller) -> None:
    """Redaction: telephone numbers are names as they are, and a turn's id refuses no other's."""
    users = ["+4915110003014", "+4915110004384"]
    turns = [
        {"session": "s", "role": "user", "content": "The mill grinds.", "user": user, "turn_id": user, "speaker": user}
        for user in users
    ]
    assert [mine.post("/turns", turn).status_code for turn in turns] == [202, 202]
    assert sorted(Conversation.objects.values_list("user", flat=True)) == users
    assert set(Turn.objects.values_list("turn_id", flat=True)) == set(users)


def test_a_name_with_a_secret_is_one_and_the_same_everywhere(
    world: World, mine: Caller, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Redaction: two users whose names hold keys stay two, for reads and for commands."""
    first, second = (f"ghp_{letter}q8r2TzLdKewJalrXUtn9FEMI3K7MDENG4bP" for letter in "AB")
    for user in (first, second):
        mine.post("/episodes", {"text": f"The mill grinds for {user[4]}.", "user": user})
    assert len(set(Episode.objects.values_list("user", flat=True))) == 2
    assert [one["text"] for one in mine.get("/episodes", user=first).json()["results"]] == ["The mill grinds for A."]
    call_command("export_workspace", "-", workspace=world.workspace.name, user=second)
    exported = capsysbinary.readouterr().out
    assert b"grinds for B" in exported
    assert b"grinds for A" not in exported
    call_command("erase", workspace=world.workspace.name, user=first)
    assert list(Episode.objects.values_list("text", flat=True)) == ["The mill grinds for B."]


def test_long_names_with_secrets_stay_apart(mine: Caller, world: World) -> None:
    """Redaction: where the marker outgrows the name, what follows is not cut off."""
    names = [f"password=ab12c {'x' * 184}{number}" for number in range(2)]
    for name in names:
        assert mine.post("/episodes", {"text": "The mill grinds.", "session": name}).status_code == 201
    kept = set(Episode.objects.values_list("session", flat=True))
    assert len(kept) == 2
    assert all(len(name) <= 200 and "ab12c" not in name for name in kept)


def test_a_reason_that_grows_still_fits(world: World, mine: Caller) -> None:
    """A marker may be longer than its secret; what has a limit is cut to it."""
    belief = stated(mine, statement="The mill grinds.")
    reason = ("x " * 90 + "password: ab12c")[-200:]
    assert mine.post(f"/beliefs/{belief}/pin", {"reason": reason}).status_code == 200
    assert mine.post(f"/beliefs/{belief}/archive", {"reason": reason + " or"}).status_code == 200
    kept = Belief.objects.get(pk=belief).status_reason
    assert "ab12c" not in kept
    assert len(kept) <= 200


def test_a_file_from_before_is_read_as_it_is_and_its_secrets_are_told(world: World) -> None:
    """Redaction, R14: hashes, vectors and the record of cycles hang on the words; a person decides what to erase."""
    factories.episode(workspace=world.workspace, text="my password is hunter2")
    file, fresh = moved(world.workspace)
    assert exported(fresh) == file
    again = factories.workspace()
    Episode.objects.all().delete()
    assert imported(file, workspace=again).with_secrets == 1


def test_a_person_at_the_command_line_is_no_other_door(world: World, mine: Caller) -> None:
    """Redaction: what is said there goes through the same services."""
    first, second = stated(mine, statement="The mill grinds rye."), stated(mine, statement="The mill bakes.")
    call_command("correct", first, reason=REASON, statement=f"The mill {CARD} grinds oats.")
    call_command("forget", second, reason=REASON)
    call_command("remember", EVERYTHING, workspace=world.workspace.name)
    assert found_in(everywhere(world)) == []


def test_random_ids_still_tell_things_apart(world: World, mine: Caller) -> None:
    """Redaction: sessions and cursors look like keys, and are none."""
    ids = [f"{letter}q8r2TzLdKe-wJalrXUtn9FEMI3K7MDENG4bPxRf" for letter in "ABC"]
    lines = [{"text": "The mill grinds.", "session": key, "idempotency_key": key} for key in ids]
    stored = mine.post("/episodes", {"episodes": lines}).json()["episodes"]
    assert len({line["id"] for line in stored}) == 3
    assert set(Episode.objects.values_list("session", flat=True)) == set(ids)
    page = mine.get("/episodes", limit=2).json()
    assert len(mine.get(page["next"]).json()["results"]) == 1
