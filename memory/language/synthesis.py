"""Draw one standing statement out of a cluster of episodes without a language model (B10, offline).

Also offline: dividing a belief by circumstances (B12), and summing up a conversation (R8).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from memory.domain.policy_beliefs import RestructurePolicy
from memory.domain.policy_consolidation import ConsolidationPolicy
from memory.language.analysis import SpokenText
from memory.language.first_person import Utterance, leave_name_out, list_claims, to_third_person
from memory.language.guard import check_polarity
from memory.language.refusals import STATEMENT_DEFAULTS, Refusal, is_german, refuse_statement
from memory.language.sentences import (
    drop_quotes,
    drop_shared,
    list_shortened,
    list_words,
    split_sentences,
    strip_opening,
    strip_pictographs,
)
from memory.language.subjects import Timeframe, read_context, read_timeframe, split_subject
from memory.language.traits import is_shareable, score_generality
from memory.language.words import ENGLISH_STOPS, ENGLISH_VERBS, GERMAN_STOPS, stem_english, stem_german, word_set

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
_READ = 4_000  # characters of an episode: what comes after them was pasted
NEARLY_SAME = 0.53  # raw cosine of the static model, in the middle between related and the same


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """An episode as synthesis reads it: its text may begin with the speaker's name."""

    id: str
    text: str
    speaker: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedStatement:
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
    *,
    episodes: Sequence[SourceText],
    embed: Embed,
    near: float = NEARLY_SAME,
    policy: ConsolidationPolicy = STATEMENT_DEFAULTS,
) -> ExtractedStatement | None:
    """Choose the sentence that best stands for a cluster, or None if none can stand alone.

    `embed` maps texts to rows of unit length; from the cosine `near` two sentences say nearly the same.
    """
    if not episodes:
        return None
    turns = [_read_turn(episode) for episode in episodes]
    vectors = embed([drop_shared(turn.text) or turn.text for turn in turns])
    central = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")[: policy.central_episodes]
    candidates = [found for index in central for found in _list_candidates(episodes[index], turns[index])]
    chosen = _choose(candidates, turns=turns, embed=embed, near=near) if candidates else None
    return _describe(chosen) if chosen else None


def _read_turn(episode: SourceText) -> Utterance:
    text = strip_speaker(text=episode.text, speaker=episode.speaker)[:_READ]
    return Utterance(text=text, speaker=episode.speaker, language=episode.language)


def strip_speaker(*, text: str, speaker: str) -> str:
    """Drop the `Name: ` with which a turn begins."""
    return text.removeprefix(f"{speaker}:").lstrip() if speaker else text


def _list_candidates(episode: SourceText, turn: Utterance) -> list[_Candidate]:
    sentences = split_sentences(strip_pictographs(drop_shared(turn.text)))
    return [candidate for sentence in sentences for candidate in _make_candidates(sentence, episode)]


def _make_candidates(sentence: str, episode: SourceText) -> Iterator[_Candidate]:
    german = is_german(sentence, language=episode.language)
    tag = "de" if german else "en"
    if refuse_statement(sentence, language=tag) in _FINAL_REFUSALS:
        return
    for part in list_shortened(strip_opening(sentence, is_addressed=bool(episode.speaker))):
        statement = _name_speaker(part, episode, german=german)
        if not statement or refuse_statement(statement, language=tag) or _ADDRESS.search(drop_quotes(statement)):
            continue
        if is_shareable(statement, speaker=episode.speaker, german=german):
            yield _Candidate(statement=_close(statement), source=episode, german=german)


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
class _Claims:
    """What the turns of a cluster claim: `owners[i]` is the turn of claim i, `vectors` leave speakers' names out."""

    texts: Sequence[str]
    owners: NDArray[np.intp]
    vectors: NDArray[np.float32]


def _read_claims(turns: Sequence[Utterance], *, embed: Embed) -> _Claims:
    told = [list_claims(turn) or [turn.text] for turn in turns]
    texts = [claim for claims in told for claim in claims]
    return _Claims(
        texts=texts,
        owners=np.repeat(np.arange(len(told)), [len(claims) for claims in told]),
        vectors=embed(_leave_speakers_out(texts, turns=turns)),
    )


def _leave_speakers_out(texts: Sequence[str], *, turns: Sequence[Utterance]) -> list[str]:
    """Drop the names of all who speak in a cluster, be it in their own words or in a note about them."""
    speakers = sorted({turn.speaker for turn in turns if turn.speaker})
    return [reduce(lambda text, name: leave_name_out(text, name=name), speakers, text) for text in texts]


def _choose(
    candidates: Sequence[_Candidate], *, turns: Sequence[Utterance], embed: Embed, near: float
) -> _Candidate | None:
    """Pick the sentence that most episodes say something like, moved a little by how general it reads."""
    claims = _read_claims(turns, embed=embed)
    statements = _leave_speakers_out([candidate.statement for candidate in candidates], turns=turns)
    cosines = embed(statements) @ claims.vectors.T
    starts = np.flatnonzero(np.diff(claims.owners, prepend=-1))
    closeness = np.maximum.reduceat(cosines, starts, axis=1).mean(axis=1)
    scored = []
    for place, candidate in enumerate(candidates):
        if closeness[place] >= LEAST_CLOSENESS * closeness.max():
            support = _count_support(candidate, claims=claims, turns=turns, is_near=cosines[place] >= near)
            score = float(closeness[place]) + _score(candidate, turns) + SUPPORT_WEIGHT * support / len(turns)
            scored.append((round(score, 6), candidate.statement, candidate))
    # Ties go to the statement's text, so that the choice does not hang on ids or order.
    return max(scored, key=lambda entry: entry[:2])[2] if scored else None


