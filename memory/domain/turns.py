"""Read what a turn of a conversation claims, sentence by sentence.

A turn greets, thanks, asks and tells in one breath, so that its cosine as a whole says little: its sentences are
compared one by one, told of the speaker, with the speaker's name left out.
"""

import re
from dataclasses import dataclass

from memory.domain.person import to_third_person
from memory.domain.refusals import NOTHING_SAID, Refusal, is_german, refuse_statement
from memory.domain.sentences import drop_shared, list_shortened, split_sentences, strip_opening, strip_pictographs


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What somebody said, with the speaker's name ("" for a note) and the language ("" → guessed)."""

    text: str
    speaker: str = ""
    language: str = ""


_SAYS_NOTHING = NOTHING_SAID | {Refusal.TOO_LONG}


def list_claims(turn: Turn) -> list[str]:
    """List the sentences in which a speaker claims something, told in the third person where that is safe."""
    claims = []
    for sentence in split_sentences(strip_pictographs(drop_shared(turn.text))):
        tag = "de" if is_german(sentence, language=turn.language) else "en"
        plain = strip_opening(sentence, is_addressed=bool(turn.speaker))
        if plain and refuse_statement(plain, language=tag) not in _SAYS_NOTHING:
            told = (to_third_person(part, speaker=turn.speaker, language=tag) for part in list_shortened(plain))
            claims.extend([claim for claim in told if claim])
    return claims


def leave_name_out(text: str, *, name: str) -> str:
    """Drop a name, which would make all that one person says look alike."""
    if not name:
        return text
    return re.sub(rf"\b{re.escape(name)}(?:'s|’s?|s)?\b\s*", "", text).strip() or text
