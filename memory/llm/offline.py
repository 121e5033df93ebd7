"""Answers and vectors without a network: the reader that ships with the project, and a static table of word vectors.

`OfflineModel` answers every request of a language model by quoting and comparing: it writes no sentence of its own,
and says IRRELEVANT where it is unsure. `StaticEmbedder` knows words but not their order, some 50 µs a text.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, assert_never

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memory.domain.evidence import Verdict
from memory.domain.similarity import Profile
from memory.domain.taxonomy import Role
from memory.language.subjects import Timeframe
from memory.llm.offline_reading import BORNE_OUT, DENIED, HOLDS_IN_PART, IDLE, read_offline
from memory.llm.profiles import load_profile
from memory.llm.reader import CHANGE, CONTRADICTS, LASTING, NONE, PARTIAL, SUPPORTS, reader, spoken
from memory.llm.replies import (
    LONGEST_STATEMENT,
    Contradiction,
    Division,
    EpisodeVerdict,
    Reply,
    Summary,
    Synthesis,
    Union,
    Verdicts,
    write_reply,
)
from memory.llm.requests import (
    ClassificationRequest,
    ContradictionRequest,
    EpisodeText,
    MergeRequest,
    MetaRequest,
    ReadingRequest,
    Request,
    RevisionRequest,
    SplitRequest,
    StatedBelief,
    SummaryRequest,
    SynthesisRequest,
    TurnText,
)
from memory.llm.types import Completion, Embedded, Embedder, reject_blank, unit_rows
from memory.text.names import NOBODY
from memory.text.quotes import is_first_person, quote, quote_words, unquote
from memory.text.sentences import split_sentences
from memory.text.words import POINTING, count_words, is_question, list_names, list_words, words_key

OFFLINE_MODEL = "offline-reader-1"  # counted up where thresholds change; the file's hash follows it


class OfflineModel:
    """The second implementation of LanguageModel: one small model that compares; unsure means IRRELEVANT."""

    is_offline = True

    def model_for(self, purpose: str) -> str:
        """Name the reader and the version of its file; it serves every purpose."""
        return f"{OFFLINE_MODEL}@{reader().version}"

    def parameters_for(self, purpose: str) -> dict[str, str | float]:
        """Return nothing: its thresholds are no settings."""
        return {}

    def complete(self, *, request: Request, timeout: float) -> Completion:
        """Answer on this machine, counting no tokens; a blank statement says that no sentence can stand alone."""
        began = time.monotonic()
        reply = _answer(request)
        return Completion(
            reply=reply,
            raw=write_reply(request=request, reply=reply),
            input_tokens=0,
            output_tokens=0,
            latency_ms=round((time.monotonic() - began) * 1000),
        )


def _answer(request: Request) -> Reply:
    match request:
        case ReadingRequest():
            return read_offline(request)
        case SynthesisRequest():
            return _synthesize(request.episodes, request.person)
        case ClassificationRequest():
            return _classify(request)
        case RevisionRequest():
            judged = zip(request.episodes, request.verdicts, strict=True)
            against = [episode for episode, verdict in judged if verdict == Verdict.CONTRADICTS]
            return _synthesize(against, request.person)
        case SplitRequest():
            return Division(parts=[])  # a circumstance is found by models that write
        case MergeRequest():
            return _merge(request)
        case SummaryRequest():
            return _summarize(request)
        case MetaRequest():
            return _NO_STATEMENT  # nothing here makes a new sentence of several
        case ContradictionRequest():
            return _find_contradiction(request)
    assert_never(request)


_NO_STATEMENT = Synthesis(statement="", subject="", predicate="", timeframe=Timeframe.CURRENT)
_MOST_SENTENCES = 120  # of a cluster, or of some turns: a second or two of one core
_FEWEST_WORDS = 3
_SAYS_NOTHING = 0.4  # of none, from which a text of nobody in particular is thanks or a greeting
_ASSERTS = 0.5  # of lasting or change, from which what somebody said is fit to be a statement of several texts
_NEAREST_SENTENCES = 8  # of an episode, that a belief is judged by


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A sentence of an episode or a turn; the person is "" for a text that nobody speaks in."""

    text: str
    person: str
    source: int  # the place of its episode or turn
    context: str  # its message, as the reader weighs it

    @property
    def statement(self) -> str:
        return quote(self.person, self.text) if self.person else self.text


