#!/usr/bin/env python
"""Measure the reader's verdicts on labelled pairs: `benchmarks/quality/verdicts.py FILE`.

FILE holds one JSON object a line: episode, belief, label (SUPPORTS, CONTRADICTS, PARTIAL or IRRELEVANT). Prints the
accuracy beside the majority's, precision and recall with 95 % intervals, the confusion table, both halves of the file
(split by hash), and the share of CONTRADICTS when each belief meets a random episode.
"""

import argparse
import hashlib
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a file, Python knows this folder alone

from memory.domain.evidence import Verdict
from memory.llm.offline_reading import BORNE_OUT, DENIED, HOLDS_IN_PART
from memory.llm.reader import CONTRADICTS, PARTIAL, SUPPORTS, reader

SEED = 20_240
NORMAL_95 = 1.959964
Judge = Callable[[str, str], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An episode, a belief and what the one says of the other."""

    episode: str
    belief: str
    label: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of a count, with its Wilson interval."""

    hits: int
    total: int

    @property
    def value(self) -> float:
        return self.hits / self.total if self.total else 0.0

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval (Wilson 1927)."""
        if not self.total:
            return 0.0, 1.0
        z, n, p = NORMAL_95, self.total, self.value
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return centre - half, centre + half

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:6.1%}  [{low:.1%}, {high:.1%}]  {self.hits}/{self.total}"


Table = Counter[tuple[Verdict, Verdict]]  # (label, verdict)


_THRESHOLDS = (
    (Verdict.CONTRADICTS, CONTRADICTS, DENIED),
    (Verdict.PARTIAL, PARTIAL, HOLDS_IN_PART),
    (Verdict.SUPPORTS, SUPPORTS, BORNE_OUT),
)


def judge_with_reader(episode: str, belief: str) -> Verdict:
    """Judge one pair at the thresholds of the offline reading."""
    [odds] = reader().relation([(belief, episode)])
    return next((verdict for verdict, column, least in _THRESHOLDS if odds[column] >= least), Verdict.IRRELEVANT)


def read_pairs(path: Path) -> list[Pair]:
    """Read the labelled pairs of a file."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [Pair(episode=row["episode"], belief=row["belief"], label=Verdict(row["label"])) for row in rows]


def is_first_half(pair: Pair) -> bool:
    """Put a pair into a half by the hash of its texts."""
    return int(hashlib.sha256((pair.episode + pair.belief).encode()).hexdigest(), 16) % 2 == 0


def tabulate(pairs: Sequence[Pair], *, judge: Judge) -> Table:
    """Count (label, verdict)."""
    return Counter((pair.label, judge(pair.episode, pair.belief)) for pair in pairs)


def measure_accuracy(table: Table) -> Share:
    """Return the share of right verdicts."""
    return Share(hits=sum(count for (label, verdict), count in table.items() if label is verdict), total=table.total())


def measure_majority(table: Table) -> Share:
    """Return what always answering with the commonest label would reach."""
    labels: Counter[Verdict] = Counter()
    for (label, _), count in table.items():
        labels[label] += count
    return Share(hits=max(labels.values(), default=0), total=table.total())


def measure_precision(table: Table, verdict: Verdict) -> Share:
    """Return how often a verdict is right."""
    given = sum(count for (_, said), count in table.items() if said is verdict)
    return Share(hits=table[verdict, verdict], total=given)


def measure_recall(table: Table, verdict: Verdict) -> Share:
    """Return how often a label is found."""
    true = sum(count for (label, _), count in table.items() if label is verdict)
    return Share(hits=table[verdict, verdict], total=true)


def shuffle_episodes(pairs: Sequence[Pair]) -> list[Pair]:
    """Give each belief a random other episode."""
    episodes = [pair.episode for pair in pairs]
    random.Random(SEED).shuffle(episodes)
    return [
        Pair(episode=episode, belief=pair.belief, label=Verdict.IRRELEVANT)
        for episode, pair in zip(episodes, pairs, strict=True)
    ]


def print_figures(title: str, table: Table) -> None:
    """Print one table's figures."""
    print(f"\n{title}: {table.total()} pairs")
    print(f"  accuracy               {measure_accuracy(table)}")
    print(f"  majority baseline      {measure_majority(table)}")
    for verdict in (Verdict.CONTRADICTS, Verdict.SUPPORTS):
        print(f"  {verdict:<12} precision {measure_precision(table, verdict)}")
        print(f"  {verdict:<12} recall    {measure_recall(table, verdict)}")


def print_confusion(table: Table) -> None:
    """Print labels down, verdicts across."""
    print("\n  label \\ verdict  " + "".join(f"{verdict:>13}" for verdict in Verdict))
    for label in Verdict:
        print(f"  {label:<16} " + "".join(f"{table[label, verdict]:>13}" for verdict in Verdict))


def report(pairs: Sequence[Pair], *, judge: Judge) -> None:
    """Measure and print everything."""
    started = time.perf_counter()
    table = tabulate(pairs, judge=judge)
    spent = time.perf_counter() - started
    print_figures("all", table)
    print_confusion(table)
    print_figures("first half", tabulate([pair for pair in pairs if is_first_half(pair)], judge=judge))
    print_figures("second half", tabulate([pair for pair in pairs if not is_first_half(pair)], judge=judge))
    strangers = tabulate(shuffle_episodes(pairs), judge=judge)
    contradicted = strangers[Verdict.IRRELEVANT, Verdict.CONTRADICTS]
    print(f"\nrandom episodes: CONTRADICTS {Share(hits=contradicted, total=strangers.total())}")
    print(f"time: {spent / max(1, len(pairs)) * 1e3:.2f} ms a pair")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("file", type=Path)
    report(read_pairs(parser.parse_args().file), judge=judge_with_reader)


if __name__ == "__main__":
    main()
