"""Answers by rules on this machine: no network, no cost, and plainly less than a model would say."""

from memory.domain.verdicts import Verdict
from memory.llm.model import Completion
from memory.llm.replies import EpisodeVerdict, Reply, Synthesis, Timeframe, Verdicts
from memory.llm.requests import ClassificationRequest, EpisodeText, Request, SynthesisRequest

OFFLINE_MODEL = "offline-rules-1"


class OfflineModel:
    """The second implementation of LanguageModel: extracts and judges by rules, unsure means IRRELEVANT."""

    is_offline = True

    def model_for(self, purpose: str) -> str:
        """Name the rules; they serve every purpose."""
        return OFFLINE_MODEL

    def parameters_for(self, purpose: str) -> dict[str, str | float]:
        """Return nothing: rules have no settings."""
        return {}

    def complete(self, *, request: Request, timeout: float) -> Completion:
        """Answer at once, counting no tokens; raise CallFailed where the episodes yield no statement."""
        reply = _synthesize(request) if isinstance(request, SynthesisRequest) else _classify(request)
        return Completion(reply=reply, raw=reply.model_dump_json(), input_tokens=0, output_tokens=0, latency_ms=0)


def _synthesize(request: SynthesisRequest) -> Reply:
    first = request.episodes[0]
    subject = first.speaker or "user"
    return Synthesis(statement=first.text, subject=subject, predicate="states", timeframe=Timeframe.CURRENT)


def _classify(request: ClassificationRequest) -> Reply:
    similarities = request.similarities or (None,) * len(request.episodes)
    return Verdicts(
        verdicts=[
            _judge(request, episode, similarity)
            for episode, similarity in zip(request.episodes, similarities, strict=True)
        ]
    )


def _judge(request: ClassificationRequest, episode: EpisodeText, similarity: float | None) -> EpisodeVerdict:
    return EpisodeVerdict(id=episode.id, verdict=Verdict.IRRELEVANT, reason="unsure")
