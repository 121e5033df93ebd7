"""Draw one standing statement out of a cluster of episodes without a language model (B10, offline)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memory.domain.lexicon import ENGLISH_AUXILIARIES, ENGLISH_PAST, ENGLISH_VERBS, words
from memory.domain.person import is_first_person, to_third_person
from memory.domain.policy import ConsolidationPolicy
from memory.domain.references import has_unresolved_reference, is_verb_form
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


class Timeframe(StrEnum):
    """When a statement holds (B2)."""

    PAST = "past"
    CURRENT = "current"
    ALWAYS = "always"


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
    chosen = _choose(candidates, vectors=vectors, embed=embed) if candidates else None
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
    if _ADDRESS.search(drop_quotes(statement)):
        return None
    return _Candidate(statement=_close(statement), source=episode, german=german)


_FINAL_REFUSALS = frozenset({Refusal.EMPTY, Refusal.QUESTION})
_DROPPED_SUBJECT = re.compile(r"(?:Just|Still|Also|Bet|Been|Gonna|Can't|Got|Had)\b")
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


def _choose(candidates: Sequence[_Candidate], *, vectors: NDArray[np.float32], embed: Embed) -> _Candidate | None:
    """Pick by mean cosine to the cluster's episodes, moved a little by how general the sentence reads.

    A sentence far from what holds the cluster together stands for one episode only and is passed over.
    """
    closeness = (embed([candidate.statement for candidate in candidates]) @ vectors.T).mean(axis=1)
    least = LEAST_CLOSENESS * float((vectors @ vectors.mean(axis=0)).mean())
    scored = [
        (round(float(near) + _score_generality(candidate), 6), candidate.statement, candidate)
        for near, candidate in zip(closeness, candidates, strict=True)
        if near >= least
    ]
    # Ties go to the statement's text, so that the choice does not hang on ids or order.
    return max(scored, key=lambda entry: entry[:2])[2] if scored else None


_STANDING = re.compile(
    r"\b(?:always|never|usually|prefers?|likes?|loves?|hates?|wants?|needs?|uses?|keeps?|must|should|rule|every|each|"
    r"only|believes?|thinks?|values?|enjoys?|avoids?|insists?|tends?|means|matters?|important|passion(?:ate)?|favou?rite|"
    r"dream|goals?|is allergic|immer|nie|niemals|bevorzugt|mag|liebt|trinkt|jede[nmrs]?|grundsätzlich|nur|will|braucht|"
    r"soll|sollen|muss|müssen|lieber|gern|stets)\b",
    re.IGNORECASE,
)
_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|now|ago|just|recently|lately|last|next|"
    r"this (?:morning|week|weekend|month|year)|soon|upcoming|on (?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)|"
    r"heute|gestern|morgen|neulich|gerade|letzte[nrs]?|nächste[nrs]?|\d{1,2}(?:st|nd|rd|th)|"
    r"january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:so|such|one|here|there|thing|things|stuff|too|also|again|another|more|both|same|kinda|though)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[,;:–—(]|\s-\s")
_PAST_GERMAN = re.compile(r"\b(?:war|waren|hatte|hatten|wurde|wurden|ging|kam|\w{3,}te)\b")

LEAST_CLOSENESS = 0.45
SPEAKER_BONUS = 0.12
STANDING_BONUS = 0.08
DATED_PENALTY = 0.10
PAST_PENALTY = 0.08
VAGUE_PENALTY = 0.04
ASIDE_PENALTY = 0.05


def _score_generality(candidate: _Candidate) -> float:
    """Prefer habits, wishes and rules to one event on one day."""
    text = candidate.statement
    score = STANDING_BONUS if _STANDING.search(text) else 0.0
    score += SPEAKER_BONUS if candidate.source.speaker and candidate.source.speaker in text else 0.0
    score -= DATED_PENALTY if _DATED.search(text) else 0.0
    score -= PAST_PENALTY if _is_past(text, german=candidate.german) else 0.0
    score -= VAGUE_PENALTY if _VAGUE.search(text) else 0.0
    # What a second clause adds is seldom what all episodes of the cluster say.
    return score - (ASIDE_PENALTY if _ASIDE.search(text) else 0.0)


def _is_past(text: str, *, german: bool) -> bool:
    if german:
        return _PAST_GERMAN.search(text) is not None
    written = ["", *(word.lower() for word in list_words(text))]
    return any(
        (word in _CLEARLY_PAST or _is_past_form(word)) and before not in ENGLISH_AUXILIARIES
        for before, word in pairwise(written[:5])
    )


_CLEARLY_PAST = (ENGLISH_PAST | {"was", "had", "did", "were"}) - {
    "put",
    "set",
    "let",
    "cut",
    "read",
    "cost",
    "quit",
    "hit",
}


def _is_past_form(word: str) -> bool:
    return word.endswith("ed") and word not in {"need", "feed", "speed", "shared", "used", "red"}


def _describe(chosen: _Candidate) -> Extracted:
    subject, predicate = _split_subject(chosen)
    return Extracted(
        statement=chosen.statement,
        subject=subject,
        predicate=predicate,
        context=_read_context(chosen.statement),
        timeframe=_read_timeframe(chosen),
        language="de" if chosen.german else "en",
        episode_id=chosen.source.id,
    )


_CONTEXT = re.compile(
    r"\b(?:when|while|during|if|unless|in (?:the )?(?:morning|evening|winter|summer)s?|at (?:work|home|night)|"
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)days|wenn|beim|während|im (?:Winter|Sommer|Büro)|zu Hause|"
    r"morgens|abends|freitags|montags|for (?=\w+ (?:projects?|work|releases?|reports?|trips?)))\b[^,.;]*",
    re.IGNORECASE,
)
_MAX_CONTEXT = 80


def _read_context(statement: str) -> str:
    """Read the condition under which a statement is said to hold; 'general' if none (B10)."""
    found = _CONTEXT.search(statement)
    return found.group().strip()[:_MAX_CONTEXT] if found else "general"


_ALWAYS = re.compile(
    r"\b(?:always|never|every|must|rule|immer|nie|niemals|jede[nmrs]?|muss|grundsätzlich)\b", re.IGNORECASE
)


def _read_timeframe(chosen: _Candidate) -> Timeframe:
    if _ALWAYS.search(chosen.statement):
        return Timeframe.ALWAYS
    return Timeframe.PAST if _is_past(chosen.statement, german=chosen.german) else Timeframe.CURRENT


_SUBJECT_END = re.compile(
    r"\s(?=(?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|must|may|never|always|usually|"
    r"ist|sind|war|hat|haben|wird|werden|kann|soll|sollen|muss|müssen|darf|will|mag|möchte)\b)",
    re.IGNORECASE,
)
_MAX_SUBJECT_WORDS = 6
_DETERMINERS = words("the a an all every each no some any most both his her their its")


def _split_subject(chosen: _Candidate) -> tuple[str, str]:
    """Part a statement into who or what it is about and what it says of them."""
    statement = chosen.statement.rstrip(".")
    speaker = chosen.source.speaker
    if speaker and statement.startswith(f"{speaker} "):
        return speaker, statement.removeprefix(speaker).strip()
    end = _SUBJECT_END.search(statement)
    if end and len(statement[: end.start()].split()) <= _MAX_SUBJECT_WORDS:
        return statement[: end.start()], statement[end.end() :]
    return _lead_by_name(statement)


def _lead_by_name(statement: str) -> tuple[str, str]:
    """End the subject before the first word that is a verb; a command has the first word for its subject."""
    listed = statement.split()
    first = 2 if listed[0].lower() in _DETERMINERS else 1
    for count in range(first, min(len(listed), _MAX_SUBJECT_WORDS + 1)):
        if is_verb_form(listed[count].lower()) and listed[0].lower() not in ENGLISH_VERBS:
            return " ".join(listed[:count]), " ".join(listed[count:])
    return listed[0], " ".join(listed[1:])
