"""How fast do many episodes come in at once, beside a binary COPY of the same rows?

    python -m benchmarks.bulk [--count 10000] [--rounds 5] [--json FILE]

`import_episodes` reads a file of lines, `import_workspace` the file of a whole workspace, and a binary COPY brings in
the very rows that come of them, as bytes that are there beforehand; each into a workspace of its own, by turns, so that
all meet the same noise and the same tables. No model is in the way: that of the settings is a server's, which is asked
in a cycle. What counts are medians and their ratios. Exits 1 when a bar is missed.
"""

import argparse
import io
import json
import re
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bars import Bar, report_bars
from benchmarks.memories import Drawn, draw
from benchmarks.recall_stage import clear
from benchmarks.stage import scripted_models, set_up

if TYPE_CHECKING:
    from memory.models import Workspace

LEAST = 0.5  # of the rate of COPY
NOWHERE = "http://127.0.0.1:9/v1"  # where the model would be
_ID = re.compile(rb"ep_[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The same episodes as a file of lines, and stored in a workspace that rows are taken from."""

    path: Path
    template: "Workspace"
    count: int
    export: bytes = b""


def main() -> int:
    """Measure, print a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    asked = parser.parse_args()
    set_up(**scripted_models(url=NOWHERE) | {"ENGRAM_LLM": "offline"})
    from memory.models import EpisodeEmbedding

    clear()
    with tempfile.TemporaryDirectory() as folder:
        sample = make_sample(drawn=draw(count=asked.count), folder=Path(folder))
        bars = measure(sample=sample, rounds=asked.rounds)
    assert not EpisodeEmbedding.objects.exists(), "a model was in the way"
    clear()
    return report_bars(bars=bars, path=asked.json)


def make_sample(*, drawn: list[Drawn], folder: Path) -> Sample:
    """Write episodes to a file, and import them once."""
    from memory.export.exporter import export_workspace
    from memory.models import Cycle

    path, template = folder / "episodes.jsonl", new_workspace(name="template")
    lines = (
        {"text": f"{one.text} ({number})", "speaker": one.speaker, "session": one.session}
        for number, one in enumerate(drawn)
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    sample = Sample(path=path, template=template, count=len(drawn))
    ready_lines(sample=sample, workspace=template)()
    Cycle.objects.for_workspace(template).delete()  # one is queued since; nothing is exported meanwhile
    return replace(sample, export=b"".join(block.data for block in export_workspace(workspace=template)))


def measure(*, sample: Sample, rounds: int) -> list[Bar]:
    """Bring the episodes in by each way in turn; return how the rates compare, and what is missing."""
    ways: dict[str, Callable[..., Callable[[], object]]] = {
        "COPY": ready_copy, "import_episodes": ready_lines, "import_workspace": ready_export,
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    missing = 0
    for number in range(rounds):
        order = deque(ways)
        order.rotate(number)
        for place, name in enumerate(order):
            workspace = new_workspace(name=f"{name} {number}")
            bring_in = ways[name](sample=sample, workspace=workspace, series=number * len(ways) + place)
            began = time.perf_counter()
            bring_in()
            seconds[name].append(time.perf_counter() - began)
            missing += abs(sample.count - count_episodes(workspace))
    taken = {name: statistics.median(all_seconds) for name, all_seconds in seconds.items()}
    for name, median in taken.items():
        print(f"{name}: {sample.count / median:,.0f} episodes/s")
    return [
        *(
            Bar(name=f"{name} ÷ COPY, episodes/s", value=taken["COPY"] / taken[name], bar=LEAST, is_ceiling=False)
            for name in ("import_episodes", "import_workspace")
        ),
        Bar(name="episodes missing or too many", value=missing, bar=0),
    ]


def ready_lines(*, sample: Sample, workspace: "Workspace", series: int = 0) -> Callable[[], object]:
    """Return what imports the file of lines, as people do; each episode gets an id of its own."""
    from django.core.management import call_command

    return partial(
        call_command, "import_episodes", sample.path, workspace=workspace.name, as_json=True, stdout=io.StringIO()
    )


def ready_export(*, sample: Sample, workspace: "Workspace", series: int) -> Callable[[], object]:
    """Give the file of a workspace ids that nobody has, and return what imports it."""
    from django.utils import timezone

    from memory.domain.identity import Actor, ActorKind
    from memory.export.importer import import_workspace

    ids: dict[bytes, bytes] = {}
    file = _ID.sub(lambda match: ids.setdefault(match[0], id_of(series, len(ids)).encode()), sample.export)
    actor = Actor(kind=ActorKind.COMMAND, name="benchmark")
    return partial(import_workspace, workspace=workspace, stream=io.BytesIO(file), actor=actor, now=timezone.now())


def ready_copy(*, sample: Sample, workspace: "Workspace", series: int) -> Callable[[], object]:
    """Read the stored rows as COPY gives them, under ids that nobody has, and return what copies them in."""
    from memory.models import Episode
    from memory.search.prepared import raw_cursor

    names = [f'"{field.column}"' for field in Episode._meta.concrete_fields if not field.generated]
    prefix = id_of(series, 0)[:-8]
    told = {
        '"id"': f"'{prefix}' || lpad(to_hex(row_number() OVER (ORDER BY number)), 8, '0')",
        '"workspace_id"': f"{workspace.pk}::bigint",
    }
    rows = f"SELECT {', '.join(told.get(name, name) for name in names)} FROM memory_episode WHERE workspace_id = %s"  # noqa: S608
    with raw_cursor() as cursor, cursor.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)", [sample.template.pk]) as out:
        data = b"".join(out)

    def copy_in() -> None:
        statement = f"COPY memory_episode ({', '.join(names)}) FROM STDIN (FORMAT binary)"
        with raw_cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(data)

    return copy_in


def id_of(series: int, number: int) -> str:
    """Return an episode's id of a series of its own."""
    return f"ep_{series:04x}{number:08x}"


def new_workspace(*, name: str) -> "Workspace":
    """Return a new workspace."""
    from django.utils import timezone

    from memory.access import create_workspace

    return create_workspace(name=name, now=timezone.now())


def count_episodes(workspace: "Workspace") -> int:
    """Return how many episodes a workspace has."""
    from memory.models import Episode

    return Episode.objects.for_workspace(workspace).count()


if __name__ == "__main__":
    sys.exit(main())