def _synthesize(episodes: Sequence[EpisodeText], person: str) -> Synthesis:
    """State the sentence most like what the other episodes say, as it stands or quoted; blank where none is fit."""
    said = [
        sentence
        for place, episode in enumerate(episodes)
        for sentence in _sentences_of(episode.text, _person_in(episode, person), place)
        if not (sentence.person == "" and _points_back(sentence.text))
    ][:_MOST_SENTENCES]
    worth = reader().worth([(one.text, one.context) for one in said])
    fit = [
        one
        for one, odds in zip(said, worth, strict=True)
        if (odds[LASTING] + odds[CHANGE] >= _ASSERTS if one.person else odds[NONE] < _SAYS_NOTHING)
        and len(one.statement.split()) <= LONGEST_STATEMENT
    ]
    if not fit:
        return _NO_STATEMENT
    chosen = fit[int(_centrality(fit).argmax())]
    return Synthesis(
        statement=chosen.statement,
        subject=chosen.person or next(iter(list_names(chosen.text)), " ".join(chosen.text.split()[:2])),
        predicate="says",
        context="general",
        timeframe=Timeframe.CURRENT,
    )


def _person_in(episode: EpisodeText, person: str) -> str:
    """Return who speaks in an episode: its speaker, else the person whose memory it is where it says "I"."""
    return episode.speaker or ((person or NOBODY) if is_first_person(episode.text) else "")


def _sentences_of(text: str, person: str, source: int, role: str = Role.USER) -> list[_Said]:
    """Return the sentences of a text that may be stated: no questions, nothing of one or two words."""
    sentences = split_sentences(text)
    context = f"{'user' if role == Role.USER else 'assistant'}: {' '.join(sentences)[:_CONTEXT]}"
    return [
        _Said(text=sentence, person=person, source=source, context=context)
        for sentence in sentences
        if count_words(sentence) >= _FEWEST_WORDS and not is_question(sentence)
    ]


_CONTEXT = 900  # characters of a message, as in training


def _points_back(sentence: str) -> bool:
    """Tell whether a sentence begins with a word for something said before it."""
    return next(iter(list_words(sentence)), "").casefold() in POINTING


def _centrality(said: Sequence[_Said]) -> NDArray[np.float32]:
    """Return how like each sentence is to what each source says: the mean cosine to the nearest sentence of each.

    So a long text counts as much as a short one.
    """
    vectors = reader().vectors([_spoken(one) for one in said])
    cosines = vectors @ vectors.T
    sources = np.array([one.source for one in said])
    nearest = [cosines[:, sources == source].max(axis=1) for source in dict.fromkeys(sources.tolist())]
    central: NDArray[np.float32] = np.mean(nearest, axis=0)
    return central


def _spoken(said: _Said) -> str:
    return f"{said.person}: {said.text}" if said.person else said.text


def _belief_as_spoken(belief: StatedBelief, person: str) -> str:
    """Return a belief as the reader compares it: a quote behind its speaker's name, without the marks."""
    quoted = unquote(belief.statement)
    return spoken(*quoted) if quoted else spoken(person, belief.statement)


def _classify(request: ClassificationRequest) -> Verdicts:
    """Judge each belief by the sentences of each episode that are nearest to it; what is over is not known here."""
    verdicts = []
    for place, episode in enumerate(request.episodes):
        person = episode.speaker or request.person
        said = [_spoken(one) for one in _all_sentences(episode.text, person, place)]
        vectors = reader().vectors(said)
        for belief in request.beliefs:
            verdict, reason = _judge(_belief_as_spoken(belief, person), said, vectors)
            verdicts.append(EpisodeVerdict(belief=belief.id, id=episode.id, verdict=verdict, reason=reason))
    return Verdicts(verdicts=verdicts)


