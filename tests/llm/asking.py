"""Requests that the tests of this folder send."""

from memory.llm.requests import ClassificationRequest, EpisodeText, SynthesisRequest


def episode(number: int, text: str = "") -> EpisodeText:
    """Make an episode with a readable id."""
    return EpisodeText(id=f"ep_{number:012x}", text=text or f"Mara prefers short meetings, said {number} times.")


def synthesis(*texts: str) -> SynthesisRequest:
    """Ask for a belief over a few episodes."""
    return SynthesisRequest(episodes=tuple(episode(n, text) for n, text in enumerate(texts or ("", "", ""))))


def classification(*texts: str, statement: str = "Mara prefers short meetings.") -> ClassificationRequest:
    """Ask what a few episodes say about one belief."""
    return ClassificationRequest(
        statement=statement,
        subject="Mara",
        context="general",
        language="en",
        episodes=tuple(episode(n, text) for n, text in enumerate(texts or ("",))),
    )
