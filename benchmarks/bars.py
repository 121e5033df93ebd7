"""What a benchmark holds its figures against: bars, how they are printed, and how they are written down."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One measured value and what it has to reach."""

    name: str
    value: float
    bar: float
    is_ceiling: bool = True

    @property
    def is_met(self) -> bool:
        """Say whether the value keeps the bar."""
        return self.value <= self.bar if self.is_ceiling else self.value >= self.bar


def report_bars(*, bars: Sequence[Bar], path: Path | None) -> int:
    """Print bars, write them to a file if one is given, and return the exit status."""
    print_bars(bars=bars)
    if path:
        path.write_text(json.dumps([{**asdict(bar), "is_met": bar.is_met} for bar in bars], indent=2))
    return 0 if all(bar.is_met for bar in bars) else 1


def print_bars(*, bars: Sequence[Bar]) -> None:
    """Print one line a bar."""
    for bar in bars:
        sign, verdict = "≤" if bar.is_ceiling else "≥", "" if bar.is_met else "  MISSED"
        print(f"{bar.name:<58}{bar.value:>8.2f} {sign} {bar.bar:g}{verdict}")
