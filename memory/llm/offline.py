"""Answers and vectors without a network: rules in place of a language model, a static table of word vectors.

`OfflineModel` says plainly less than a model would; `StaticEmbedder` knows words but not their order, some 50 µs a
text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, assert_never

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memory.domain.evidence import Verdict
from memory.domain.similarity import Profile
from memory.domain.taxonomy import ExtractedFact, Role
from memory.language.analysis import SpokenText
from memory.language.claims import ReadClaim, Speech, read_claims
from memory.language.clauses import EVIDENCE
from memory.language.contradictions import Side, find_contradiction, language_of, read_side
from memory.language.facts import find_facts, read_facts
from memory.language.guard import check_polarity
from memory.language.subjects import Timeframe, find_entities
from memory.language.synthesis import (
    ExtractedStatement,
    SourceText,
    divide_by_context,
    extract_statement,
    summarize_sentences,
)
from memory.language.third_person import person_of
from memory.language.traits import IMPORTANCE, read_category, read_causes, read_confidence, read_valence
from memory.language.verdicts import judge_by_rules
from memory.llm.profiles import load_profile
from memory.llm.replies import (
    OTHER,
    ClaimsReply,
    Contradiction,
    Division,
    EpisodeVerdict,
    Facts,
    Reply,
    StatedClaim,
    StatedFact,
    StatedFacts,
    Statement,
    Summary,
    Synthesis,
    ToldFact,
    Union,
    Verdicts,
    write_reply,
)
from memory.llm.requests import (
    ClaimsRequest,
    ClassificationRequest,
    ContradictionRequest,
    EpisodeText,
    FactsRequest,
    MergeRequest,
    MetaRequest,
    RememberRequest,
    Request,
    RevisionRequest,
    SplitRequest,
    StatedBelief,
    SummaryRequest,
    SynthesisRequest,
    TurnText,
)
from memory.llm.types import Completion, Embedded, Embedder, reject_blank, unit_rows

OFFLINE_MODEL = "offline-rules-2"


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
        reply = _answer(request)
        return Completion(
            reply=reply, raw=write_reply(request=request, reply=reply), input_tokens=0, output_tokens=0, latency_ms=0
        )


def _answer(request: Request) -> Reply:
    match request:
        case SynthesisRequest():
            return _synthesize(request.episodes)
        case ClassificationRequest():
            return _classify(request)
        case RevisionRequest():
            return _synthesize(_episodes_with(request, Verdict.CONTRADICTS))
        case SplitRequest():
            return _split(request)
        case MergeRequest():
            return _merge(request)
        case FactsRequest():
            return _extract_turn_facts(request)
        case SummaryRequest():
            return _summarize(request)
        case MetaRequest():
            return _synthesize(())  # rules find sentences, and make no new ones
        case RememberRequest():
            return _extract_facts(request)
        case ContradictionRequest():
            return _find_contradiction(request)
        case ClaimsRequest():
            return _read_claims(request)
    assert_never(request)


def _synthesize(episodes: Sequence[EpisodeText]) -> Synthesis:
    """State the most central sentence of the episodes that can stand alone."""
    found = extract_statement(episodes=[_as_source_text(episode) for episode in episodes], embed=_embed)
    if found is None:
        return Synthesis(statement="", subject="", predicate="", timeframe=Timeframe.CURRENT)
    return Synthesis(**_as_statement(found).model_dump())


def _as_statement(found: ExtractedStatement) -> Statement:
    return Statement(
        statement=found.statement,
        subject=found.subject,
        predicate=found.predicate,
        context=found.context,
        timeframe=found.timeframe,
    )


def _as_source_text(episode: EpisodeText) -> SourceText:
    return SourceText(id=episode.id, text=episode.text, speaker=episode.speaker, language=episode.language)


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    return static_embedder().embed(texts)


def _episodes_with(request: RevisionRequest | SplitRequest, *verdicts: Verdict) -> list[EpisodeText]:
    judged = zip(request.episodes, request.verdicts, strict=True)
    return [episode for episode, verdict in judged if verdict in verdicts]


def _split(request: SplitRequest) -> Division:
    """Divide where the episodes of each side name a circumstance of their own, else not."""
    sides = _episodes_with(request, Verdict.SUPPORTS), _episodes_with(request, Verdict.CONTRADICTS, Verdict.PARTIAL)
    in_favour, against = ([_as_source_text(episode) for episode in side] for side in sides)
    policy = settings.POLICY.restructure
    found = divide_by_context(in_favour=in_favour, against=against, policy=policy, embed=_embed)
    return Division(parts=[_as_statement(part) for part in found or ()])


def _merge(request: MergeRequest) -> Union:
    """Agree only where nothing tells the two apart: above the threshold, and past the guard."""
    first, second = request.beliefs
    alike = request.similarity > settings.POLICY.gate.merge_similarity
    same = alike and check_polarity(left=claim_of_belief(first), right=claim_of_belief(second)).passed
    return Union(same=same, statement="", subject="", predicate="", timeframe=Timeframe.CURRENT)


def _extract_turn_facts(request: FactsRequest) -> Facts:
    """Take each sentence that stands alone for a fact; one that is told twice quotes both turns."""
    told: dict[tuple[str, str, str], ToldFact] = {}
    for turn in request.turns:
        for fact in _facts_of(turn, request):
            key = (turn.role, turn.speaker, fact.text.casefold())
            earlier = told.get(key)
            turns = [*(earlier.turns if earlier else ()), *fact.turns]
            told[key] = ToldFact(
                text=fact.text,
                category=fact.category,
                confidence=fact.confidence,
                entities=list(fact.entities),
                causes=list(fact.causes),
                importance=fact.importance,
                valence=fact.valence,
                turns=turns,
            )
    return Facts(facts=list(told.values()))


def _facts_of(turn: TurnText, request: FactsRequest | SummaryRequest) -> list[ExtractedFact]:
    if turn.role == Role.USER and not turn.speaker and request.person:
        return _claims_of(turn, request.person)
    if turn.role == Role.ASSISTANT and not turn.speaker and request.person:
        return []  # an assistant asserts nothing about its user (E2)
    return find_facts(
        text=turn.text,
        role=Role(turn.role),
        number=turn.number,
        speaker=turn.speaker,
        known={one.speaker for one in request.turns if one.speaker},
        said_on=_parse_day(turn.said_on),
    )


def _claims_of(turn: TurnText, person: str) -> list[ExtractedFact]:
    """Read what somebody who talks to an assistant asserts (E1): their claims, each a fact of its own."""
    speech = Speech(user=person, said_on=_parse_day(turn.said_on))
    claims = [claim for claim in read_claims(text=turn.text, speech=speech) if claim.mode in EVIDENCE]
    return [
        ExtractedFact(
            text=claim.sentence,
            category=(category := read_category(said=claim.words, german=claim.language == "de")),
            confidence=read_confidence(said=claim.words, is_by_model=False),
            turns=(turn.number,),
            entities=find_entities(text=claim.sentence, own=(person,), german=claim.language == "de"),
            causes=read_causes(sentence=claim.words),
            importance=IMPORTANCE[category],
            valence=read_valence(said=claim.words),
        )
        for claim in claims
        if claim.is_told or claim.strength >= _WORTH_KEEPING
    ]


_WORTH_KEEPING = 0.35  # strength from which what is said in passing is kept as a fact


def _parse_day(written: str) -> date | None:
    return date.fromisoformat(written) if written else None


def _summarize(request: SummaryRequest) -> Summary:
    """Take the sentences most like all others, in their order."""
    told = [fact.text for turn in request.turns if not turn.is_beside for fact in _facts_of(turn, request)]
    return Summary(summary=summarize_sentences(sayings=told, embed=_embed))


def claim_of_belief(belief: StatedBelief) -> SpokenText:
    """Return a belief as rules compare it: its speaker is its subject, as in the polarity guard."""
    return SpokenText(text=belief.statement, speaker=belief.subject, language=belief.language)


def _extract_facts(request: RememberRequest) -> StatedFacts:
    """Take the sentences that stand for themselves; rules know no kinds of fact."""
    policy, [said] = settings.POLICY.remember, request.episodes
    found = read_facts(
        text=said.text,
        speaker=said.speaker,
        language=said.language,
        policy=policy,
        said_on=_parse_day(said.occurred_on),
    )
    return StatedFacts(
        facts=[StatedFact(fact=one.text, importance=one.importance, subject=one.subject) for one in found]
    )


def _find_contradiction(request: ContradictionRequest) -> Contradiction:
    """Name the beliefs that rules find contradicted, and why the first is."""
    fact, *beliefs = (_as_side(belief, request.person) for belief in (request.fact, *request.beliefs))
    found = {
        number: reason
        for number, belief in enumerate(beliefs, 1)
        if fact and belief and (reason := find_contradiction(one=fact, other=belief))
    }
    return Contradiction(contradicts=list(found), reason=next(iter(found.values()), ""))


def _as_side(belief: StatedBelief, user: str) -> Side | None:
    language = language_of(belief.statement, known=belief.language)
    person = person_of(user=user, language=language)
    return read_side(belief.statement, person=person, subject=belief.subject, language=language)


def _read_claims(request: ClaimsRequest) -> ClaimsReply:
    """Read each message for itself: rules know no company, and nothing that an assistant says is its user's (E2)."""
    stated = [
        _as_stated(number, claim)
        for number, message in enumerate(request.read, start=1)
        if message.role == Role.USER
        for claim in read_claims(
            text=message.text,
            speech=Speech(user=message.speaker, language=message.language, said_on=_parse_day(message.occurred_on)),
        )
    ]
    return ClaimsReply(claims=stated)


