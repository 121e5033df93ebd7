"""Answers of a reader to the pair question, for tests of what follows from them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

IRRELEVANT, SUPPORTS, CONTRADICTS, PARTIAL = np.eye(4, dtype=np.float32) * 0.96 + 0.01


class ScriptedReader:
    """Knows what later texts say of earlier ones; all other pairs have nothing to do with each other."""

    def __init__(self, answers: Mapping[tuple[str, str], NDArray[np.float32]]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, str]] = []

    def relation(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.asked += pairs
        return np.array([self._answers.get(pair, IRRELEVANT) for pair in pairs], dtype=np.float32).reshape(-1, 4)


def script_pairs(
    monkeypatch: pytest.MonkeyPatch, answers: Mapping[tuple[str, str], NDArray[np.float32]]
) -> ScriptedReader:
    """Have notes compared by a script: what a later text, second, says of an earlier one."""
    scripted = ScriptedReader(answers)
    monkeypatch.setattr("memory.consolidation.notes.reader", lambda: scripted)
    return scripted
