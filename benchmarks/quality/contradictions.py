#!/usr/bin/env python
"""Measure which pairs of beliefs rules find contradictory: `benchmarks/quality/contradictions.py [FILE] [--show]`.

FILE holds one JSON object a line: person, language, one, other and both_hold; the sample beside this file is what is
measured otherwise. Prints how many of the pairs that cannot both hold are found, how many of the others are found as
well, and what share of all that would be shown of each person, who holds all their beliefs at once, is so by the file.
"""

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a file, Python knows this folder alone

from memory.language.contradictions import find_contradiction, read_side

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
    parser.add_argument("--show", action="store_true", help="print the pairs that are judged otherwise than labelled")
    asked = parser.parse_args()
    pairs = [Labelled(**json.loads(line)) for line in asked.file.read_text(encoding="utf-8").splitlines()]
    report(pairs, shows_wrong=asked.show)


def report(pairs: list[Labelled], *, shows_wrong: bool) -> None:
    """Print what is found of the labelled pairs, and of all pairs of each person's beliefs."""
    found = {pair: is_found(pair.person, pair.language, pair.one, pair.other) for pair in pairs}
    for label, both_hold in (("cannot both hold, found", False), ("can both hold, found", True)):
        judged = [found[pair] for pair in pairs if pair.both_hold == both_hold]
        print(f"{label}: {sum(judged)} of {len(judged)}")
    unlabelled = find_unlabelled(pairs)
    print(f"of one person's other pairs, found: {len(unlabelled)}")
    for pair in pairs:
        if shows_wrong and found[pair] == pair.both_hold:
            print(f"  {'found' if found[pair] else 'missed'}: {pair.one} | {pair.other}")
    for beliefs in unlabelled:
        if shows_wrong:
            print(f"  without a label: {' | '.join(sorted(beliefs))}")


def is_found(person: str, language: str, one: str, other: str) -> bool:
    """Tell whether a rule holds two beliefs to contradict each other."""
    left, right = (read_side(text, person=person, language=language) for text in (one, other))
    return left is not None and right is not None and find_contradiction(one=left, other=right) != ""


def find_unlabelled(pairs: list[Labelled]) -> list[Beliefs]:
    """Return the pairs that rules find among all beliefs of a person, but for those that the file labels."""
    held: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pair in pairs:
        held[pair.person, pair.language] |= {pair.one, pair.other}
    labelled = {frozenset((pair.one, pair.other)) for pair in pairs}
    return [
        beliefs
        for (person, language), texts in held.items()
        for one, other in combinations(sorted(texts), 2)
        if (beliefs := frozenset((one, other))) not in labelled and is_found(person, language, one, other)
    ]


if __name__ == "__main__":
    main()
