"""What does consolidation cost, an episode, and what is lost by saving?

    python -m benchmarks.quality.cost FILE… [--script NAME] [--served-embeddings] [--replay] [--json FILE]

Each FILE holds episode lines. It is consolidated in a workspace of its own until nothing is left to do, with a scripted
model behind the real client (scripted_models.py names them): once as settings have it, and once with no limit to what a
cycle takes up.
Prints model calls and prompt tokens by purpose, and what came of both runs. With --replay the file is lived through,
with a cycle after every twenty episodes. Exits 1 when a bar is missed over all files together.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.stage import set_up

if TYPE_CHECKING:
    from memory.ingest.json_lines import FileLine
    from memory.models import Cycle, Workspace

CALLS_BAR, TOKENS_BAR = 0.35, 350.0
_NO_LIMIT = 1_000_000
_MOST_CYCLES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One file consolidated: what was called for, and what came of it."""

    file: str
    is_limited: bool
    episodes: int
    cycles: int
    calls: dict[str, int]
    tokens: dict[str, int]
    beliefs: int
    evidence: dict[str, int]
    settled: int

    @property
    def calls_an_episode(self) -> float:
        return sum(self.calls.values()) / self.episodes

    @property
    def tokens_an_episode(self) -> float:
        return sum(self.tokens.values()) / self.episodes


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--script", choices=("topics", "offline", "agreeing"), default="topics")
    parser.add_argument("--served-embeddings", action="store_true", help="vectors come from the server, too")
    parser.add_argument("--replay", action="store_true", help="live through each file instead of importing it whole")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    runs = list(measure(asked.files, script=asked.script, is_served=asked.served_embeddings, is_replay=asked.replay))
    print_runs(runs)
    calls, tokens = _spent_an_episode([run for run in runs if run.is_limited])
    is_met = calls <= CALLS_BAR and tokens <= TOKENS_BAR
    print(f"over all files {calls:.3f} calls (bar {CALLS_BAR}) and {tokens:.0f} prompt tokens (bar {TOKENS_BAR:.0f})")
    if asked.json:
        figures = {"calls": calls, "tokens": tokens, "is_met": is_met, "runs": [asdict(run) for run in runs]}
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0 if is_met else 1


def measure(files: Sequence[Path], *, script: str, is_served: bool, is_replay: bool) -> Iterator[Run]:
    """Consolidate each file twice, within the settings and without limits."""
    set_up(ENGRAM_LLM="openai", OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="", ENGRAM_LOG_LEVEL="ERROR")
    from django.conf import settings

    from benchmarks.quality.scripted_models import SCRIPTS
    from memory.llm.offline import static_embedder
    from tests.model_server import ModelServer
    from tests.model_server_vectors import offline_vectors

    with ModelServer(script=SCRIPTS[script], embed=offline_vectors) as server:
        settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = server.url
        settings.ENGRAM_EMBEDDINGS = "openai" if is_served else "offline"
        settings.ENGRAM_EMBEDDING_MODEL = static_embedder().name
        usual = settings.POLICY
        for file in files:
            for is_limited in (True, False):
                settings.POLICY = usual if is_limited else _without_limits(usual)
                yield _consolidate(file, is_limited=is_limited, is_replay=is_replay)


def print_runs(runs: Sequence[Run]) -> None:
    """Print a table of the calls and tokens by purpose, and what came of each run."""
    for run in runs:
        name = "within the settings" if run.is_limited else "without limits"
        print(f"{run.file}, {name}: {run.episodes} episodes, {run.cycles} cycles")
        for purpose, calls in sorted(run.calls.items()):
            tokens = run.tokens[purpose]
            shares = f"{calls / run.episodes:>8.3f}{tokens:>9}{tokens / run.episodes:>8.1f}"
            print(f"  {purpose:<12}{calls:>6}{shares}")
        sums = f"{sum(run.calls.values()):>6}{run.calls_an_episode:>8.3f}"
        print(f"  {'an episode':<12}{sums}{sum(run.tokens.values()):>9}{run.tokens_an_episode:>8.1f}")
        evidence = ", ".join(f"{count} {verdict}" for verdict, count in sorted(run.evidence.items())) or "none"
        print(f"  {run.beliefs} beliefs; evidence: {evidence}; {run.settled} episodes settled")


