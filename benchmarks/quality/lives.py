"""What is believed of a life that was told in ordinary messages, and is it true at its end?

    python -m benchmarks.quality.lives [--road ROAD] [--life ID] [--show] [--data FOLDER] [--check] [--json FILE]

Lives ship with the project, in memory/samples/lives; --data takes others of the same format (life_scores.py). Each is
told in a workspace of its own on a stack of its own with its offline models, and consolidated until nothing is left
to do:

    replay     imported as it was lived, with cycles in between
    episodes   posted in one go
    turns      message by message, as turns of their conversations
    remember   what the user says, remembered text by text

Prints a line a road, all four unless one is named; --show prints every belief with what it counts as. Beliefs, unfit,
false and doubled are numbers a life, the rest is in per cent. --check looks at the data alone, and exits 1 if there is
anything wrong with them.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.quality.life_scores import Life, Message, Score, figures_of, find_faults, read_lives, score_life
from benchmarks.quality.turns import AGE_MINUTES, READ_SECONDS, wake_and_count
from benchmarks.recall_stage import Poster, clear, web_server
from benchmarks.stage import ROOT, prefork_worker, set_up, wait_until

if TYPE_CHECKING:
    from memory.models import Workspace

LIVES = ROOT / "memory" / "samples" / "lives"
MOST_CYCLES = 60
CYCLE_SECONDS = 600.0
REMEMBER_SECONDS = 120.0

_SOURCES = {"user": "human", "assistant": "ai"}
_OK, _CONFLICT = (200, 201, 202), 409

Json = dict[str, Any]


def main() -> int:
    """Tell lives, print what they score, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--road", choices=tuple(ROADS), action="append", help="all four unless named")
    parser.add_argument("--life", help="the id of one life; all unless named")
    parser.add_argument("--data", type=Path, default=LIVES, help="a folder of lives, or the file of one")
    parser.add_argument("--show", action="store_true", help="print every belief with what it counts as")
    parser.add_argument("--check", action="store_true", help="look at the data alone")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    lives = [life for life in read_lives(asked.data) if asked.life in {None, life.id}]
    if not lives:
        parser.error(f"no such life in {asked.data}")
    faults = [f"{life.id}: {fault}" for life in lives for fault in find_faults(life)]
    if faults or asked.check:
        print("\n".join(faults) or describe(lives))
        return 1 if faults else 0
    figures = tell_by_roads(lives=lives, roads=asked.road or list(ROADS), is_shown=asked.show)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0


def describe(lives: Sequence[Life]) -> str:
    """Say how much there is of sound data."""
    counts = {
        name: sum(len(getattr(life, name)) for life in lives) for name in ("messages", "facts", "traps", "questions")
    }
    return f"{len(lives)} lives, " + ", ".join(f"{count} {name}" for name, count in counts.items()) + ": sound"


def tell_by_roads(*, lives: Sequence[Life], roads: Sequence[str], is_shown: bool) -> Json:
    """Tell every life by every road, print a line for each road, and return the figures."""
    set_up(
        ENGRAM_LLM="offline", ENGRAM_EMBEDDINGS="offline", ENGRAM_TURNS_AGE_MINUTES=AGE_MINUTES,
        ENGRAM_THROTTLE_READ_PER_MINUTE="0", ENGRAM_THROTTLE_RECALL_PER_MINUTE="0",
        ENGRAM_THROTTLE_WRITE_PER_MINUTE="0", ENGRAM_THROTTLE_CURATE_PER_MINUTE="0",
    )  # fmt: skip
    figures: Json = {}
    with web_server() as (port, _), prefork_worker(slots=2):
        for road in roads:
            clear()
            score = Score()
            for life in lives:
                told = tell(life=life, road=road, port=port)
                score += score_life(life=life, memory=told)
                if is_shown:
                    show(life=life, beliefs=told.beliefs())
            figures[road] = figures_of(score)
            print_row(road, figures[road], is_first=len(figures) == 1 or is_shown)
    return figures


def print_row(road: str, figures: dict[str, float], *, is_first: bool) -> None:
    """Print the figures of a road, under their names if they are the first."""
    if is_first:
        print(f"{'road':<10}" + "".join(f"{name:>11}" for name in figures))
    print(f"{road:<10}" + "".join(f"{value:>11.1f}" for value in figures.values()), flush=True)


