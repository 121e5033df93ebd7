"""How well the offline reading judges sentences of authors whom its training did not see.

    python -m benchmarks.quality.little_lives AUTHOR… [--data FOLDER]

FOLDER holds `AUTHOR.t3*.jsonl`, little lives: beliefs of one person and what they say later, with what that says of
each belief, as training/README.md describes them. Each later sentence is read by itself against all beliefs of its
life, at the thresholds in use. Printed are precision and recall of what is said of beliefs. (training/evaluate.py
measures the reader itself, on single sentences and pairs.)
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memory.llm.offline_reading import read_offline
from memory.llm.requests import Message, ReadingRequest, ShownBelief
from memory.text.quotes import quote_words

DATA = Path(__file__).resolve().parents[2] / "training" / "data"
WORDS = {"SUPPORTS": "SUPPORTS", "CONTRADICTS": "ENDED", "PARTIAL": "PARTIAL"}  # a label, and what a reading says
DAY, LATER = "2026-01-01", "2026-06-01"

Row = dict[str, Any]


def main() -> None:
    """Measure on the authors that are named, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("authors", nargs="+", metavar="AUTHOR")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    lives = list(read_lives(asked.data, asked.authors))
    if not lives:
        parser.error(f"nothing of {', '.join(asked.authors)} in {asked.data}")
    print("\n".join(judge(lives)))


def read_lives(folder: Path, authors: Sequence[str]) -> Iterator[Row]:
    """Yield the little lives of some authors."""
    for author in authors:
        for file in sorted(folder.glob(f"{author}.t3*.jsonl")):
            yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def judge(lives: Sequence[Row]) -> list[str]:
    """Return what the offline reading says of beliefs, as lines; what no label names is to be left alone."""
    answered, right, labelled = Counter[str](), Counter[str](), Counter[str]()
    for life in lives:
        for sentence in life["later"]:
            labels = {number: WORDS[label] for number, label in sentence["v"].items() if label in WORDS}
            labelled.update(labels.values())
            for number, word in read_sentence(life, sentence["t"]):
                answered[word] += 1
                right[word] += labels.get(number) == word
    pairs = sum(len(life["beliefs"]) * len(life["later"]) for life in lives)
    return [
        f"{len(lives)} little lives, {pairs} pairs of a belief and a later sentence",
        *(
            f"{label}: {right[word] / max(1, answered[word]):.2f} precise,"
            f" {right[word] / max(1, labelled[word]):.2f} found"
            f" ({right[word]} right of {answered[word]} said, {labelled[word]} to be found)"
            for label, word in WORDS.items()
        ),
    ]


def read_sentence(life: Row, text: str) -> Iterator[tuple[str, str]]:
    """Read one sentence against the beliefs of its life; yield the number of each belief that it speaks of."""
    who = life["who"]
    beliefs = [
        ShownBelief(id=str(one["n"]), statement=one["t"] if who in one["t"] else quote_words(who, one["t"]), since=DAY)
        for one in life["beliefs"]
    ]
    message = Message(id="m", text=text, speaker=who, occurred_on=LATER)
    reading = read_offline(ReadingRequest(person=who, today=LATER, episodes=(message,), beliefs=tuple(beliefs)))
    for line in reading.about:
        if line is not None and line.b.isdigit():
            yield beliefs[int(line.b) - 1].id, str(line.verdict)


if __name__ == "__main__":
    main()