def _as_stated(number: int, claim: ReadClaim) -> StatedClaim:
    slot = next(iter(sorted(claim.slots)), OTHER)
    return StatedClaim(
        n=number,
        claim=claim.sentence,
        subject=claim.subject,
        slot=slot,
        value=", ".join(sorted(claim.slots.get(slot, ()))),
        denied=claim.is_denial,
        mode=claim.mode,
        told=claim.is_told,
        ended=list(claim.ended),
        words=claim.words,
    )


def _classify(request: ClassificationRequest) -> Reply:
    unknown = ((None,) * len(request.episodes),) * len(request.beliefs)
    return Verdicts(
        verdicts=[
            _judge(belief, episode, similarity)
            for belief, row in zip(request.beliefs, request.similarities or unknown, strict=True)
            for episode, similarity in zip(request.episodes, row, strict=True)
        ]
    )


def claim_of_episode(episode: EpisodeText) -> SpokenText:
    """Return an episode as rules compare it."""
    return SpokenText(text=episode.text, speaker=episode.speaker, language=episode.language)


def _judge(belief: StatedBelief, episode: EpisodeText, similarity: float | None) -> EpisodeVerdict:
    judgement = judge_by_rules(episode=claim_of_episode(episode), belief=claim_of_belief(belief), similarity=similarity)
    return EpisodeVerdict(belief=belief.id, id=episode.id, verdict=judgement.verdict, reason=judgement.reason)


