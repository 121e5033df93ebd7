"""How long does a prompt of Claude Code wait for its recollections?

    python -m benchmarks.hook [--count 100000] [--prompts 60] [--json FILE]

The plugin's own script is started anew for each prompt, as the client does, with the event on its standard input,
beside the web process of the Procfile over so many memories. Its own time-out is as it ships. Then once more with
nobody at the address. The interpreter is this one, without whatever a version manager puts before it. Exits 1 when a
bar is missed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bars import Bar, report_bars
from benchmarks.memories import draw, questions
from benchmarks.recall_stage import Scope, clear, fill, settle, web_server
from benchmarks.stage import ROOT, free_port, set_up

SCRIPT = ROOT / "integrations" / "claude_code" / "hooks" / "recollect.py"
BAR_MS = 300.0
WARM = 20  # prompts first: the server's threads come to know their statements


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--prompts", type=int, default=60)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(ENGRAM_EMBEDDINGS="offline", ENGRAM_LLM="offline", ENGRAM_THROTTLE_RECALL_PER_MINUTE="0")
    return report_bars(bars=measure(count=asked.count, prompts=asked.prompts), path=asked.json)


def measure(*, count: int, prompts: int) -> list[Bar]:
    """Fire the hook for each prompt beside a server, and beside none."""
    clear()
    drawn = draw(count=count)
    [scope] = fill(name="hook", drawn=drawn)
    settle()
    asked = questions(drawn=drawn, count=prompts + WARM)
    with web_server() as (port, _):
        fired = [fire(prompt, scope=scope, port=port) for prompt in asked][WARM:]
    silent = [fire(prompt, scope=scope, port=free_port()) for prompt in asked[:10]]
    taken = sorted(milliseconds for milliseconds, _ in fired)
    answered = sum("additionalContext" in printed for _, printed in fired)
    return [
        Bar(name=f"hook, {count:,} memories, p50 in ms", value=statistics.median(taken), bar=BAR_MS),
        Bar(name=f"hook, {count:,} memories, p95 in ms", value=taken[int(0.95 * len(taken))], bar=BAR_MS),
        Bar(name="prompts that had recollections", value=answered / len(fired), bar=0.95, is_ceiling=False),
        Bar(name="server down: p50 in ms", value=statistics.median(ms for ms, _ in silent), bar=BAR_MS),
        Bar(name="server down: characters printed", value=sum(len(printed) for _, printed in silent), bar=0),
    ]


def fire(prompt: str, *, scope: Scope, port: int) -> tuple[float, str]:
    """Run the hook for a prompt; return its milliseconds and what it printed."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "bench", "prompt": prompt}
    environment = {
        "PATH": os.environ["PATH"], "HOME": tempfile.gettempdir(),
        "ENGRAM_URL": f"http://127.0.0.1:{port}", "ENGRAM_API_KEY": scope.key,
    }  # fmt: skip
    began = time.perf_counter()
    command = [sys.executable, "-E", "-S", str(SCRIPT)]
    done = subprocess.run(command, input=json.dumps(event), env=environment, text=True, capture_output=True)
    taken = (time.perf_counter() - began) * 1000
    assert done.returncode == 0, done.stderr
    return taken, done.stdout


if __name__ == "__main__":
    sys.exit(main())