def _spent_an_episode(runs: Sequence[Run]) -> tuple[float, float]:
    """Return calls and prompt tokens an episode over several runs."""
    episodes = sum(run.episodes for run in runs)
    calls = sum(sum(run.calls.values()) for run in runs)
    return calls / episodes, sum(sum(run.tokens.values()) for run in runs) / episodes


def _without_limits(policy: Any) -> Any:
    """Return settings under which a cycle takes everything, and a call asks about one belief."""
    wide = replace(policy.consolidation, clusters=_NO_LIMIT, gathered_calls=_NO_LIMIT)
    return replace(policy, consolidation=wide, budget=replace(policy.budget, working_seconds=float(_NO_LIMIT)))


def _consolidate(file: Path, *, is_limited: bool, is_replay: bool) -> Run:
    from django.utils import timezone

    from memory.ingest.json_lines import read_file
    from memory.ingest.schemas import IngestContext
    from tests import factories

    now = timezone.now()
    workspace = factories.workspace(name=f"cost {now:%H:%M:%S.%f}", created_at=now)
    arrival = IngestContext(workspace=workspace, now=now, file_name=file.name, is_replay=True)  # waking nobody
    with file.open("rb") as stream:
        lines = sorted(read_file(stream=stream, arrival=arrival), key=lambda line: _time_of(line, now))
    times = [_time_of(line, now) if is_replay else now for line in lines]
    batches = _batches(times) if is_replay else [range(len(lines))]
    for batch in batches:
        _take(lines[batch.start : batch.stop], arrival, at=times[batch.stop - 1])
    cycles = len(batches) + _until_idle(workspace, now=times[-1])
    run = _read(workspace, file=file.name, is_limited=is_limited, cycles=cycles)
    workspace.delete()
    return run


def _time_of(line: "FileLine", now: datetime) -> datetime:
    return line.occurred_at or now


def _batches(times: Sequence[datetime]) -> list[range]:
    from django.conf import settings

    from memory.ingest.json_lines import plan_replay

    gap = timedelta(days=settings.POLICY.ingest.replay_gap_days)
    return plan_replay(times=times, every=settings.POLICY.consolidation.trigger_episodes, gap=gap)


def _take(lines: "Sequence[FileLine]", arrival: Any, *, at: datetime) -> None:
    """Store lines and run a cycle."""
    from memory.ingest.json_lines import ImportReport, store_file_lines
    from tests.consolidation.inline import run_cycle

    report = ImportReport()
    store_file_lines(lines=lines, arrival=arrival, report=report)
    assert not report.rejected, "a line is no episode line"
    run_cycle(arrival.workspace, at)


def _until_idle(workspace: "Workspace", *, now: datetime) -> int:
    """Run cycles until nothing is left to do; return how many."""
    from memory.consolidation.finish import is_idle_after
    from tests.consolidation.inline import run_cycle

    cycle: Cycle | None = None
    for count in range(_MOST_CYCLES):
        if cycle is not None and is_idle_after(cycle=cycle):
            return count
        cycle = run_cycle(workspace, now)
    raise RuntimeError(f"not idle after {_MOST_CYCLES} cycles")


def _read(workspace: "Workspace", *, file: str, is_limited: bool, cycles: int) -> Run:
    from django.db.models import Count, Sum

    from memory.models import Belief, Episode, Evidence, ModelCall

    by_purpose = ModelCall.objects.for_workspace(workspace).order_by().values_list("purpose")
    episodes = Episode.objects.for_workspace(workspace)
    return Run(
        file=file,
        is_limited=is_limited,
        episodes=episodes.count(),
        cycles=cycles,
        calls=dict(by_purpose.annotate(Count("pk"))),
        tokens=dict(by_purpose.annotate(Sum("input_tokens"))),
        beliefs=Belief.objects.for_workspace(workspace).active().count(),
        evidence=dict(Counter(Evidence.objects.for_workspace(workspace).values_list("verdict", flat=True))),
        settled=episodes.filter(state="settled").count(),
    )


if __name__ == "__main__":
    sys.exit(main())