class StaticEmbedder:
    """Averages one vector per token; knows words, not their order."""

    name = "wordllama-l2-supercat-256"
    is_local = True
    is_multilingual = False

    def __init__(self) -> None:
        self._tokenizer, self._table = _load_wordllama()

    @cached_property
    def profile(self) -> Profile:
        """Return the profile that ships for this model."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, 768); the time limit is for models that can stall."""
        reject_blank(texts)
        vectors = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), BATCH_TEXTS):
            encoded = self._tokenizer.encode_batch(list(texts[start : start + BATCH_TEXTS]), add_special_tokens=False)
            for row, encoding in enumerate(encoded, start):
                vectors[row] = self._average(encoding.ids)
        return unit_rows(vectors)

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Return the vectors; nobody counts what this machine does."""
        return Embedded(vectors=self.embed(texts, timeout=timeout), tokens=0)

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return the unit vector (768) of a text whose lower-case words weigh so much, all others nothing.

        None where none of them weighs anything.
        """
        weight_at = np.zeros(len(text), dtype=np.float32)
        for word in _WORD.finditer(text):
            weight_at[word.start() : word.end()] = weights.get(word.group().lower(), 0.0)
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        shares = np.array([weight_at[start:end].max(initial=0.0) for start, end in encoded.offsets], dtype=np.float32)
        if not shares.any():
            return None
        total: NDArray[np.float32] = shares @ self._table[encoded.ids]
        return np.asarray(unit_rows(total[np.newaxis])[0])

    def is_overlong(self, text: str) -> bool:
        """Tell whether a text has more tokens than one piece holds."""
        return len(text) > LONGEST_TOKENS and self.count_tokens(text) > LONGEST_TOKENS

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _average(self, ids: list[int]) -> NDArray[np.float32]:
        """Average the pieces of a text, each the mean of its tokens, weighted by their length."""
        pieces = [ids[start : start + LONGEST_TOKENS] for start in range(0, len(ids), LONGEST_TOKENS)]
        total = np.zeros(self._table.shape[1], dtype=np.float32)
        for piece in pieces:
            total += self._table[piece].sum(axis=0, dtype=np.float32)
        return total / np.float32(max(len(ids), 1))


LONGEST_TOKENS = 512
BATCH_TEXTS = 256
_WORD = re.compile(r"\w+")
_TOKENIZER_FILE = "tokenizers/l2_supercat_tokenizer_config.json"
_TABLE_FILE = "weights/l2_supercat_256.safetensors"


def _load_wordllama() -> tuple[Any, NDArray[np.float32]]:
    """Load tokenizer and table from the files of the package; its own code, which would reach for a hub, is not run."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("wordllama is not installed")
    folder = Path(spec.submodule_search_locations[0])
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER_FILE))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, load_file(folder / _TABLE_FILE)["embedding.weight"].astype(np.float32)


@lru_cache(maxsize=1)
def static_embedder() -> Embedder:
    """Return the static model that ships with the project; the offline rules use it whatever the settings name."""
    return StaticEmbedder()
