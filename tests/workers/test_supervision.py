"""The supervisor's configuration, and the stack that it keeps alive."""

import configparser
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.conf import settings

from tests.faults.stack import START_SECONDS, Stack, running_stack
from tests.faults.waiting import wait_until
from tests.faults.workforce import runs
from workers.supervision import news_of, render, server_keeper, write_configuration


def _rendered(tmp_path: Path, **processes: str) -> configparser.RawConfigParser:
    read = configparser.RawConfigParser()
    read.read_string(render(processes=processes, folder=tmp_path, root=tmp_path))
    return read


def test_a_command_runs_in_a_shell_that_it_replaces(tmp_path: Path) -> None:
    """Else a signal would end the shell and orphan the process."""
    program = _rendered(tmp_path, web="serve --port ${PORT:-8000}")["program:web"]
    assert program["command"] == "/bin/sh -c 'exec serve --port ${PORT:-8000}'"


def test_what_dies_is_started_again_and_what_ends_takes_its_group_along(tmp_path: Path) -> None:
    program = _rendered(tmp_path, worker="work")["program:worker"]
    assert (program["autorestart"], program["killasgroup"], program["stopsignal"]) == ("true", "true", "TERM")


def test_a_percent_sign_reaches_the_command(tmp_path: Path) -> None:
    """supervisord takes a single one for a variable of its own."""
    program = _rendered(tmp_path, web="serve --format %h")["program:web"]
    assert program["command"] == "/bin/sh -c 'exec serve --format %%h'"


def test_a_single_quote_is_refused_and_not_misread(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="single quote"):
        render(processes={"web": "echo 'hello'"}, folder=tmp_path, root=tmp_path)


def test_the_procfile_names_the_whole_stack(tmp_path: Path) -> None:
    written = configparser.RawConfigParser()
    written.read(write_configuration(procfile=settings.BASE_DIR / "Procfile", folder=tmp_path))
    programs = {name.removeprefix("program:") for name in written.sections() if name.startswith("program:")}
    assert programs == {"web", "worker", "beat", "flower", "mcp"}


def test_each_process_writes_a_log_of_its_name(tmp_path: Path) -> None:
    program = _rendered(tmp_path, worker="work")["program:worker"]
    assert program["stdout_logfile"] == str(tmp_path / "logs" / "worker.log")
    assert program["redirect_stderr"] == "true"


@pytest.mark.parametrize(
    ("event", "text", "news"),
    [
        ("PROCESS_LOG_STDOUT", '{"event": "step_failed", "level": "error"}\n', ["error: step_failed"]),
        ("PROCESS_LOG_STDOUT", '{"event": "cycle_closed", "level": "info"}\nplain words\n5\n', []),
        ("PROCESS_STATE_EXITED", "", ["it ended and is started again"]),
        ("PROCESS_STATE_STOPPED", "", []),
    ],
)
def test_the_terminal_hears_of_errors_and_deaths_alone(event: str, text: str, news: list[str]) -> None:
    assert news_of(event=event, text=text) == news


def test_the_listener_is_started_from_a_folder_whose_name_has_a_space(tmp_path: Path) -> None:
    """supervisord splits a command as a shell would."""
    listener = _rendered(tmp_path / "my memories", worker="work")["eventlistener:lines"]
    logs = str(tmp_path / "my memories" / "logs")
    assert shlex.split(listener["command"]) == [sys.executable, "-m", "workers.supervision", logs]


def test_embedded_servers_have_a_process_that_looks_after_them(tmp_path: Path) -> None:
    """Nobody is a server's parent, so none would be started again by itself."""
    kept = server_keeper(database=True, broker=True)
    written = configparser.RawConfigParser()
    written.read(write_configuration(procfile=settings.BASE_DIR / "Procfile", folder=tmp_path, also=kept))
    assert written["program:servers"]["command"].endswith("-m beliefsite.embedded --database --broker'")


def test_servers_of_somebody_else_are_left_to_them() -> None:
    assert server_keeper(database=False, broker=False) == {}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """Run `manage.py up` on free ports and data of its own, and leave nothing of it behind."""
    with running_stack(tmp_path) as running:
        yield running


@pytest.mark.slow
@pytest.mark.faults
def test_a_dead_worker_comes_back_and_a_term_ends_everything(stack: Stack) -> None:
    """A killed parent of the workers is replaced without orphans; SIGTERM leaves no process and no server behind."""
    wait_until(lambda: len(_workers(stack)) == 1, what="a worker", seconds=START_SECONDS)
    wait_until(lambda: bool(_workers(stack)[0].children()), what="its child", seconds=START_SECONDS)
    first = _workers(stack)[0]
    orphans = first.children(recursive=True)

    first.kill()

    wait_until(lambda: _workers(stack) not in ([], [first]), what="another worker", seconds=START_SECONDS)
    wait_until(lambda: not any(runs(orphan) for orphan in orphans), what="the first one's children to end")

    everything = [*stack.family(), *(servers := stack.servers())]
    assert len(servers) >= 2  # a database and a broker
    stack.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not any(runs(process) for process in everything), what="everything to end")


def _workers(stack: Stack) -> list[psutil.Process]:
    """List the parents of workers: Celery processes whose own parent is none."""
    found = []
    for process in stack.family():
        try:
            parent = process.parent()
            if _is_worker(process) and parent is not None and not _is_worker(parent):
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def _is_worker(process: psutil.Process) -> bool:
    words = process.cmdline()
    return "worker" in words and any(word.endswith("celery") for word in words)
