"""What one episode says about one belief (B11)."""

from enum import StrEnum


class Verdict(StrEnum):
    """The judgement of an episode against a belief's statement."""

    SUPPORTS = "SUPPORTS"
    CONTRADICTS = "CONTRADICTS"
    PARTIAL = "PARTIAL"
    IRRELEVANT = "IRRELEVANT"
