"""Draw one standing statement out of a cluster of episodes without a language model (B10, offline)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.domain.cards import Timeframe, read_context, read_timeframe, split_subject
from memory.domain.generality import is_shareable, score_generality
from memory.domain.lexicon import ENGLISH_STOPS, ENGLISH_VERBS, GERMAN_STOPS, words
from memory.domain.matching.stems import stem_english, stem_german
from memory.domain.person import is_first_person, to_third_person
from memory.domain.policy import ConsolidationPolicy
from memory.domain.references import has_unresolved_reference
from memory.domain.refusals import DEFAULTS, Refusal, is_german, refuse_statement
from memory.domain.sentences import (
    drop_quotes,
    drop_shared,
    list_words,
    split_sentences,
    strip_opening,
    strip_pictographs,
)

__all__ = [
    "Embed",
    "Extracted",
    "Refusal",
    "SourceText",
    "Timeframe",
    "extract_statement",
    "has_unresolved_reference",
    "is_first_person",
    "refuse_statement",
    "split_sentences",
    "to_third_person",
]

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """An episode as synthesis reads it: its text may begin with the speaker's name."""

    id: str
    text: str
    speaker: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """A statement found in a cluster, with the parts of a belief's card (B2) and the episode it was taken from."""

    statement: str
    subject: str
    predicate: str
    context: str
    timeframe: Timeframe
    language: str
    episode_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    statement: str
    source: SourceText
    german: bool


def extract_statement(
    *, episodes: Sequence[SourceText], embed: Embed, policy: ConsolidationPolicy = DEFAULTS
) -> Extracted | None:
    """Choose the sentence that best stands for a cluster, or None if none can stand alone.

    `embed` maps texts to rows of unit length.
    """
    if not episodes:
        return None
    bodies = [strip_speaker(text=episode.text, speaker=episode.speaker) for episode in episodes]
    vectors = embed([drop_shared(body) or body for body in bodies])
    centroid = vectors.mean(axis=0)
    central = np.argsort(-(vectors @ centroid), kind="stable")[: policy.central_episodes]
    candidates = [found for index in central for found in _list_candidates(episodes[index], bodies[index])]
    chosen = _choose(candidates, cluster=_read_cluster(bodies), embed=embed) if candidates else None
    return _describe(chosen) if chosen else None


def strip_speaker(*, text: str, speaker: str) -> str:
    """Drop the `Name: ` with which a turn begins."""
    return text.removeprefix(f"{speaker}:").lstrip() if speaker else text


def _list_candidates(episode: SourceText, body: str) -> list[_Candidate]:
    sentences = split_sentences(strip_pictographs(drop_shared(body)))
    found = (_make_candidate(sentence, episode) for sentence in sentences)
    return [candidate for candidate in found if candidate]


def _make_candidate(sentence: str, episode: SourceText) -> _Candidate | None:
    german = is_german(sentence, language=episode.language)
    if refuse_statement(sentence, language="de" if german else "en") in _FINAL_REFUSALS:
        return None
    statement = _name_speaker(strip_opening(sentence, is_addressed=bool(episode.speaker)), episode, german=german)
    if not statement or refuse_statement(statement, language="de" if german else "en"):
        return None
    if _ADDRESS.search(drop_quotes(statement)) or not is_shareable(statement, speaker=episode.speaker, german=german):
        return None
    return _Candidate(statement=_close(statement), source=episode, german=german)


_FINAL_REFUSALS = frozenset({Refusal.EMPTY, Refusal.QUESTION})
_DROPPED_SUBJECT = re.compile(r"(?:Just|Still|Also|Bet|Been|Gonna|Can't|Got|Had|Never|Always|Don't)\b")
_ADDRESS = re.compile(r"\b(?:you|your|yours|you're|you've|y'all|du|dich|dir|dein\w*|euch|euer\w*)\b", re.IGNORECASE)


