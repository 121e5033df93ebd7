"""Are beliefs as often true as they are confident? Simulated histories with known truth, and a reliability curve.

    python -m benchmarks.quality.belief_calibration [--histories 200] [--seed N] [--json FILE] [--picture FILE]
        [--change 0.3 0.7] [--cycles schedule|replay] [--announced]

Histories are drawn as benchmarks/quality/histories.py says: a habit that stays, one that is given up, one that holds in
one context only, a third each; 15 to 60 episodes over half a year, each wrong with a probability of 10 to 30 %. They
are lived through the real ingest and the real consolidation with its database, its gates and its structural jobs, five
in a workspace, with a cycle at every beat of the schedule since which an episode came; a scripted model reads the texts
without error, so that the noise is the episodes' alone. At 20 random times of each history, drawn uniformly over all of
it, every live belief is a sample: its confidence, and whether its statement is true then. None is left out; only
where nothing is believed yet there is nothing to score. What is scored is the Brier score (0 is best), beside that of
always saying ½ and of always saying the share of true samples. With --announced the first true word after each change
of mind says that it is one, and since when: some six days pass before anybody speaks. Nothing of the design was chosen
for the score. Exits 1 when it is above a bar.
"""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.quality.histories import CHANGE, History, Kind, make_histories
from benchmarks.quality.reliability import (
    EVENS,
    Bin,
    Sample,
    base_rate_score,
    bootstrap_brier,
    brier_score,
    reliability_bins,
)
from benchmarks.quality.reliability_picture import draw_reliability
from benchmarks.stage import ROOT, scripted_models, set_up

BAR = 0.13
PHASE_BARS = {  # by kind of history, and how a day lies to its change
    "steady": 0.08,
    "30 days from a change of mind": 0.38,
    "later after a change of mind": 0.13,
}
ANNOUNCED_BARS = PHASE_BARS | {"30 days from a change of mind": 0.27}
SEED = 20_261
PER_WORKSPACE = 5
PICTURE = ROOT / "docs" / "reliability.svg"


def main() -> int:
    """Simulate, score, print, draw, and return the exit status."""
    asked = _read_arguments()
    histories = make_histories(count=asked.histories, seed=asked.seed, change=tuple(asked.change))
    samples, changes, false = simulate(
        histories=histories, seed=asked.seed, cadence=asked.cycles, is_announced=asked.announced
    )
    if not samples:
        print("no belief was formed: nothing to score")
        return 1
    drawn = Counter(history.kind for history in histories)
    rates = {kind.value: false[kind] / count for kind, count in drawn.items()}
    given = {"histories": asked.histories, "seed": asked.seed, "changes": changes, "false_closes": rates}
    bars = ANNOUNCED_BARS if asked.announced else PHASE_BARS
    figures = score(samples=samples, seed=asked.seed, bars=bars) | given
    print_figures(figures)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))
    if asked.picture:
        title = f"{asked.histories} histories, Brier score {figures['brier']:.3f}"
        asked.picture.write_text(draw_reliability(bins=reliability_bins(samples), title=title))
        print(f"curve in {asked.picture}")
    return 0 if figures["is_met"] else 1


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument(
        "--change", type=float, nargs=2, default=CHANGE, metavar="SHARE", help="minds change between these of the span"
    )
    parser.add_argument(
        "--cycles",
        choices=["schedule", "replay"],
        default="schedule",
        help="when cycles run: as in a running stack, or as in an import",
    )
    parser.add_argument("--announced", action="store_true", help="changes of mind are announced when first spoken of")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--picture", type=Path, help=f"draw the curve to this SVG, as {PICTURE.relative_to(ROOT)}")
    return parser.parse_args()