def _all_sentences(text: str, person: str, source: int) -> Iterable[_Said]:
    """Return every sentence of a text, the text itself where it has none."""
    sentences = split_sentences(text) or [text.strip() or "…"]
    return [_Said(text=sentence, person=person, source=source, context="") for sentence in sentences]


def _judge(belief: str, said: Sequence[str], vectors: NDArray[np.float32]) -> tuple[Verdict, str]:
    """Return the surest word of an episode's sentences on a belief, and why; unsure is IRRELEVANT."""
    if words_key(belief) in map(words_key, said):  # the head saw no mere repetitions in training
        return Verdict.SUPPORTS, ""
    nearest = np.argsort(-(vectors @ reader().vectors([belief])[0]), kind="stable")[:_NEAREST_SENTENCES]
    odds = reader().relation([(belief, said[place]) for place in nearest]).max(axis=0)
    supports, contradicts, partial = (
        float(odds[column]) if odds[column] >= least else 0.0
        for column, least in ((SUPPORTS, BORNE_OUT), (CONTRADICTS, DENIED), (PARTIAL, HOLDS_IN_PART))
    )
    if contradicts and contradicts >= max(supports - _CLOSE, partial):
        return Verdict.CONTRADICTS, "it says otherwise"
    if partial and partial >= supports:
        return Verdict.PARTIAL, "it holds in part"
    return (Verdict.SUPPORTS, "") if supports else (Verdict.IRRELEVANT, "")


_CLOSE = 0.1  # an episode with a sentence for and one against, about as sure, is no support


def _merge(request: MergeRequest) -> Union:
    """Agree where two statements are alike and each bears out the other."""
    first, second = (_belief_as_spoken(belief, request.person) for belief in request.beliefs)
    same = request.similarity > settings.POLICY.gate.merge_similarity and reader().says_the_same(first, second)
    return Union(same=same, statement="", subject="", predicate="", timeframe=Timeframe.CURRENT)


def _summarize(request: SummaryRequest) -> Summary:
    """Quote the three sentences most like what all turns say, in their order; blank where no user tells anything."""
    said = [
        sentence
        for place, turn in enumerate(request.turns)
        if not turn.is_beside and turn.role in _SPEAKING
        for sentence in _sentences_of(turn.text, _speaker_of(turn, request.person), place, turn.role)
        if count_words(sentence.text) < LONGEST_STATEMENT
    ][:_MOST_SENTENCES]
    users = {place for place, turn in enumerate(request.turns) if turn.role == Role.USER}
    worth = reader().worth([(one.text, one.context) for one in said])
    kept = [one for one, odds in zip(said, worth, strict=True) if one.source not in users or odds[NONE] < IDLE]
    if not any(one.source in users for one in kept):
        return Summary(summary="")
    chosen = sorted(np.argsort(-_centrality(kept), kind="stable")[:_SUMMARY_SENTENCES])
    return Summary(summary=" ".join(quote_words(kept[place].person, kept[place].text) for place in chosen))


_SUMMARY_SENTENCES = 3
_SPEAKING = frozenset({Role.USER, Role.ASSISTANT})  # what tools print is no part of what was said


def _speaker_of(turn: TurnText, person: str) -> str:
    if turn.speaker:
        return turn.speaker
    return (person or NOBODY) if turn.role == Role.USER else "The assistant"


def _find_contradiction(request: ContradictionRequest) -> Contradiction:
    """Name the beliefs that cannot hold beside a fact, whichever of the two is taken for the later."""
    fact, *beliefs = (_belief_as_spoken(belief, request.person) for belief in (request.fact, *request.beliefs))
    forth = reader().relation([(belief, fact) for belief in beliefs])[:, CONTRADICTS]
    back = reader().relation([(fact, belief) for belief in beliefs])[:, CONTRADICTS]
    found = [number for number, odds in enumerate(np.maximum(forth, back), start=1) if odds >= DENIED]
    return Contradiction(contradicts=found, reason="it says otherwise" if found else "")


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
    """Return the static model that ships with the project, one per process."""
    return StaticEmbedder()