def _name_speaker(sentence: str, episode: SourceText, *, german: bool) -> str | None:
    """Put the speaker in the place of "I"; in a turn, a sentence that leaves its subject out is dropped."""
    if not episode.speaker or not sentence:
        return sentence
    first = sentence.split(None, 1)[0].lower()
    if not german and (first in ENGLISH_VERBS or _DROPPED_SUBJECT.match(sentence)):
        return _complete(sentence, speaker=episode.speaker)
    return to_third_person(sentence, speaker=episode.speaker, language="de" if german else "en")


def _complete(sentence: str, *, speaker: str) -> str | None:
    """Give "Still working on …" its subject."""
    progressive = re.match(r"(Still|Also) (?=\w+ing\b)", sentence)
    if not progressive:
        return None
    return to_third_person(f"I am {progressive[1].lower()} {sentence[progressive.end() :]}", speaker=speaker)


def _close(statement: str) -> str:
    return statement.rstrip(" .!…,;:-–—") + "."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """The episodes of a cluster, cut into sentences: `owners[i]` is the episode of sentence i."""

    texts: Sequence[str]
    sentences: Sequence[str]
    owners: NDArray[np.intp]


def _read_cluster(bodies: Sequence[str]) -> _Cluster:
    cut = [split_sentences(drop_shared(body)) or [body] for body in bodies]
    return _Cluster(
        texts=bodies,
        sentences=[sentence for sentences in cut for sentence in sentences],
        owners=np.repeat(np.arange(len(cut)), [len(sentences) for sentences in cut]),
    )


def _choose(candidates: Sequence[_Candidate], *, cluster: _Cluster, embed: Embed) -> _Candidate | None:
    """Pick the sentence that most episodes say something like, moved a little by how general it reads."""
    closeness = _measure_closeness(candidates, cluster=cluster, embed=embed)
    scored = [
        (round(near + _score(candidate, cluster), 6), candidate.statement, candidate)
        for near, candidate in zip(closeness.tolist(), candidates, strict=True)
        if near >= LEAST_CLOSENESS * closeness.max()
    ]
    # Ties go to the statement's text, so that the choice does not hang on ids or order.
    return max(scored, key=lambda entry: entry[:2])[2] if scored else None


def _measure_closeness(candidates: Sequence[_Candidate], *, cluster: _Cluster, embed: Embed) -> NDArray[np.float32]:
    """Return for each candidate the mean over the episodes of the cosine with their nearest sentence."""
    cosines = embed([candidate.statement for candidate in candidates]) @ embed(cluster.sentences).T
    starts = np.flatnonzero(np.diff(cluster.owners, prepend=-1))
    return np.asarray(np.maximum.reduceat(cosines, starts, axis=1).mean(axis=1), dtype=np.float32)


def _score(candidate: _Candidate, cluster: _Cluster) -> float:
    general = score_generality(candidate.statement, speaker=candidate.source.speaker, german=candidate.german)
    return general + COVERAGE_WEIGHT * _measure_coverage(candidate, cluster)


def _measure_coverage(candidate: _Candidate, cluster: _Cluster) -> float:
    """Return the mean share of the candidate's content words that an episode has."""
    wanted = _list_stems(candidate.statement, german=candidate.german) - {candidate.source.speaker.lower()} - _HABITUAL
    shares = [len(wanted & _list_stems(text, german=candidate.german)) for text in cluster.texts]
    return sum(shares) / (len(shares) * max(1, len(wanted)))


def _list_stems(text: str, *, german: bool) -> set[str]:
    stops, stem = (GERMAN_STOPS, stem_german) if german else (ENGLISH_STOPS, stem_english)
    return {stem(word) for word in map(str.lower, list_words(text)) if word not in stops}


LEAST_CLOSENESS = 0.6
COVERAGE_WEIGHT = 0.3
_HABITUAL = words("alway usual general imm stet mei")  # stems: a habit is seldom told with its adverb


def _describe(chosen: _Candidate) -> Extracted:
    subject, predicate = split_subject(chosen.statement, speaker=chosen.source.speaker)
    return Extracted(
        statement=chosen.statement,
        subject=subject,
        predicate=predicate,
        context=read_context(chosen.statement),
        timeframe=read_timeframe(chosen.statement, german=chosen.german),
        language="de" if chosen.german else "en",
        episode_id=chosen.source.id,
    )
