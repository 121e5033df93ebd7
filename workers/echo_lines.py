"""supervisord's event listener: print what processes say and what becomes of them, each line behind a name."""

import sys

from supervisor import childutils


def main() -> None:
    """Answer events for ever; standard output belongs to the protocol, so lines go to standard error."""
    while True:
        headers, payload = childutils.listener.wait(sys.stdin, sys.stdout)
        try:
            _echo(headers["eventname"], payload)
        finally:
            childutils.listener.ok(sys.stdout)


def _echo(event: str, payload: str) -> None:
    described, _, text = payload.partition("\n")
    name = childutils.get_headers(described)["processname"]
    if event.startswith("PROCESS_LOG"):
        lines = text.splitlines()
    elif event in {"PROCESS_STATE_EXITED", "PROCESS_STATE_BACKOFF", "PROCESS_STATE_FATAL"}:
        lines = [f"({event.removeprefix('PROCESS_STATE_').lower()}; it will be started again)"]
    else:
        return
    for line in lines:
        sys.stderr.write(f"{name:>7} | {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
