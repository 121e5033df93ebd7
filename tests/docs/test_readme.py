"""Every command of the README and of the pages works, as it stands there, on the stack that `make up` runs."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from mcp import Client

from tests.docs.pages import OPERATIONS, PAGES, README, ROOT, blocks, prose
from tests.faults.stack import free_ports
from tests.mcp.clients import over_command, over_http, text_of

_UP_SECONDS = 180.0
_DOWN_SECONDS = 60.0
_SCRIPT_SECONDS = 300.0
_BETWEEN = "-- next block --"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack of its own: what its processes need to know, and where its web process answers."""

    environment: Mapping[str, str]
    address: str
    tools: str  # the address of the tools for agents
    log: Path


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Run `manage.py up` on a fresh folder and free ports until it is ready for work, and end it afterwards."""
    folder = tmp_path_factory.mktemp("up")
    web, flower, mcp = free_ports(3)
    own = {"ENGRAM_DATA_DIR": str(folder / "data"), "PORT": web, "FLOWER_PORT": flower, "MCP_PORT": mcp}
    # Empty rather than absent: a .env of the person who runs the suite must not lead these commands elsewhere.
    names = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ENGRAM_EMBEDDINGS")
    unset = dict.fromkeys(names, "")
    environment = {**os.environ, **unset, **own, "ENGRAM_WORKERS": "2", "PYTHONWARNINGS": "ignore"}
    running = Stack(
        environment=environment, address=f"127.0.0.1:{web}", tools=f"127.0.0.1:{mcp}", log=folder / "up.log"
    )
    with running.log.open("wb") as log:
        command = [sys.executable, "manage.py", "up"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            _await_ready(running, process)
            yield running
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=_DOWN_SECONDS)


def _await_ready(stack: Stack, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _UP_SECONDS
    while "Engram is ready." not in stack.log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"`manage.py up` did not become ready:\n{stack.log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.5)


@pytest.fixture(scope="module")
def printed(stack: Stack) -> list[str]:
    """Run all shell blocks of the README in one shell, as a reader would; return what each printed."""
    script = f"\necho '{_BETWEEN}'\n".join(blocks(README, "sh"))
    return _run(script, stack=stack).split(f"{_BETWEEN}\n")


def _run(script: str, *, stack: Stack, **environment: str) -> str:
    """Run a script in the checkout, on this stack's addresses and data; return what it printed."""
    if not shutil.which("curl") or not shutil.which("bash"):
        pytest.skip("the commands of the pages need bash and curl")
    script = script.replace("127.0.0.1:8000", stack.address).replace("127.0.0.1:8001", stack.tools)
    script = script.replace(".venv/bin/python", shlex.quote(sys.executable))
    script = script.replace("$PWD/.data", stack.environment["ENGRAM_DATA_DIR"])
    # A refused request is a failed command here; a reader would see the problem that it prints.
    strict = 'set -euo pipefail\ncurl() { command curl --fail-with-body "$@"; }\n'
    done = subprocess.run(
        ["bash", "-c", strict + script],
        cwd=ROOT,
        env={**stack.environment, **environment},
        capture_output=True,
        text=True,
        timeout=_SCRIPT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _documents(text: str) -> list[dict[str, object]]:
    """Read the JSON documents among what commands printed."""
    decoder, found = json.JSONDecoder(), []
    while (start := text.find("{")) >= 0:
        document, end = decoder.raw_decode(text[start:])
        found.append(document)
        text = text[start + end :]
    return found


def _list(rows: object) -> list[dict[str, object]]:
    assert isinstance(rows, list)
    return rows


def _only_belief(text: str) -> dict[str, object]:
    beliefs = _documents(text)[-1]["results"]
    assert isinstance(beliefs, list)
    assert len(beliefs) == 1
    return dict(beliefs[0])


@pytest.mark.slow
def test_the_first_consolidation_founds_the_belief_that_the_readme_names(printed: list[str]) -> None:
    belief = _only_belief(printed[2])

    assert "finished: 3 episodes, 1 cluster, 1 belief created" in printed[2]
    assert (belief["statement"], belief["alpha"], belief["beta"]) == ("Mara prefers tabs over spaces.", 4.0, 1.0)


@pytest.mark.slow
def test_one_contradiction_lowers_it_as_the_readme_says(printed: list[str]) -> None:
    """B4, B8.3: a single contradicting episode, judged in the next cycle."""
    belief = _only_belief(printed[3])

    assert (belief["alpha"], belief["beta"]) == (4.0, 2.0)


@pytest.mark.slow
def test_the_first_recall_answers_with_both_kinds(printed: list[str]) -> None:
    results = _documents(printed[4])[-1]["results"]

    assert isinstance(results, list)
    assert results[0]["text"] == "Mara prefers tabs over spaces."
    assert {result["type"] for result in results} == {"belief", "episode"}


@pytest.mark.slow
def test_stored_episodes_answer_as_the_readme_shows(printed: list[str]) -> None:
    [sample] = _sample("episodes")
    answers = _list(_documents(printed[1])[-1]["episodes"])

    assert _told(answers[0]) == _told(sample)


@pytest.mark.slow
def test_a_recall_answers_as_the_readme_shows(printed: list[str]) -> None:
    """Fields, texts and numbers; ids and times differ on every run."""
    answers = _list(_documents(printed[4])[-1]["results"])

    for sample in _sample("results"):
        assert _told(sample) in [_told(answer) for answer in answers]


def _sample(name: str) -> list[dict[str, object]]:
    """Return the rows of the one answer that the README shows under a name."""
    [shown] = [block for block in blocks(README, "json") if block.startswith(f'{{"{name}"')]
    return _list(json.loads(shown.replace(", …", ""))[name])


def _told(row: dict[str, object]) -> dict[str, object]:
    """Return a row as it is told again: numbers as people read them, and only that there is an id and a time."""
    shown = {name: round(value, 2) if isinstance(value, float) else value for name, value in row.items()}
    return shown | dict.fromkeys(shown.keys() & {"id", "occurred_at"}, "…")


@pytest.mark.slow
def test_status_readiness_and_beliefs_are_well(printed: list[str]) -> None:
    status, ready = _documents(printed[5])

    assert status["beliefs"] == {"active": 1}
    assert ready == {"status": "ok"}
    assert "1 belief of 1 workspace checked, 0 differences" in printed[5]


@pytest.mark.slow
def test_a_memory_is_shown_with_all_that_is_known_of_it(printed: list[str]) -> None:
    """B18."""
    [card] = _documents(printed[6])

    assert card["statement"] == "Mara prefers tabs over spaces."
    assert len(_list(card["evidence"])) == 4


@pytest.mark.slow
def test_a_correction_takes_the_place_of_the_belief(printed: list[str]) -> None:
    """R7, B4: six to one."""
    [answer] = _documents(printed[7])
    [made], [changed] = _list(answer["made"]), _list(answer["changed"])

    assert (made["statement"], made["alpha"], made["beta"]) == ("Mara prefers spaces over tabs.", 6.0, 1.0)
    assert (changed["statement"], changed["status"]) == ("Mara prefers tabs over spaces.", "revised")


@pytest.mark.slow
def test_what_is_forgotten_leaves_the_evidence(printed: list[str]) -> None:
    """B19."""
    [gone] = _documents(printed[8])

    assert (gone["status"], dict(gone["beliefs"])["recomputed"]) == ("forgotten", 1)  # type: ignore[call-overload]  # JSON


@pytest.mark.slow
def test_an_agent_recalls_over_http(printed: list[str]) -> None:
    """B16: what the tool tells a model."""
    [answer] = _documents(printed[9])
    told = dict(answer["result"])  # type: ignore[call-overload]  # JSON

    assert "Mara prefers spaces over tabs. — ID: bl_" in told["content"][0]["text"].splitlines()[0]


@pytest.mark.slow
@pytest.mark.usefixtures("printed")  # the README counts its episodes: these two come after them
def test_an_agent_saves_and_recalls_by_the_configurations_that_the_readme_shows(stack: Stack) -> None:
    """Both transports, each as it stands there, with this checkout and a key filled in."""
    key = _run(".venv/bin/python manage.py create_api_key default --name agent | tail -n 1", stack=stack).strip()
    filled = [block.replace("engram_…", key).replace("127.0.0.1:8001", stack.tools) for block in blocks(README, "json")]
    at, by_command = [json.loads(one)["mcpServers"]["engram"] for one in filled if "mcpServers" in one]
    command = [sys.executable, *(part.replace("/path/to/engram", str(ROOT)) for part in by_command["args"])]

    async def live(client: Client, session: str) -> str:
        said = {"text": f"The {session} agent waters the ferns.", "session": session}
        await client.call_tool("memory_save", said)
        return text_of(await client.call_tool("memory_recall", {"query": said["text"], "limit": 1}))

    async def both() -> list[str]:
        async with over_http(at["url"], headers=at["headers"]) as client:
            told = [await live(client, "distant")]
        async with over_command(command, environment={**stack.environment, **by_command["env"]}) as client:
            return [*told, await live(client, "local")]

    for line, session in zip(asyncio.run(both()), ("distant", "local"), strict=True):
        assert f"The {session} agent waters the ferns. — ID: ep_" in line


@pytest.mark.slow
def test_the_sample_conversations_are_rehearsed_and_imported(printed: list[str]) -> None:
    rehearsed, imported, next_steps = printed[10].splitlines()
    assert rehearsed == "10 turns of 2 conversations would be stored (4 assistant, 6 user), 0 known already."
    assert imported == "10 turns of 2 conversations stored (4 assistant, 6 user), 0 known already."
    assert next_steps.startswith("Workers read them")


@pytest.mark.slow
def test_the_sample_is_imported(printed: list[str]) -> None:
    assert re.search(r"\d+ episodes stored, \d+ known already\.", printed[11])


@pytest.mark.slow
def test_cycles_run_until_nothing_waits(printed: list[str]) -> None:
    """B7: the last cycle had nothing to judge; what workers read meanwhile may still have come to it.

    What was imported is believed then, whether the command's cycles made it so or one that the schedule opened before.
    """
    *_, last = [line for line in printed[12].splitlines() if line.startswith("cy_")]
    [believed] = re.findall(r"^(\d+) beliefs?,", printed[13], re.MULTILINE)

    assert int(believed) >= 10
    assert re.search(r"^cy_\w+ finished: (nothing to do|\d+ episodes?)$", last)


@pytest.mark.slow
def test_all_beliefs_are_looked_through(printed: list[str]) -> None:
    """R7, R7d, R11: and none is changed by it."""
    assert re.search(r"^\d+ beliefs?, \d+ pairs? alike, 0 faded\.$", printed[13], re.MULTILINE)
    assert re.search(r"^\d+ pairs? to look at\.$", printed[13], re.MULTILINE)
    assert printed[13].endswith("0 beliefs would be pruned.\n")


@pytest.mark.slow
def test_claude_code_is_given_recollections_and_a_line_at_the_start(printed: list[str]) -> None:
    """B16: by the plugin's own scripts, run as the README shows."""
    recollections, start = _documents(printed[14])
    added = dict(recollections["hookSpecificOutput"])  # type: ignore[call-overload]  # JSON

    assert added["hookEventName"] == "UserPromptSubmit"
    assert re.search(
        r"^\[Belief \(0\.86\): Mara prefers spaces over tabs\.\]$", added["additionalContext"], re.MULTILINE
    )
    assert str(start["systemMessage"]).startswith("Engram remembers: ")


@pytest.mark.slow
def test_the_first_start_prints_what_the_readme_promises(stack: Stack) -> None:
    log = stack.log.read_text(errors="replace")

    assert re.search(r"  sign in    user admin, password \S+  \(shown this once\)\n", log)
    assert re.search(r"  API key    engram_\S+  \(workspace default, shown this once\)\n", log)


@pytest.mark.slow
def test_a_second_start_names_the_command_that_ends_the_first(stack: Stack) -> None:
    """After a SIGKILL of `manage.py up` its supervisor lives on, and no terminal shows it."""
    command = [sys.executable, "manage.py", "up"]
    done = subprocess.run(command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False)
    supervisor = (Path(stack.environment["ENGRAM_DATA_DIR"]) / "supervisord.pid").read_text().strip()

    assert done.returncode == 1
    assert done.stderr.endswith(f"This ends all of it: kill {supervisor}\n")


@pytest.mark.slow
def test_a_backup_is_restored_into_a_new_database(stack: Stack, tmp_path: Path) -> None:
    """docs/operations/backups.md: written while the stack runs, restored where there is nothing yet."""
    write, restore = _block("manage.py backup"), _block("manage.py restore")
    _run(write.replace("backups/", f"{tmp_path}/backups/"), stack=stack)
    [file] = (tmp_path / "backups").iterdir()

    again = restore.replace("backups/engram-20260301-120000.backup", f"{file} --settings-file {tmp_path}/env")
    again += ".venv/bin/python manage.py migrate --check\n"
    again += ".venv/bin/python manage.py create_project default restored\n"
    printed = _run(again, stack=stack, ENGRAM_DATA_DIR=str(tmp_path / "new"))

    assert "beliefs equal their evidence." in printed
    assert "Created project restored in workspace default." in printed


@pytest.mark.slow
@pytest.mark.usefixtures("printed")  # the README counts its workspaces: this one comes after them
def test_a_workspace_moves_to_another_installation(stack: Stack, tmp_path: Path) -> None:
    """docs/operations/backups.md, Move one workspace: written by the running stack, read where there is nothing yet."""
    write, *read = _block("manage.py export_workspace").replace("mill.jsonl", f"{tmp_path}/mill.jsonl").splitlines()
    _run(f".venv/bin/python manage.py create_workspace mill\n{write}", stack=stack)

    printed = _run("\n".join(read), stack=stack, ENGRAM_DATA_DIR=str(tmp_path / "other"))

    assert " episodes, " in printed


@pytest.mark.slow
@pytest.mark.usefixtures("printed")  # the README counts its workspaces: this one comes after them
def test_a_key_opens_its_workspace_and_its_projects_alone(stack: Stack) -> None:
    """docs/operations/keys.md: each command, and what its key may then."""
    lines = _run(_block("manage.py create_workspace bakery --owner"), stack=stack).splitlines()
    agent, limited = [line for line in lines if line.startswith("engram_")]

    assert lines[0] == "Created workspace bakery, owned by admin."
    statuses = [_store(stack, *told) for told in ((agent, "cellar"), (limited, "ovens"), (limited, "attic"))]
    assert statuses == [201, 201, 403]


def _store(stack: Stack, key: str, project: str) -> int:
    address, headers = f"http://{stack.address}/api/v1/episodes", {"Authorization": f"Bearer {key}"}
    line = {"text": "The big oven is lit at three.", "project": project}
    return httpx.post(address, json=line, headers=headers, trust_env=False).status_code


@pytest.mark.slow
def test_a_workspace_that_has_the_model_already_is_not_embedded_anew(stack: Stack) -> None:
    """docs/operations/embeddings.md: the command is safe to repeat."""
    printed = _run(_block("manage.py reembed"), stack=stack)

    assert "are of this model already." in printed


@pytest.mark.slow
@pytest.mark.usefixtures("printed")  # the README reads these turns in first
def test_settings_costs_and_dead_letters_are_looked_at(stack: Stack) -> None:
    """docs/operations: install.md, models.md and troubleshooting.md; none of it changes anything."""
    assert "no issues" in _run(_block("manage.py check --database"), stack=stack)
    assert "Calls: about" in _run(_block("manage.py consolidate --workspace default --dry-run"), stack=stack)
    assert _run(_block("manage.py dead_letters"), stack=stack) == "0 dead letters, 0 to be tried again\n" * 3


@pytest.mark.slow
@pytest.mark.usefixtures("printed")  # the README counts its workspaces: this one comes after them
def test_what_came_in_is_undone_forgotten_and_erased(stack: Stack) -> None:
    """docs/operations: importing.md, cycles.md and erasing.md, in a workspace of their own."""
    made = _run(
        ".venv/bin/python manage.py create_workspace barn\n"
        ".venv/bin/python manage.py remember 'Mara prefers tabs over spaces.' --workspace barn --user mara --json\n"
        ".venv/bin/python manage.py consolidate --workspace barn --wait\n",
        stack=stack,
    )
    [episode], [cycle] = set(re.findall(r"ep_\w{12}", made)), set(re.findall(r"cy_\w{12}", made))

    def run(block: str) -> str:
        block = block.replace("--workspace default", "--workspace barn")
        return _run(block.replace("ep_0123456789ab", episode).replace("cy_0123456789ab", cycle), stack=stack)

    rehearsed, imported, _ = run(_block("manage.py import_conversations")).splitlines()
    assert rehearsed.replace("would be stored", "stored") == imported
    assert run(_block("undo_cycle cy_0123456789ab --reason")).startswith(f"{cycle} undone: ")
    assert "released." in run(_block("undo_cycle cy_0123456789ab --release"))
    assert "0 differences\n" in run(_block("rebuild_beliefs --dry-run"))
    assert run(_block("rebuild_beliefs --workspace")).endswith("all as recorded\n")
    assert run(_block("manage.py forget")).startswith(f"{episode} forgotten")
    assert "written anew." in run(_block("manage.py erase"))


def _block(command: str) -> str:
    """Return the one shell block of docs/operations with this command."""
    [found] = [block for page in OPERATIONS for block in blocks(page, "sh") if command in block]
    return found


def test_every_shell_block_is_run_by_a_test() -> None:
    """Those of the README all are; those of other pages by name, above."""
    source = Path(__file__).read_text()
    named = re.findall(r'_block\("([^"]+)"\)', source)

    for page in PAGES:
        unrun = [body for body in blocks(page, "sh") if page != README and not any(name in body for name in named)]
        assert not unrun, page.name


def test_the_targets_that_pages_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()

    for target in {name for page in PAGES for name in re.findall(r"`make ([a-z]+)`", prose(page))}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_no_shell_block_is_left_out() -> None:
    """A block of a kind that is not run must not look like commands."""
    kinds = ("", "text", "json", "ini", "toml", "yaml", "bash", "console", "shell")
    unrun = [line for page in PAGES for body in blocks(page, *kinds) for line in body.splitlines()]

    assert not [line for line in unrun if re.match(r"\s*(\$ |curl |make |api |\.venv/|python)", line)]
