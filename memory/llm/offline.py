"""Answers by rules on this machine: no network, no cost, and plainly less than a model would say."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory.domain.matching import Claim
from memory.domain.statements import SourceText, Timeframe, extract_statement
from memory.domain.verdicts import judge_by_rules
from memory.llm.embeddings import static_embedder
from memory.llm.model import Completion
from memory.llm.replies import EpisodeVerdict, Reply, Synthesis, Verdicts
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
        """Answer at once, counting no tokens; where no sentence can stand alone the statement is blank."""
        reply = _synthesize(request) if isinstance(request, SynthesisRequest) else _classify(request)
        return Completion(reply=reply, raw=reply.model_dump_json(), input_tokens=0, output_tokens=0, latency_ms=0)


def _synthesize(request: SynthesisRequest) -> Reply:
    found = extract_statement(episodes=[_as_source(episode) for episode in request.episodes], embed=_embed)
    if found is None:
        return Synthesis(statement="", subject="", predicate="", timeframe=Timeframe.CURRENT)
    return Synthesis(
        statement=found.statement,
        subject=found.subject,
        predicate=found.predicate,
        context=found.context,
        timeframe=found.timeframe,
    )


def _as_source(episode: EpisodeText) -> SourceText:
    return SourceText(id=episode.id, text=episode.text, speaker=episode.speaker, language=episode.language)


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return static_embedder().embed(texts)


def _classify(request: ClassificationRequest) -> Reply:
    similarities = request.similarities or (None,) * len(request.episodes)
    return Verdicts(
        verdicts=[
            _judge(request, episode, similarity)
            for episode, similarity in zip(request.episodes, similarities, strict=True)
        ]
    )


def _judge(request: ClassificationRequest, episode: EpisodeText, similarity: float | None) -> EpisodeVerdict:
    """Judge one episode; a belief's speaker is its subject, as in the polarity guard."""
    judgement = judge_by_rules(
        episode=Claim(text=episode.text, speaker=episode.speaker, language=episode.language),
        belief=Claim(text=request.statement, speaker=request.subject, language=request.language),
        similarity=similarity,
    )
    return EpisodeVerdict(id=episode.id, verdict=judgement.verdict, reason=judgement.reason)
