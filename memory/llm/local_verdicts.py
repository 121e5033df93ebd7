"""Verdicts on pairs from a classifier on this machine (B11), with the rules' veto; all else is another model's."""

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from memory.domain.matching import Claim
from memory.domain.pair_verdicts import judge_pair
from memory.domain.person import is_first_person, to_third_person
from memory.domain.verdicts import Judgement, Verdict
from memory.language.named_subjects import find_named_person, find_named_subject
from memory.llm.model import CallFailed, Completion, FailureKind, LanguageModel
from memory.llm.offline import claim_of_belief, claim_of_episode
from memory.llm.onnx_folder import ModelUnavailable
from memory.llm.pair_models import PairClasses, TookTooLong, classifier_name, pair_classifier
from memory.llm.replies import Contradiction, EpisodeVerdict, Reply, Verdicts, write_reply
from memory.llm.requests import ClassificationRequest, ContradictionRequest, Purpose, Request

_JUDGED_HERE = (Purpose.CLASSIFY, Purpose.CONTRADICT)
_LONGEST_NAME = 100  # characters of a model's name in the ledger


class _Pair(NamedTuple):
    """What was said and what is believed, how alike they are, and who "I" is where no speaker is named."""

    said: Claim
    believed: Claim
    similarity: float | None = None
    person: str = ""


class LocalVerdicts:
    """A language model whose verdicts come from a classifier of pairs: it costs nothing and knows only pairs."""

    def __init__(self, *, base: LanguageModel, classifier: str) -> None:
        self._base, self._classifier = base, classifier

    @property
    def is_offline(self) -> bool:
        """Tell whether all else comes from rules on this machine, too."""
        return self._base.is_offline

    def model_for(self, purpose: str) -> str:
        """Name the classifier for what it judges, else the other model."""
        return self._name if purpose in _JUDGED_HERE else self._base.model_for(purpose)

    def parameters_for(self, purpose: str) -> dict[str, str | float]:
        """Return what shapes the other model's answers; a classifier has no settings."""
        return {} if purpose in _JUDGED_HERE else self._base.parameters_for(purpose)

    def complete(self, *, request: Request, timeout: float) -> Completion:
        """Judge pairs within the time, or hand on what is none; raise CallFailed."""
        began = time.monotonic()
        match request:
            case ClassificationRequest():
                reply: Reply = _classify(self._classifier, request, timeout)
            case ContradictionRequest():
                reply = _find_contradiction(self._classifier, request, timeout)
            case _:
                return self._base.complete(request=request, timeout=timeout)
        return Completion(
            reply=reply,
            raw=write_reply(request=request, reply=reply),
            input_tokens=0,
            output_tokens=0,
            latency_ms=round((time.monotonic() - began) * 1000),
        )

    @cached_property
    def _name(self) -> str:
        try:
            return classifier_name(named=self._classifier)[-_LONGEST_NAME:]
        except ModelUnavailable:  # what asks it for a verdict is told why
            return Path(self._classifier).name[-_LONGEST_NAME:]


def _classify(classifier: str, request: ClassificationRequest, timeout: float) -> Verdicts:
    unknown = ((None,) * len(request.episodes),) * len(request.beliefs)
    asked = [
        (belief.id, episode.id, _Pair(claim_of_episode(episode), claim_of_belief(belief), similarity, request.person))
        for belief, row in zip(request.beliefs, request.similarities or unknown, strict=True)
        for episode, similarity in zip(request.episodes, row, strict=True)
    ]
    judged = _judge(classifier, [pair for _, _, pair in asked], timeout)
    return Verdicts(
        verdicts=[
            EpisodeVerdict(belief=belief, id=episode, verdict=one.verdict, reason=one.reason)
            for (belief, episode, _), one in zip(asked, judged, strict=True)
        ]
    )


def _find_contradiction(classifier: str, request: ContradictionRequest, timeout: float) -> Contradiction:
    """Name the beliefs that are contradicted, and why the first is."""
    fact = claim_of_belief(request.fact)
    judged = _judge(classifier, [_Pair(fact, claim_of_belief(belief)) for belief in request.beliefs], timeout)
    found = {number: one.reason for number, one in enumerate(judged, 1) if one.verdict is Verdict.CONTRADICTS}
    return Contradiction(contradicts=list(found), reason=next(iter(found.values()), ""))


def _judge(classifier: str, pairs: Sequence[_Pair], timeout: float) -> list[Judgement]:
    texts = [(_premise(one), one.believed.text) for one in pairs]
    try:
        classes = pair_classifier(named=classifier).classify(texts, seconds=timeout)
    except ModelUnavailable as error:
        raise CallFailed(str(error), kind=FailureKind.AUTH) from error
    except TookTooLong as error:
        raise CallFailed(f"{len(pairs)} pairs took longer than {timeout:g} s", kind=FailureKind.TIMEOUT) from error
    return [_judge_one(pair, found) for pair, found in zip(pairs, classes, strict=True)]


def _judge_one(pair: _Pair, found: PairClasses) -> Judgement:
    if _tell_of_others(pair):
        return Judgement(verdict=Verdict.IRRELEVANT, reason="They tell of different people.")
    return judge_pair(
        episode=pair.said,
        belief=pair.believed,
        similarity=pair.similarity,
        entailment=found.entailment,
        contradiction=found.contradiction,
    )


def _tell_of_others(pair: _Pair) -> bool:
    """Tell whether one text begins with what a person does, and the other with another name (E3)."""
    said, believed, speaker = pair.said, pair.believed, pair.said.speaker or pair.person
    subjects = [find_named_subject(one.text, language=one.language) for one in (said, believed)]
    people = [find_named_person(one.text, language=one.language) for one in (said, believed)]
    if speaker and is_first_person(said.text, said.language):
        subjects[0] = people[0] = frozenset(speaker.lower().split())
    return all(subjects) and any(people) and not subjects[0] & subjects[1]


def _premise(pair: _Pair) -> str:
    """Say of whom a text in the first person tells: a classifier knows no speakers."""
    speaker = pair.said.speaker or pair.person
    told = to_third_person(pair.said.text, speaker=speaker, language=pair.said.language)
    return told or (f"{speaker}: {pair.said.text}" if speaker else pair.said.text)
