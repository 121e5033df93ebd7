"""How well the offline reading judges sentences of authors whom its training did not see.

    python -m benchmarks.quality.little_lives AUTHOR… [--data FOLDER]

FOLDER holds `AUTHOR.t1*.jsonl` (messages with the worth of each sentence) and `AUTHOR.t3*.jsonl` (little lives: beliefs
of one person and what they say later, with what that says of each belief), as training/README.md describes them. Each
later sentence is read by itself against all beliefs of its life, at the thresholds in use. Printed are the share of
sentences whose worth is right, then precision and recall: of lasting or change as a new statement needs it, and of
what is said of beliefs.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memory.llm.offline_reading import LASTING_STATEMENT, read_offline
from memory.llm.reader import CHANGE, LASTING, reader
from memory.llm.requests import Message, ReadingRequest, ShownBelief
from memory.text.quotes import quote_words

DATA = Path(__file__).resolve().parents[2] / "training" / "data"
WORTH = ("none", "event", "lasting", "change")
WORDS = {"SUPPORTS": "SUPPORTS", "CONTRADICTS": "ENDED", "PARTIAL": "PARTIAL"}  # a label, and what a reading says
DAY, LATER = "2026-01-01", "2026-06-01"

Row = dict[str, Any]


def main() -> None:
    """Measure on the authors that are named, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("authors", nargs="+", metavar="AUTHOR")
    parser.add_argument("--data", type=Path, default=DATA)
    asked = parser.parse_args()
    if messages := list(read_rows(asked.data, asked.authors, "t1")):
        print("\n".join(weigh(messages)))
    if lives := list(read_rows(asked.data, asked.authors, "t3")):
        print("\n".join(judge(lives)))
    if not messages and not lives:
        parser.error(f"nothing of {', '.join(asked.authors)} in {asked.data}")


def read_rows(folder: Path, authors: Sequence[str], kind: str) -> Iterator[Row]:
    """Yield the lines of some authors' files of one kind."""
    for author in authors:
        for file in sorted(folder.glob(f"{author}.{kind}*.jsonl")):
            yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def weigh(messages: Sequence[Row]) -> list[str]:
    """Return what the reader makes of the worth of each sentence, as lines."""
    pairs, truth = [], []
    for message in messages:
        whole = " ".join(sentence["t"] for sentence in message["sentences"])
        before = f" | before: {message['prev']}" if message.get("prev") else ""
        context = f"{message['by']}: {whole}{before}"
        pairs += [(sentence["t"], context) for sentence in message["sentences"]]
        truth += [WORTH.index(sentence["y"]) for sentence in message["sentences"]]
    odds, labels = reader().worth(pairs), np.array(truth)
    says = odds[:, LASTING] + odds[:, CHANGE] >= LASTING_STATEMENT
    is_so = labels >= LASTING
    return [
        f"worth of {len(labels)} sentences: {np.mean(odds.argmax(1) == labels):.3f} right",
        f"lasting or change: {_share(says & is_so, says)} precise, {_share(says & is_so, is_so)} found",
    ]


def _share(part: np.ndarray[Any, Any], whole: np.ndarray[Any, Any]) -> str:
    return f"{part.sum() / max(1, whole.sum()):.2f}"


def judge(lives: Sequence[Row]) -> list[str]:
    """Return what the offline reading says of beliefs, as lines; what no label names is to be left alone."""
    said, right, so = Counter[str](), Counter[str](), Counter[str]()
    for life in lives:
        for sentence in life["later"]:
            labels = {number: WORDS[label] for number, label in sentence["v"].items() if label in WORDS}
            so.update(labels.values())
            for number, word in read_sentence(life, sentence["t"]):
                said[word] += 1
                right[word] += labels.get(number) == word
    pairs = sum(len(life["beliefs"]) * len(life["later"]) for life in lives)
    return [
        f"{len(lives)} little lives, {pairs} pairs of a belief and a later sentence",
        *(
            f"{label}: {right[word] / max(1, said[word]):.2f} precise, {right[word] / max(1, so[word]):.2f} found"
            f" ({right[word]} right of {said[word]} said, {so[word]} to be found)"
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