def show(*, life: Life, beliefs: Sequence[str]) -> None:
    """Print each belief of a life with what it counts as."""
    print(f"# {life.id}")
    for belief in beliefs:
        print(f"  {life.mark(belief):<6} {belief}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The memory of a life, behind the API of a running stack."""

    life: Life
    workspace: "Workspace"
    poster: Poster

    def beliefs(self) -> list[str]:
        """Return the statements of all active beliefs."""
        statements: list[str] = []
        path = "/api/v1/beliefs?status=active&limit=100"
        while path:
            page = self.get(path)
            statements += [row["statement"] for row in page["results"]]
            path = page["next"] and page["next"][page["next"].index("/api/") :]
        return statements

    def recall(self, question: str, *, limit: int) -> list[str]:
        """Return what comes to mind for a question of the life's user."""
        asked = {"query": question, "limit": limit, "user": self.life.user}
        return [result["text"] for result in self.post("/recall", asked)["results"]]

    def get(self, path: str) -> Any:
        """Return the answer to a request that cannot fail."""
        status, answer = self.poster.get(path)
        assert status in _OK, answer
        return answer

    def post(self, path: str, body: Json, *, may_conflict: bool = False) -> Any:
        """Return the answer; that something is under way already is one where it may be."""
        status, answer = self.poster.post(f"/api/v1{path}", body)
        assert status in _OK or (may_conflict and status == _CONFLICT), answer
        return answer


def tell(*, life: Life, road: str, port: int) -> Told:
    """Let a workspace of its own take in a life by a road, and consolidate it to the end."""
    from memory.models import Permission
    from tests import factories

    workspace = factories.workspace(name=f"{life.id} by {road}")
    _, key = factories.key(Permission.OWNER, workspace=workspace)
    told = Told(life=life, workspace=workspace, poster=Poster(port=port, key=key))
    ROADS[road](told)
    return told


def replay(told: Told) -> None:
    """Import a life as it was lived; its cycles run in between."""
    from django.core.management import call_command

    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/{told.life.id}.jsonl", "w+") as file:
        file.writelines(f"{json.dumps(_episode(told.life, message))}\n" for message in told.life.messages)
        file.flush()
        with open(f"{folder}/report", "w") as report:
            call_command("import_episodes", file.name, workspace=told.workspace.name, replay=True, stdout=report)


def post_episodes(told: Told) -> None:
    """Post all messages in one go."""
    told.post("/episodes", {"episodes": [_episode(told.life, message) for message in told.life.messages]})
    consolidate(told)


def send_turns(told: Told) -> None:
    """Send message by message, and wait until all are read."""
    for number, message in enumerate(told.life.messages):
        turn = {
            "session": _session(told.life, message), "role": message.role, "content": message.text,
            "turn_id": str(number), "occurred_at": message.occurred_at, "user": told.life.user,
        }  # fmt: skip
        told.post("/turns", turn)
    wait_until(lambda: not wake_and_count(told.workspace), what="the turns to be read", seconds=READ_SECONDS, every=1.0)
    consolidate(told)


def remember(told: Told) -> None:
    """Remember text by text what the user says, each once the one before has met what is believed."""
    from memory.api.ingest import RememberRequest

    for message in told.life.messages:
        if message.role == "user":
            line = _episode(told.life, message)
            known = {name: value for name, value in line.items() if name in RememberRequest.model_fields}
            _until_done(told, known)
    consolidate(told)


def _until_done(told: Told, body: Json) -> None:
    """Remember a text; the same call again says how far it has come."""
    wait_until(
        lambda: told.post("/remember", body)["state"] == "done",
        what="a text to be remembered", seconds=REMEMBER_SECONDS, every=0.2,
    )  # fmt: skip


ROADS: dict[str, Callable[[Told], None]] = {
    "replay": replay,
    "episodes": post_episodes,
    "turns": send_turns,
    "remember": remember,
}


def consolidate(told: Told) -> None:
    """Run cycles until one reads nothing and finds no cluster."""
    for _ in range(MOST_CYCLES):
        counts = _counts_of(told, told.post("/consolidations", {}, may_conflict=True)["id"])
        if not counts.get("messages") and not counts.get("clusters"):
            return


def _counts_of(told: Told, cycle: str) -> Json:
    """Wait for a cycle to end, sweeping as beat does; return its counts."""
    from memory.consolidation.schedule import sweep

    path = f"/api/v1/consolidations/{cycle}"

    def is_over() -> bool:
        sweep()
        return bool(told.get(path)["state"] not in {"queued", "running"})

    wait_until(is_over, what="a cycle", seconds=CYCLE_SECONDS, every=1.0)
    counts: Json = told.get(path)["counts"]
    return counts


def _episode(life: Life, message: Message) -> Json:
    return {
        "text": message.text, "session": _session(life, message), "occurred_at": message.occurred_at,
        "user": life.user, "source": _SOURCES[message.role],
    }  # fmt: skip


def _session(life: Life, message: Message) -> str:
    return f"{life.id}-{message.session}"


if __name__ == "__main__":
    sys.exit(main())
