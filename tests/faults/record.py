"""What each fault test saw, for the table that `make faults` prints."""

import json
import time
from pathlib import Path

LOG_VARIABLE = "ENGRAM_FAULTS_LOG"


class FaultRecord:
    """One fault: what was done, what came of it, and how long it took from the first to the last."""

    def __init__(self) -> None:
        self.fault, self.happened = "", ""
        self.struck_at, self.seconds = 0.0, 0.0

    def strike(self, fault: str) -> None:
        """Note that the fault happens now; of several moments the last counts."""
        self.fault, self.struck_at = fault, time.monotonic()

    def recover(self, happened: str) -> None:
        """Note that all is well again now, and what was seen."""
        self.happened, self.seconds = happened, time.monotonic() - self.struck_at

    def write(self, path: Path) -> None:
        """Append it as a line of JSON, if there is something to say."""
        if self.happened:
            row = {"fault": self.fault, "happened": self.happened, "seconds": round(self.seconds, 2)}
            with path.open("a", encoding="utf-8") as log:
                log.write(json.dumps(row, ensure_ascii=False) + "\n")