def simulate(
    *, histories: Sequence[History], seed: int, cadence: str, is_announced: bool = False
) -> tuple[list[Sample], Counter[str], Counter[Kind]]:
    """Live through all histories; return their samples, how many beliefs were changed, and how many closed while true.

    Changes are counted by their kind, false closes by the kind of the history.

    Progress goes to the terminal.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")
    from tests.model_server import ModelServer

    with ModelServer() as server:
        set_up(**scripted_models(url=server.url))
        changes: Counter[str] = Counter()
        false: Counter[Kind] = Counter()
        live = partial(_live_all, histories, server, seed, changes, false)
        return list(live(cadence=cadence, is_announced=is_announced)), changes, false


def _live_all(
    histories: Sequence[History],
    server: Any,
    seed: int,
    changes: Counter[str],
    false: Counter[Kind],
    *,
    cadence: str,
    is_announced: bool,
) -> Iterator[Sample]:
    from tqdm import tqdm

    from benchmarks.quality.lived_histories import Cadence, false_closes, live_through
    from memory.domain.lifecycle import JobState
    from memory.models import StructuralJob, Workspace
    from tests import factories

    for start in tqdm(range(0, len(histories), PER_WORKSPACE), desc="workspaces", disable=None):
        workspace = factories.workspace(name=f"belief calibration {os.getpid()} {start}")
        together = histories[start : start + PER_WORKSPACE]
        yield from live_through(
            histories=together,
            server=server,
            workspace=workspace,
            seed=seed,
            cadence=Cadence(cadence),
            is_announced=is_announced,
        )
        done = StructuralJob.objects.for_workspace(workspace.pk).filter(state=JobState.APPLIED)
        changes.update(done.values_list("kind", flat=True))
        false.update(false_closes(histories=together, workspace=workspace))
        server.log.clear()
        Workspace.objects.filter(pk=workspace.pk).delete()


def score(*, samples: Sequence[Sample], seed: int, bars: Mapping[str, float] = PHASE_BARS) -> dict[str, Any]:
    """Return every figure of the samples, ready for JSON; `bars` are by phase."""
    low, high = bootstrap_brier(samples, seed=seed)
    brier = brier_score(samples)
    phases = [_score_phase(phase, samples, bars) for phase in sorted({sample.phase for sample in samples})]
    return {
        "brier": brier,
        "interval": [low, high],
        "base_rate": base_rate_score(samples),
        "bar": BAR,
        "is_met": brier <= BAR and all(is_within(one) for one in phases),
        "samples": len(samples),
        "histories_scored": len({sample.history for sample in samples}),
        "phases": phases,
        "bins": [_as_figures(one) for one in reliability_bins(samples)],
    }


def _score_phase(phase: str, samples: Sequence[Sample], bars: Mapping[str, float]) -> dict[str, Any]:
    mine = [sample for sample in samples if sample.phase == phase]
    true = sum(sample.is_true for sample in mine) / len(mine)
    return {"phase": phase, "samples": len(mine), "brier": brier_score(mine), "true": true, "bar": bars.get(phase)}


def is_within(phase: Mapping[str, Any]) -> bool:
    """Tell whether the score of a phase keeps its bar, if it has one."""
    return phase["bar"] is None or bool(phase["brier"] <= phase["bar"])


def _as_figures(one: Bin) -> dict[str, Any]:
    low, high = one.true.interval()
    figures = {"low": one.low, "high": one.high, "confidence": one.mean_confidence, "n": one.true.total}
    return figures | {"true": one.true.value, "interval": [low, high]}


def print_figures(figures: dict[str, Any]) -> None:
    """Print the score, that of each kind of history, and the reliability table."""
    low, high = figures["interval"]
    verdict = "kept" if figures["is_met"] else "MISSED"
    print(f"Brier score {figures['brier']:.3f}  [{low:.3f}, {high:.3f}]  bar {figures['bar']} {verdict}")
    print(f"always ½    {EVENS:.3f}")
    print(f"base rate   {figures['base_rate']:.3f}")
    print(f"{figures['samples']} samples of {figures['histories_scored']} of {figures['histories']} histories")
    print("structural changes: " + ", ".join(f"{kind} {count}" for kind, count in sorted(figures["changes"].items())))
    print("false closes a history: " + ", ".join(f"{kind} {n:.2f}" for kind, n in figures["false_closes"].items()))
    print(f"\n{'history':<32}{'n':>7}{'Brier':>8}{'bar':>6}{'true':>8}")
    for one in figures["phases"]:
        bar = one["bar"] or ""
        print(f"{one['phase']:<32}{one['samples']:>7}{one['brier']:>8.3f}{bar:>6}{one['true']:>8.1%}")
    print(f"\n{'confidence':<14}{'mean':>6}{'n':>7}{'true':>8}  95 % interval")
    for one in figures["bins"]:
        span = f"{one['low']:.1f} – {one['high']:.1f}"
        low, high = one["interval"]
        print(f"{span:<14}{one['confidence']:>6.2f}{one['n']:>7}{one['true']:>8.1%}  {low:.1%} – {high:.1%}")


if __name__ == "__main__":
    sys.exit(main())
