"""Run the Procfile under supervisord, which restarts what dies, and echo errors and deaths to the terminal.

A worker's parent does die now and then, for instance when its broker restarts several times in a row; a process runner
that restarts nothing would leave a stack that looks alive and does no work. `python -m workers.supervision LOGS` is
supervisord's event listener: it prints each error and each death behind a process's name.
"""

import configparser
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from types import MappingProxyType

import psutil
from django.conf import settings
from honcho.environ import parse_procfile
from supervisor import childutils

PID_FILE = "supervisord.pid"
LOG_FOLDER = "logs"
_LOG_BYTES = "8MB"
_OLD_LOGS = "2"


def write_configuration(*, procfile: Path, folder: Path, also: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write supervisord's configuration for a Procfile, and further processes, into a folder, which gets the logs;
    return its path.
    """
    (folder / LOG_FOLDER).mkdir(exist_ok=True)
    processes = {**also, **parse_procfile(procfile.read_text()).processes}
    target = folder / "supervisord.conf"
    target.write_text(render(processes=processes, folder=folder, root=procfile.parent))
    return target


def render(*, processes: Mapping[str, str], folder: Path, root: Path) -> str:
    """Render the configuration: what each process says goes to a log of its name, and what matters to the terminal."""
    logs = folder / LOG_FOLDER
    config = configparser.RawConfigParser()
    config["supervisord"] = {
        "nodaemon": "true",
        "logfile": "/dev/null",
        "logfile_maxbytes": "0",
        "pidfile": str(folder / PID_FILE),
        "directory": _escape(str(root)),
        "childlogdir": _escape(str(folder)),
        "silent": "true",
    }
    for name, command in processes.items():
        config[f"program:{name}"] = _program(command, log=logs / f"{name}.log")
    config["eventlistener:lines"] = {
        "command": _escape(shlex.join([sys.executable, "-m", "workers.supervision", str(logs)])),
        "events": "PROCESS_LOG,PROCESS_STATE",
        "buffer_size": "1000",
        "stderr_logfile": "/dev/stderr",
        "stderr_logfile_maxbytes": "0",
    }
    text = StringIO()
    config.write(text)
    return text.getvalue()


def server_keeper(*, database: bool, broker: bool) -> dict[str, str]:
    """Name the process that looks after the embedded servers, none where both are somebody else's."""
    kept = [flag for flag, is_ours in (("--database", database), ("--broker", broker)) if is_ours]
    return {"servers": f".venv/bin/python -m beliefsite.embedded {' '.join(kept)}"} if kept else {}


def _program(command: str, *, log: Path) -> dict[str, str]:
    return {
        "command": "/bin/sh -c " + _escape(_quote(f"exec {command}")),
        "autorestart": "true",
        "startretries": "1000000",  # a port or database that is away for a while comes back
        "startsecs": "1",
        "stopsignal": "TERM",
        "stopwaitsecs": str(settings.CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT),
        "stopasgroup": "false",  # a worker's parent lets its children finish
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": _escape(str(log)),
        "stdout_logfile_maxbytes": _LOG_BYTES,
        "stdout_logfile_backups": _OLD_LOGS,
        "stdout_events_enabled": "true",
    }


def running_stack(*, folder: Path) -> int | None:
    """Return the process id of the supervisord that runs on a folder's data, None if there is none."""
    noted = folder / PID_FILE
    if not noted.exists() or not psutil.pid_exists(int(noted.read_text())):
        return None
    process = psutil.Process(int(noted.read_text()))
    return process.pid if "supervisord" in " ".join(process.cmdline()) else None


def _quote(command: str) -> str:
    if "'" in command:
        raise ValueError("A command of the Procfile may not hold a single quote.")
    return f"'{command}'"


def _escape(text: str) -> str:
    return text.replace("%", "%%")


def start_supervisor(*, configuration: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start supervisord under the given environment, in a session of its own: a closing terminal's SIGHUP means
    "reload" to it, and it is for the caller to end it.
    """
    command = [str(Path(sys.executable).parent / "supervisord"), "-n", "-c", str(configuration)]
    return subprocess.Popen(command, env=dict(environment), start_new_session=True)  # noqa: S603  (our own interpreter's supervisord)


_DEATHS = {"PROCESS_STATE_EXITED", "PROCESS_STATE_BACKOFF", "PROCESS_STATE_FATAL"}
_LEVELS = {"error", "critical"}


def echo_events() -> None:
    """Answer events for ever; standard output belongs to the protocol, so lines go to standard error."""
    logs = Path(sys.argv[1])
    while True:
        headers, payload = childutils.listener.wait(sys.stdin, sys.stdout)
        try:
            _echo_event(headers["eventname"], payload, logs)
        finally:
            childutils.listener.ok(sys.stdout)


def _echo_event(event: str, payload: str, logs: Path) -> None:
    described, _, text = payload.partition("\n")
    name = childutils.get_headers(described)["processname"]
    for line in news_of(event=event, text=text):
        sys.stderr.write(f"{name:>7} | {line}; see {logs / name}.log\n")
    sys.stderr.flush()


def news_of(*, event: str, text: str) -> list[str]:
    """Return what an event says that a person at the terminal should know."""
    if event in _DEATHS:
        return ["it ended and is started again"]
    if event.startswith("PROCESS_LOG"):
        return [f"error: {name}" for name in map(_error_event, text.splitlines()) if name]
    return []


def _error_event(line: str) -> str:
    """Return the event that a structured line reports, if it is an error."""
    try:
        said = json.loads(line)
    except ValueError:
        return ""
    is_error = isinstance(said, dict) and said.get("level") in _LEVELS
    return str(said.get("event", "unnamed")).partition("\n")[0] if is_error else ""


if __name__ == "__main__":
    echo_events()
