#!/usr/bin/env python
"""Measure which pairs of beliefs the reader finds contradictory: `benchmarks/quality/contradictions.py [FILE]`.

FILE holds one JSON object a line: person, language, one, other and both_hold; the sample beside this file is what is
measured otherwise. Prints how many of the pairs that cannot both hold are found, how many of the others are found as
well, and of both how many are called support, one way at least. With --others (minutes), also how many of all other
pairs of each person's beliefs are found: they hold them all at once, so that most of these are wrong.
"""

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a file, Python knows this folder alone

from memory.llm.offline_reading import BORNE_OUT, DENIED
from memory.llm.reader import CONTRADICTS, SUPPORTS, reader, spoken

SAMPLE = Path(__file__).with_suffix(".jsonl")
Beliefs = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Two beliefs of one person's, and whether both can hold."""

    person: str
    language: str
    one: str
    other: str
    both_hold: bool


def main() -> None:
    """Measure the pairs of a file and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=SAMPLE)
    parser.add_argument("--others", action="store_true", help="judge the pairs that have no label, too")
    parser.add_argument("--show", action="store_true", help="print the pairs that are judged otherwise than labelled")
    asked = parser.parse_args()
    pairs = [Labelled(**json.loads(line)) for line in asked.file.read_text(encoding="utf-8").splitlines()]
    report(pairs, shows_wrong=asked.show, has_others=asked.others)


def report(pairs: list[Labelled], *, shows_wrong: bool, has_others: bool) -> None:
    """Print what is found of the labelled pairs, and of all pairs of each person's beliefs if asked to."""
    judged = {pair: judge(pair.person, pair.one, pair.other) for pair in pairs}
    for label, both_hold in (("cannot both hold", False), ("can both hold", True)):
        found = [judged[pair] for pair in pairs if pair.both_hold == both_hold]
        print(f"{label}, found: {sum(one.is_contradiction for one in found)} of {len(found)}")
        print(f"{label}, called support: {sum(one.is_support for one in found)} of {len(found)}")
    unlabelled = find_unlabelled(pairs) if has_others else []
    if has_others:
        print(f"of one person's other pairs, found: {len(unlabelled)}")
    for pair in pairs:
        one = judged[pair]
        if shows_wrong and (one.is_contradiction == pair.both_hold or (one.is_support and not pair.both_hold)):
            said = "called support" if one.is_support else "found" if one.is_contradiction else "missed"
            print(f"  {said}: {pair.one} | {pair.other}")
    for beliefs in unlabelled:
        if shows_wrong:
            print(f"  without a label: {' | '.join(sorted(beliefs))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the reader makes of two beliefs, at the thresholds of the offline reading."""

    is_contradiction: bool
    is_support: bool


def judge(person: str, one: str, other: str) -> Judged:
    """Ask of two beliefs whether either is ended, or borne out, by the other."""
    left, right = (spoken(person, text) for text in (one, other))
    odds = reader().relation([(left, right), (right, left)]).max(axis=0)
    contradicts, supports = float(odds[CONTRADICTS]), float(odds[SUPPORTS])
    return Judged(is_contradiction=contradicts >= DENIED, is_support=supports >= BORNE_OUT and supports > contradicts)


def find_unlabelled(pairs: list[Labelled]) -> list[Beliefs]:
    """Return the pairs that are found among all beliefs of a person, but for those that the file labels."""
    held: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pair in pairs:
        held[pair.person, pair.language] |= {pair.one, pair.other}
    labelled = {frozenset((pair.one, pair.other)) for pair in pairs}
    return [
        beliefs
        for (person, _), texts in held.items()
        for one, other in combinations(sorted(texts), 2)
        if (beliefs := frozenset((one, other))) not in labelled and judge(person, one, other).is_contradiction
    ]


if __name__ == "__main__":
    main()
