"""Processes that use the embedded servers, to be ended, killed and raced."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[3]

# Says which servers it uses, then lives until its input is closed.
SCRIPT = """
import json, sys
from pathlib import Path
from beliefsite.embedded import describe, ensure
{before}
ensure(data_dir=Path(sys.argv[1]), database={database}, broker={broker})
{after}
print(json.dumps({{facts.name: facts.pid for facts in describe()}}), flush=True)
sys.stdin.read()
"""


class UserProcess:
    """A process of its own that uses the servers of a data folder until it is ended."""

    def __init__(
        self,
        data_dir: Path,
        *,
        database: bool = False,
        broker: bool = False,
        before: str = "",
        after: str = "",
        prefix: Sequence[str] = (),
    ) -> None:
        script = SCRIPT.format(database=database, broker=broker, before=before, after=after)
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", script, str(data_dir)],
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def pids(self) -> dict[str, int]:
        """Wait until the servers run; return their process ids by name."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process ended before its servers ran"
        pids: dict[str, int] = json.loads(line)
        return pids

    def end(self) -> int:
        """Let the process end as a program does; return its exit status."""
        self.process.communicate(timeout=60)
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.returncode is None:
            self.kill()