def _count_support(
    candidate: _Candidate, *, claims: _Claims, turns: Sequence[Utterance], is_near: NDArray[np.bool_]
) -> int:
    """Count the turns with a claim that says nearly the same, passes the guard, and is not another speaker's."""
    speaker = candidate.source.speaker
    statement = SpokenText(text=candidate.statement, speaker=speaker)
    supporting = set()
    for place in np.flatnonzero(is_near).tolist():
        owner = int(claims.owners[place])
        if turns[owner].speaker and speaker and turns[owner].speaker != speaker:
            continue
        if check_polarity(
            left=SpokenText(text=claims.texts[place], speaker=turns[owner].speaker), right=statement
        ).passed:
            supporting.add(owner)
    return len(supporting)


def _score(candidate: _Candidate, turns: Sequence[Utterance]) -> float:
    general = score_generality(candidate.statement, speaker=candidate.source.speaker, german=candidate.german)
    agreement = AGREEMENT_WEIGHT * _measure_agreement(candidate, turns)
    return general + agreement + COVERAGE_WEIGHT * _measure_coverage(candidate, turns)


def _measure_agreement(candidate: _Candidate, turns: Sequence[Utterance]) -> float:
    """Return the share of turns that pass the polarity guard against the candidate as a whole."""
    tag = "de" if candidate.german else "en"
    statement = SpokenText(text=candidate.statement, speaker=candidate.source.speaker, language=tag)
    claims = [SpokenText(text=turn.text, speaker=turn.speaker, language=turn.language) for turn in turns]
    return sum(check_polarity(left=claim, right=statement).passed for claim in claims) / len(claims)


def _measure_coverage(candidate: _Candidate, turns: Sequence[Utterance]) -> float:
    """Return the mean share of the candidate's content words that an episode has."""
    wanted = _list_stems(candidate.statement, german=candidate.german) - {candidate.source.speaker.lower()} - _HABITUAL
    shares = [len(wanted & _list_stems(text, german=candidate.german)) for text in (turn.text for turn in turns)]
    return sum(shares) / (len(shares) * max(1, len(wanted)))


def _list_stems(text: str, *, german: bool) -> set[str]:
    stops, stem = (GERMAN_STOPS, stem_german) if german else (ENGLISH_STOPS, stem_english)
    return {stem(word) for word in map(str.lower, list_words(text)) if word not in stops}


LEAST_CLOSENESS = 0.6
AGREEMENT_WEIGHT = 0.3
COVERAGE_WEIGHT = 0.3
SUPPORT_WEIGHT = 0.5
_HABITUAL = word_set("alway usual general imm stet mei")  # stems: a habit is seldom told with its adverb


def _describe(chosen: _Candidate) -> ExtractedStatement:
    subject, predicate = split_subject(chosen.statement, speaker=chosen.source.speaker)
    return ExtractedStatement(
        statement=chosen.statement,
        subject=subject,
        predicate=predicate,
        context=read_context(chosen.statement),
        timeframe=read_timeframe(chosen.statement, german=chosen.german),
        language="de" if chosen.german else "en",
        episode_id=chosen.source.id,
    )


_ANYWHERE = "general"


def divide_by_context(
    *, in_favour: Sequence[SourceText], against: Sequence[SourceText], policy: RestructurePolicy, embed: Embed
) -> tuple[ExtractedStatement, ExtractedStatement] | None:
    """Return a statement for each side, where each side's episodes name a circumstance of their own; else None.

    The statements are sentences of the episodes, so each names its circumstance in somebody's words.
    """
    parts = [_state_side(side, least=policy.circumstance_episodes, embed=embed) for side in (in_favour, against)]
    if parts[0] is None or parts[1] is None or parts[0].context.casefold() == parts[1].context.casefold():
        return None
    return parts[0], parts[1]


def _state_side(side: Sequence[SourceText], *, least: int, embed: Embed) -> ExtractedStatement | None:
    """State what a side's episodes say in the circumstance that most of them name, and at least so many."""
    named: dict[str, list[SourceText]] = {}
    for episode in side:
        named.setdefault(read_context(episode.text).casefold(), []).append(episode)
    named.pop(_ANYWHERE, None)
    counts = Counter({context: len(episodes) for context, episodes in named.items()})
    if not counts or max(counts.values()) < least:
        return None
    chosen = min(counts, key=lambda context: (-counts[context], context))
    found = extract_statement(episodes=named[chosen], embed=embed)
    # The sentence chosen may be one that leaves the circumstance out; it would then claim too much.
    return replace(found, context=chosen) if found and found.context.casefold() == chosen else None


_MOST = 3  # sentences of a summary
_LEAST = 2  # sentences without which there is nothing to sum up: small talk


def summarize_sentences(*, sayings: Sequence[str], embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> str:
    """Return the sentences nearest to the middle of all, in their order, at most three; "" where there are too few.

    `embed` maps texts to rows of unit length.
    """
    told = list(dict.fromkeys(sayings))
    if len(told) < _LEAST:
        return ""
    vectors = embed(told)
    central = np.argsort(-(vectors @ vectors.mean(axis=0)), kind="stable")[:_MOST]
    return " ".join(told[place] for place in sorted(central.tolist()))
