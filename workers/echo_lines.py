"""supervisord's event listener: print errors and deaths of processes, each behind a name; the rest is in their logs."""

import json
import sys
from pathlib import Path

from supervisor import childutils

_DEATHS = {"PROCESS_STATE_EXITED", "PROCESS_STATE_BACKOFF", "PROCESS_STATE_FATAL"}
_LEVELS = {"error", "critical"}


def main() -> None:
    """Answer events for ever; standard output belongs to the protocol, so lines go to standard error."""
    logs = Path(sys.argv[1])
    while True:
        headers, payload = childutils.listener.wait(sys.stdin, sys.stdout)
        try:
            _echo(headers["eventname"], payload, logs)
        finally:
            childutils.listener.ok(sys.stdout)


def _echo(event: str, payload: str, logs: Path) -> None:
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
        return [f"error: {name}" for name in map(_error_in, text.splitlines()) if name]
    return []


def _error_in(line: str) -> str:
    """Return the event that a structured line reports, if it is an error."""
    try:
        said = json.loads(line)
    except ValueError:
        return ""
    is_error = isinstance(said, dict) and said.get("level") in _LEVELS
    return str(said.get("event", "unnamed")).partition("\n")[0] if is_error else ""


if __name__ == "__main__":
    main()
