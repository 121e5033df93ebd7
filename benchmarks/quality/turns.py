"""What do whole conversations come to, said turn by turn through the API, read by the offline reader?

    python -m benchmarks.quality.turns FILE… [--json FILE]

Each file holds one episode line per turn, as `import_episodes` takes them; the name that a text opens with is its
speaker. A real server takes the turns one by one, a real worker reads them. Then all are sent once more. Exits 1 when
that adds anything, or when a turn was not read.
"""

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.recall_stage import Poster, clear, web_server
from benchmarks.stage import prefork_worker, set_up, wait_until

if TYPE_CHECKING:
    from memory.models import Workspace

Json = dict[str, Any]
AGE_MINUTES = "0.05"  # so that what is left at the end of a conversation is read soon
READ_SECONDS = 900.0


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(
        ENGRAM_LLM="offline", ENGRAM_EMBEDDINGS="offline",
        ENGRAM_THROTTLE_WRITE_PER_MINUTE="0", ENGRAM_TURNS_AGE_MINUTES=AGE_MINUTES,
    )  # fmt: skip
    turns = [turn for file in asked.files for turn in read_turns(file)]
    figures = measure(turns)
    for name, value in figures.items():
        print(f"{name:<42} {json.dumps(value, ensure_ascii=False)}")
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0 if figures["added by a replay"] == 0 and figures["turns not read"] == 0 else 1


def read_turns(file: Path) -> Iterator[Json]:
    """Read the lines of a file as turns of a person each, with a speaker where a text opens with a name."""
    for raw in file.read_text(encoding="utf-8").splitlines():
        line = json.loads(raw)
        speaker, colon, said = line["text"].partition(": ")
        turn = {"speaker": speaker, "content": said} if colon and len(speaker) <= 40 else {"content": line["text"]}
        yield turn | {
            "session": line["session"],
            "role": "user",
            "turn_id": line["idempotency_key"],
            "occurred_at": line["occurred_at"],
        }


def measure(turns: Sequence[Json]) -> Json:
    """Send the turns, have them read, send them again, and return what came of it."""
    from memory.models import Permission, Turn
    from tests import factories

    clear()
    workspace = factories.workspace(name="conversations")
    _, key = factories.key(Permission.OWNER, workspace=workspace)
    with web_server() as (port, _), prefork_worker(slots=2):
        poster = Poster(port=port, key=key)
        began = time.monotonic()
        signals, taken = send(turns, poster)
        sent = time.monotonic() - began
        wait_until(lambda: not wake_and_count(workspace), what="the turns to be read", seconds=READ_SECONDS, every=1.0)
        told = time.monotonic() - began
        before = stored(workspace)
        send(turns, poster)
        wait_until(lambda: not wake_and_count(workspace), what="the replay", seconds=READ_SECONDS, every=1.0)
        after = stored(workspace)
    return {
        "turns": len(turns),
        "turns a second, one by one": round(len(turns) / sent, 1),
        "p50 in ms of taking one in": round(statistics.median(taken) * 1000, 1),
        "turns a second until all are read": round(len(turns) / told, 1),
        "signals": dict(signals),
        **describe(workspace),
        "turns not read": Turn.objects.dead().filter(workspace=workspace).count(),
        "added by a replay": after - before,
    }


def send(turns: Sequence[Json], poster: Poster) -> tuple[Counter[str], list[float]]:
    """Send turns one by one; return how many had which signal, and the seconds that each took."""
    signals, taken = Counter[str](), []
    for turn in turns:
        began = time.perf_counter()
        status, answer = poster.post("/api/v1/turns", turn)
        taken.append(time.perf_counter() - began)
        assert status == 202, answer
        signals[answer["turns"][0]["signal"]] += 1
    return signals, taken


def wake_and_count(workspace: "Workspace") -> int:
    """Do what beat's sweep does, and return how many turns wait."""
    from django.utils import timezone

    from memory.ingest.scheduling import wake_conversations
    from memory.models import Turn

    wake_conversations(now=timezone.now())
    return Turn.objects.for_workspace(workspace).waiting().count()


def stored(workspace: "Workspace") -> int:
    """Count the turns and memories of a workspace."""
    from memory.models import Episode, Turn

    turns: int = Turn.objects.for_workspace(workspace).count()
    episodes: int = Episode.objects.for_workspace(workspace).count()
    return turns + episodes


def describe(workspace: "Workspace") -> Json:
    """Say what memories came of the turns."""
    from memory.models import Episode, Turn

    episodes = list(Episode.objects.for_workspace(workspace).filter(is_derived=False))
    told = Turn.objects.for_workspace(workspace).filter(episodes__is_derived=False).distinct().count()
    turns = Turn.objects.for_workspace(workspace).count()
    return {
        "memories": len(episodes),
        "summaries": Episode.objects.for_workspace(workspace).filter(is_derived=True).count(),
        "share of turns that became memories": round(told / turns, 3),
        "by category": dict(Counter(episode.category for episode in episodes).most_common()),
        "by tier": dict(Counter(episode.tier for episode in episodes).most_common()),
        "by kind": dict(Counter(str(episode.kind) for episode in episodes).most_common()),
        "by status": dict(Counter(str(episode.status) for episode in episodes).most_common()),
        "with entities": sum(bool(episode.entities) for episode in episodes),
        "with causes": sum(bool(episode.causes) for episode in episodes),
        "said again": sum(episode.confirmations > 0 for episode in episodes),
        "near duplicates": sum(episode.is_near_duplicate for episode in episodes),
    }


if __name__ == "__main__":
    sys.exit(main())
